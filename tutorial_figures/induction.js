// A small model learns in the page: its loss, its two maps, and its heads to switch off.

// The worker only trains, and sends its weights after a few steps. What is shown is
// computed on the page, so that a head is off at once.
function inductionWorker() {
  const together = 4;
  let model, running;
  let done = 0;

  function go() {
    if (!running) return;
    let loss = 0;
    for (let i = 0; i < together; i += 1) loss += model.step() / together;
    done += together;
    self.postMessage({ done, loss, weights: model.weights });
    setTimeout(go);
  }

  self.onmessage = ({ data }) => {
    model = model || inductionModel(data.sizes);
    const starts = data.running && !running;
    running = data.running;
    if (starts) setTimeout(go);
  };
}

const toLetter = (word) => String.fromCharCode(97 + word);

function induction(root, data, host) {
  const { sizes } = data;
  const { tokens, vocab, steps } = sizes;
  const model = inductionModel(sizes);
  const first = model.weights.slice();
  const texts = count(48).map(model.draw);
  const [{ text, known }] = texts;
  const names = text.map(toLetter);
  const now = { off: [false, false], query: known.at(-1) };
  let thread, visible, parts;

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const train = addButton(bar, "Train", () => run(!now.running));
  addButton(bar, "Start over", restart);
  const boxes = [0, 1].map((layer) =>
    addCheckbox(bar, `head of layer ${layer}`, (on) => {
      now.off[layer] = !on;
      show();
    }));
  boxes.forEach((box) => (box.checked = true));
  const chart = add(root, "div");
  const stage = addStage(root, "two maps: the arrow keys move the query",
    ([right, up]) => choose(now.query + right - up));
  const say = addReadout(root);

  // ---- training
  function restart() {
    thread?.terminate();
    thread = null;
    model.weights.set(first);
    Object.assign(now, { step: 0, running: false, history: [] });
    now.history.push({ step: 0, ...model.measure(texts, []), loss: Math.log(vocab) });
    run(false);
    show();
  }

  function run(running) {
    if (running && now.step >= steps) restart();
    now.running = running;
    train.textContent = running ? "Pause" : "Train";
    if (running && !thread) open();
    thread?.postMessage({ sizes, running: running && visible });
  }

  // The text of the function that is used here runs there.
  function open() {
    const source = `${inductionModel}\n${inductionWorker}\ninductionWorker();`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    thread = new Worker(address);
    URL.revokeObjectURL(address);
    thread.onmessage = (event) => learned(event.data);
    thread.onerror = () => say("This page lets nothing be computed beside it.");
  }

  function learned({ done, loss, weights }) {
    if (!now.running || done > steps) return;
    model.weights.set(weights);
    now.step = done;
    now.history.push({ step: done, ...model.measure(texts, []), loss });
    if (done === steps) run(false);
    show();
  }

  // Out of sight nothing is computed.
  new IntersectionObserver(([{ isIntersecting }]) => {
    visible = isIntersecting;
    run(now.running);
  }).observe(host);

  // ---- what is shown
  const rows = [
    ["loss", "loss", Math.log(vocab) * 1.1],
    ["prefix matching", "prefix", 1],
    ["accuracy", "accuracy", 1],
  ];

  function drawHistory(width) {
    chart.replaceChildren();
    const [wide, high, top] = [Math.floor(width / 3) - 12, 60, 36];
    const svg = add(chart, "svg", { width, height: top + high + 18 });
    rows.forEach(([name, key, most], i) => {
      const left = i * (wide + 18);
      const at = ({ step, [key]: value }) =>
        `${left + (wide * step) / steps},${top + high * Math.max(0, 1 - value / most)}`;
      const cut = now.off.some(Boolean) && key in now.score;
      const last = now.history.at(-1)[key];
      add(svg, "path", { class: "axis", d: `M${left},${top + high}h${wide}` });
      add(svg, "path", { d: `M${now.history.map(at).join("L")}` });
      const [endX, endY] = at(now.history.at(-1)).split(",");
      add(svg, "circle", { class: "newest", cx: endX, cy: endY, r: 3 });
      const middle = [left + wide / 2, top + high / 2 + 4];
      if (!now.step) addText(svg, ...middle, "press Train", "small middle");
      addText(svg, left, 12, name, "name small");
      const shown = cut ? now.score[key] : last;
      addText(svg, left, 27, shown.toFixed(3), `small ${cut ? "cut" : ""}`);
      if (!cut) return;
      const [x, y] = at({ step: now.step, [key]: shown }).split(",");
      add(svg, "circle", { class: "cut", cx: x, cy: y, r: 4 });
    });
    addText(svg, 0, top + high + 14, "step 0", "small");
    addText(svg, wide, top + high + 14, steps, "small end");
  }

  function draw() {
    const width = Math.min(host.clientWidth, 760);
    const side = width < 560 ? Math.min(width, 300) : (width - 24) / 2;
    const cell = (side - 20) / tokens;
    stage.replaceChildren();
    parts = [0, 1].map((layer) => {
      const map = add(stage, "div", { class: "map" });
      add(map, "span", { class: "name" }, `layer ${layer}`);
      const field = add(map, "div", { class: "field" });
      const size = `left:20px;top:20px;width:${tokens * cell}px;height:${tokens * cell}px`;
      const canvas = add(field, "canvas", { style: size });
      const svg = add(field, "svg", { width: side, height: side });
      names.slice(0, tokens).forEach((name, i) => {
        const middle = 20 + (i + 0.5) * cell;
        addText(svg, middle, 14, name, "middle tiny");
        addText(svg, 10, middle + 4, name, "middle tiny");
      });
      const row = add(svg, "rect", { class: "row", x: 20, width: tokens * cell });
      const wanted = add(svg, "g");
      svg.onclick = (event) => choose(Math.floor((placeIn(svg, event)[1] - 20) / cell));
      return { canvas, row, wanted, cell };
    });
    show();
  }

  function choose(query) {
    now.query = clamp(query, 0, tokens - 1);
    show();
  }

  // Who has to look where, [row, column]: in layer 1 the query at what followed its
  // word, and that in layer 0 at the word before.
  const sought = (layer, query) => count(query)
    .filter((before) => text[before] === text[query])
    .map((before) => (layer ? [query, before + 1] : [before + 1, before]));

  // Every change ends here.
  function show() {
    if (!parts) return;
    now.score = model.measure(texts, now.off);
    drawHistory(Math.min(host.clientWidth, 760));
    model.read(text, now.off);
    const dark = host.hasAttribute("data-dark");
    parts.forEach(({ canvas, row, wanted, cell }, layer) => {
      paint(canvas, tokens, [...model.maps[layer]].map((weight) => colorOf(weight, dark)));
      canvas.classList.toggle("off", now.off[layer]);
      const wantedCells = sought(layer, now.query);
      const [reader] = wantedCells.at(-1) ?? [now.query];
      set(row, { y: 20 + reader * cell, height: cell });
      wanted.replaceChildren();
      for (const [y, x] of wantedCells) {
        const frame = { x: 20 + x * cell, y: 20 + y * cell, width: cell, height: cell };
        add(wanted, "rect", { class: "sought", ...frame });
      }
    });
    say(sentence());
  }

  function sentence() {
    const { query, step, score, off } = now;
    const probs = model.probs.subarray(query * vocab, (query + 1) * vocab);
    const best = probs.indexOf(Math.max(...probs));
    const missing = off.map((is, layer) => is && `layer ${layer}`).filter(Boolean);
    const weights = [0, 1].map((layer) => sought(layer, query).map(([row, column]) =>
      model.maps[layer][row * tokens + column]));
    const [asks, follows] = [query, sought(1, query)[0]?.[1]].map((i) => quote(names[i]));
    const ofOne = sum(weights[0]) / (weights[0].length || 1);
    const here = `${sum(weights[1]).toFixed(2)} to ${follows}`;
    const before = `${ofOne.toFixed(2)} to the ${asks} before it`;
    const attended = weights[0].length
      ? [off[1] ? "" : `layer 1 gives ${here}, which followed ${asks} earlier;`,
        off[0] ? "" : `layer 0 gives, from that ${follows}, ${before};`]
      : ["which stands here for the first time,"];
    return [
      step ? `After ${step} steps` : "Not trained yet:",
      missing.length ? `and without the head of ${missing.join(" and ")},` : "",
      `${(100 * score.accuracy).toFixed(0)} % of the letters that can be known are right.`,
      `From ${asks}, position ${query},`,
      ...attended,
      `the model predicts ${quote(toLetter(best))} (${probs[best].toFixed(2)}).`,
    ].filter(Boolean).join(" ");
  }

  restart();
  return draw;
}
