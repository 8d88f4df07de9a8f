// A query that learns: choose the output wanted, its target, and watch gradient descent
// change the weights until the output is there, or is stuck.

const MOST_STEPS = 5000;
// From one picture to the next, in milliseconds. Each shows a few more steps than the
// last, since learning that begins fast ends slowly.
const PAUSE = 50;
const stepsAfter = (step) => 1 + Math.floor(step / 25);

const minus = ([a, b], [c, d]) => [a - c, b - d];
const apart = (a, b) => Math.hypot(...minus(a, b));

function lookUp(scores, values) {
  const weights = softmaxOf(scores);
  const output = [0, 1].map((axis) => times(weights, values.map((at) => at[axis])));
  return { scores, weights, output };
}

// One step of gradient descent on |output − target|². A query that moves along the keys
// moves its scores by the dot products of the keys, so the scores are all it needs.
function descend({ scores, weights, output }, { products, values }, target, rate) {
  const error = minus(output, target);
  const gradient = values.map((value, j) =>
    2 * weights[j] * times(minus(value, output), error));
  const moved = scores.map((score, i) => score - rate * times(products[i], gradient));
  return lookUp(moved, values);
}

function learning(root, data, host) {
  const { labels, values, names, hull, low, high, near, learning_rates } = data;
  const [factor, unit] = data.unit;
  const targets = [...values, ...data.landmarks];
  const first = lookUp(labels.map(() => 0), values);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const now = { ...data.shown };
  let frame, shownAt, visible;

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const learn = addButton(bar, "Learn", () => run(!now.running));
  addButton(bar, "Step", () => {
    run(false);
    step();
    show();
  });
  addButton(bar, "Reset", () => want(now.chosen, now.target));
  const elsewhere = [...labels, ...names, "elsewhere"];
  const select = addSelect(bar, "target", elsewhere, (i) =>
    want(i, targets[i] || now.target));
  const range = { min: 0, max: learning_rates.length - 1, step: 1 };
  const slider = addSlider(bar, "learning rate", range, (i) => {
    now.learning_rate = learning_rates[i];
    show();
  });
  const stage = addStage(root, "map: the arrow keys move the target", (way) => {
    const far = (high[0] - low[0]) / 50;
    want(targets.length, onMap(now.target.map((at, axis) => at + far * way[axis])));
  });
  const below = add(root, "div", { class: "below" });
  const table = add(below, "div", { class: "shares" });
  add(table, "span", { class: "name" }, "weights");
  const rows = labels.map((label) => {
    add(table, "span", { class: "label" }, label);
    return { share: addBed(table), number: add(table, "span", { class: "number" }) };
  });
  const chart = add(below, "div");
  const say = addReadout(root);

  // ---- learning
  // Every target is learned from the query 0, whose weights are equal.
  function restart() {
    const { output } = first;
    const path = [{ output, distance: apart(output, now.target) }];
    Object.assign(now, { state: first, path, ended: "" });
  }

  function want(chosen, target) {
    Object.assign(now, { chosen, target });
    restart();
    run(false);
    show();
  }

  function step() {
    if (now.ended) return;
    now.state = descend(now.state, data, now.target, now.learning_rate);
    const { output } = now.state;
    const distance = apart(output, now.target);
    const moved = apart(output, now.path.at(-1).output);
    now.path.push({ output, distance });
    if (distance < near) now.ended = "found";
    else if (moved < near * 1e-5) now.ended = "stuck";
    else if (now.path.length > MOST_STEPS) now.ended = "late";
  }

  function run(running) {
    if (running && now.ended) restart();
    now.running = running;
    learn.textContent = running ? "Pause" : "Learn";
    cancelAnimationFrame(frame);
    if (running && calm.matches) {
      while (!now.ended) step();
      run(false);
      show();
    } else if (running && visible) {
      frame = requestAnimationFrame(tick);
    }
  }

  function tick(time) {
    frame = requestAnimationFrame(tick);
    if (time - shownAt < PAUSE) return;
    shownAt = time;
    for (const _ of count(stepsAfter(now.path.length - 1))) step();
    if (now.ended) run(false);
    show();
  }

  // Out of sight nothing moves.
  new IntersectionObserver(([{ isIntersecting }]) => {
    visible = isIntersecting;
    run(now.running);
  }).observe(host);

  // ---- the map
  const edge = 28;
  let scale, svg, parts;
  const toX = (x) => edge + (x - low[0]) * scale;
  const toY = (y) => edge + (high[1] - y) * scale;
  const around = (shape) => shape.map(([x, y]) => `${toX(x)},${toY(y)}`).join("L");

  function draw() {
    const width = Math.min(host.clientWidth, 760);
    scale = (width - 2 * edge) / (high[0] - low[0]);
    stage.replaceChildren();
    svg = add(stage, "svg", { width, height: toY(low[1]) + edge });
    add(svg, "path", { class: "hull", d: `M${around(hull)}Z` });
    parts = {
      rings: add(svg, "g"),
      path: add(svg, "path", { class: "path" }),
      line: add(svg, "path", { class: "mark" }),
      output: add(svg, "circle", { class: "output", r: 6 }),
    };
    addText(svg, toX(first.output[0]) + 8, toY(first.output[1]) + 15, "mean", "small");
    const middle = sum(values.map((value) => value[1])) / values.length;
    targets.forEach(([x, y], i) => {
      const isKey = i < values.length;
      const [left, top] = [toX(x), toY(y)];
      add(svg, "circle", { cx: left, cy: top, r: isKey ? 3.5 : 2 });
      if (isKey) addText(svg, left, top + (y > middle ? -12 : 22), labels[i], "middle");
      else addText(svg, left + 13, top + 5, names[i - values.length], "small");
    });
    parts.target = add(svg, "circle", { class: "target", r: 10 });
    listen();
    show();
  }

  // Every change ends here.
  function show() {
    const { path, target, learning_rate, chosen, state } = now;
    const { weights, output } = state;
    select.value = chosen;
    slider.show(learning_rates.indexOf(learning_rate), learning_rate);
    rows.forEach(({ share, number }, i) => {
      share.style.width = `${100 * weights[i]}%`;
      number.textContent = weights[i].toFixed(2);
    });
    parts.rings.replaceChildren();
    values.forEach(([x, y], i) => {
      const r = 22 * Math.sqrt(weights[i]);
      add(parts.rings, "circle", { class: "ring", cx: toX(x), cy: toY(y), r });
    });
    set(parts.path, { d: `M${around(path.map((point) => point.output))}` });
    set(parts.line, { d: `M${around([output, target])}` });
    set(parts.output, { cx: toX(output[0]), cy: toY(output[1]) });
    set(parts.target, { cx: toX(target[0]), cy: toY(target[1]) });
    drawDistances();
    say(sentence());
  }

  const told = (distance) => `${fixed(distance * factor, data.digits)} ${unit}`.trim();

  function drawDistances() {
    const { path } = now;
    const [width, floor] = [Math.min(host.clientWidth, 360), 106];
    const most = Math.max(...path.map(({ distance }) => distance));
    const steps = Math.max(path.length - 1, 10);
    const line = path.map(({ distance }, i) =>
      `${((width - 12) * i) / steps},${floor - 78 * (distance / most)}`);
    chart.replaceChildren();
    const plot = add(chart, "svg", { width, height: floor + 22 });
    addText(plot, 0, 14, "distance from the target", "name");
    add(plot, "path", { class: "axis", d: `M0,${floor}H${width - 12}` });
    add(plot, "path", { class: "path", d: `M${line.join("L")}` });
    addText(plot, width, 14, `up to ${told(most)}`, "small end");
    addText(plot, 0, floor + 16, "step 0", "small");
    addText(plot, width - 12, floor + 16, steps, "small end");
  }

  function isOutside([x, y]) {
    const sides = hull.map(([a, b], i) => {
      const [c, d] = minus(hull[(i + 1) % hull.length], [a, b]);
      return c * (y - b) - d * (x - a);
    });
    return Math.min(...sides) < 0;
  }

  function sentence() {
    const { path, chosen, target, state, ended } = now;
    const most = Math.max(...state.weights);
    const steps = path.length - 1;
    const wish = elsewhere[chosen];
    const there = chosen < targets.length ? quote(wish) : "the target";
    const distance = `${told(path[steps].distance)} from ${there}`;
    if (!steps) {
      return [`The query is 0 and its ${labels.length} weights are equal, so the output`,
        `is the mean of the values, ${distance}.`].join(" ");
    }
    const how = {
      "": `Step ${steps}: the output is ${distance}.`,
      found: `Found after ${steps} steps: the output is ${distance}.`,
      stuck: `Stuck after ${steps} steps: nothing moves any more, ${distance}.`,
      late: `Not found in ${steps} steps: the output is ${distance}.`,
    };
    return [
      how[ended],
      `The largest weight is ${most.toFixed(2)},`,
      `that of ${quote(labels[state.weights.indexOf(most)])}.`,
      ...(isOutside(target) ? ["Outside the hull no average can arrive."] : []),
    ].join(" ");
  }

  // ---- pointer and keys
  const onMap = (point) =>
    point.map((value, axis) => clamp(value, low[axis], high[axis]));

  function wantAt(point) {
    const at = onMap(point);
    const i = targets.findIndex((target) => apart(target, at) * scale < 14);
    want(i < 0 ? targets.length : i, targets[i] || at);
  }

  function listen() {
    let drag, tap;
    const move = (event) => {
      const [x, y] = placeIn(svg, event);
      wantAt([low[0] + (x - edge) / scale, high[1] - (y - edge) / scale]);
    };
    // A finger drags the ring; elsewhere it taps, or scrolls the page.
    svg.onpointerdown = (event) => {
      const [x, y] = placeIn(svg, event);
      const { cx, cy } = parts.target;
      const away = Math.hypot(x - cx.baseVal.value, y - cy.baseVal.value);
      drag = event.pointerType !== "touch" || away < 26;
      tap = [x, y];
      if (drag) svg.setPointerCapture(event.pointerId);
      if (event.pointerType !== "touch") move(event);
    };
    svg.ontouchstart = (event) => drag && event.preventDefault();
    svg.onpointermove = (event) => drag && move(event);
    svg.onpointercancel = () => (drag = tap = null);
    svg.onpointerup = (event) => {
      if (tap && apart(tap, placeIn(svg, event)) < 8) move(event);
      drag = tap = null;
    };
  }

  restart();
  return draw;
}
