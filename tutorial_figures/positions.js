// Encodings of positions: drag a position, watch its dot products over the distance.

const least = (rows) => Math.min(...rows.map((row) => Math.min(...row)));
const most = (rows) => Math.max(...rows.map((row) => Math.max(...row)));

function positions(root, data, host) {
  const { tokens, d_model } = data;
  const last = tokens - 1;
  const all = count(tokens);
  const fifths = count(5).map((part) => Math.round((part * last) / 4 - 1e-9));
  const others = [...new Set(fifths)];
  const kinds = ["sinusoidal", "rotary"];
  const initially = () => ({ ...data.shown, key: 1 });
  const now = initially();

  // ---- encodings
  const slowness = (pair) => now.base ** ((2 * pair) / d_model);

  // Turns the pairs of a vector to a position.
  const turn = (vector, position) => vector.map((value, i) => {
    const angle = position / slowness(Math.floor(i / 2));
    const partner = i % 2 ? vector[i - 1] : -vector[i + 1];
    return value * Math.cos(angle) + partner * Math.sin(angle);
  });
  const content = (wave) => count(d_model).map((i) => wave((i + 1) ** 2));
  // What a query can meet, and what its curve then does.
  const keys = [
    ["equal to the query", () => content(Math.cos),
      "the same values: the curve peaks at distance 0."],
    ["fits 3 positions back", () => turn(content(Math.cos), 3),
      "values that fit best 3 positions back: the curve peaks at −3, not at 0."],
    ["other values", () => content(Math.sin),
      "values of its own: the curve peaks wherever they fit best."],
  ];
  const upright = count(d_model).map((i) => i % 2);
  const encode = {
    // A hand that points to (0, 1) and turns backward: (sin, cos).
    sinusoidal: (t) => turn(upright, -t),
    rotary: (t) => turn(content(Math.cos), t),
  };
  const isRotary = () => now.kind === "rotary";
  let queries, met, products, low, high, digits;

  function compute() {
    queries = all.map(encode[now.kind]);
    const key = keys[now.key][1]();
    met = isRotary() ? all.map((j) => turn(key, j)) : queries;
    products = queries.map((query) => met.map((other) => times(query, other)));
    low = Math.min(0, least(products));
    high = Math.max(0, most(products));
    const largest = Math.max(-low, high) || 1;
    // An axis needs some length, where all products are 0.
    if (low === high) high = 1;
    // Three digits of the largest; where it is a power of ten, too.
    digits = Math.max(0, 2 - Math.floor(Math.log10(largest) + 1e-6));
  }
  const show = (value) => fixed(Number(value.toFixed(digits)) + 0, digits);
  // The second position keeps its distance as far as there are positions.
  const second = () => clamp(now.position + now.distance, 0, last);

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const kindSelect = addSelect(bar, "encoding", kinds, (i) =>
    redraw({ kind: kinds[i] }));
  const keySelect = addSelect(bar, "key", keys.map(([name]) => name), (key) =>
    choose({ key }));
  const powers = { min: 1, max: 6, step: 0.05 };
  const baseSlider = addSlider(bar, "base", powers, (chosen) =>
    choose({ base: Number((10 ** chosen).toPrecision(2)) }));
  addButton(bar, "reset", () => redraw(initially()));
  const legend = add(root, "div", { class: "bar legend" });
  const [ofFirst, ofSecond, ofOthers] = ["first", "second", "others"].map((name) =>
    add(legend, "span", { class: name }));
  const scale = add(legend, "span", { class: "scale" });
  const [scaleLow, scaleBar, scaleHigh] = ["span", "canvas", "span"].map((tag) =>
    add(scale, tag));
  const help = "plot: left and right move the position, up and down the distance";
  const stage = addStage(root, help, ([right, up]) => {
    if (right) setPosition(now.position + right);
    else setDistance(second() - now.position + up);
  });
  const say = addReadout(root);
  const lesson = add(root, "p");

  // ---- the map above, of keys another one below it if they differ, then the curves
  const left = 40;
  const ceiling = 20;
  let maps, svg, right, middle, floor, top, base;
  let parts = {};
  const toColumn = (t) => left + (t * (right - left)) / tokens;
  const toX = (distance) =>
    left + ((distance + last) * (right - left)) / (2 * last);
  const toY = (value) => top + ((high - value) * (base - top)) / (high - low);

  function draw() {
    const width = Math.min(host.clientWidth, 760);
    right = width - 12;
    const height = clamp(width * 0.24, 120, 170) * (isRotary() ? 0.7 : 1);
    middle = ceiling + height;
    floor = isRotary() ? middle + 32 + height : middle;
    top = floor + 72;
    base = top + clamp(width * 0.28, 150, 190);
    const size = `left:${left}px;width:${right - left}px;height:${height}px`;
    stage.replaceChildren();
    const tops = isRotary() ? [ceiling, floor - height] : [ceiling];
    maps = tops.map((y) => add(stage, "canvas", { style: `top:${y}px;${size}` }));
    svg = add(stage, "svg", { width, height: base + 38 });
    const grid = add(svg, "g");
    // The second position is that of a key.
    const frames = ["halo", "second", "halo", "first"].map((style, i) => {
      const y = (i < 2 ? floor - height : ceiling) - 2;
      return add(svg, "rect", { class: style, y, height: height + 4 });
    });
    const curves = others.map(() => add(svg, "path"));
    parts = {
      grid, frames, curves,
      curve: add(svg, "path", { class: "first" }),
      stem: add(svg, "line", { class: "second" }),
      handle: add(svg, "circle", { class: "first", cy: middle + 7, r: 6 }),
      point: add(svg, "circle", { class: "second", r: 7 }),
    };
    onDrag(svg, begin);
    choose({});
  }

  function drawAxes(limit) {
    const { grid } = parts;
    grid.replaceChildren();
    const write = (x, y, text, style = "small end") => addText(grid, x, y, text, style);
    const rotary = isRotary();
    const named = rotary ? "rotated queries" : "encoding";
    write(left, 10, `${named}: high frequencies above`, "name");
    if (rotary) write(left, middle + 26, "rotated keys", "name");
    for (const bottom of rotary ? [middle, floor] : [floor]) {
      write(left - 6, bottom - (middle - ceiling) + 10, "0");
      write(left - 6, bottom, d_model - 1);
    }
    const step = 2 ** Math.max(0, Math.ceil(Math.log2(tokens / 8)));
    for (const t of all.filter((position) => position % step === 0)) {
      write(toColumn(t + 0.5), floor + 26, t, "small middle");
      // Distances have a sign, so that there is room for every second one.
      const isNamed = t % (2 * step) === 0;
      for (const distance of isNamed ? new Set([-t, t]) : []) {
        const x = toX(distance);
        add(grid, "line", { class: "grid", x1: x, x2: x, y1: top, y2: base });
        write(x, base + 16, fixed(distance, 0), "small middle");
      }
    }
    write(right, floor + 42, rotary ? "position" : "position t", "name end");
    write(left, top - 10, rotary ? "score q·k" : "dot product", "name");
    write(right, base + 32, "distance j − t", "name end");
    for (const value of new Set([low, 0, high])) {
      const y = toY(value);
      const style = value ? "grid" : "axis";
      add(grid, "line", { class: style, x1: left, x2: right, y1: y, y2: y });
      const isCrowded = value && Math.abs(y - toY(0)) < 12;
      if (!isCrowded) write(left - 6, y + 4, show(value));
    }
    scaleLow.textContent = `−${limit.toPrecision(2)}`;
    scaleHigh.textContent = limit.toPrecision(2);
  }
  const path = (t) => {
    const points = products[t].map((value, j) => `${toX(j - t)},${toY(value)}`);
    return { d: `M${points.join("L")}` };
  };

  // Another kind has other maps.
  function redraw(changes) {
    Object.assign(now, changes);
    draw();
  }

  // A change of the encoding ends here, then in move.
  function choose(changes) {
    Object.assign(now, changes);
    compute();
    const both = [...queries, ...met];
    const limit = Math.max(-least(both), most(both)) || 1;
    const dark = isDark(host);
    maps.forEach((canvas, part) => {
      const rows = part ? met : queries;
      const numbers = upright.flatMap((_, i) => rows.map((row) => row[i] / limit));
      paint(canvas, tokens, numbers.map((share) => signedColorOf(share, dark)));
    });
    paint(scaleBar, 81, count(81).map((i) => signedColorOf(i / 40 - 1, dark)));
    kindSelect.value = kinds.indexOf(now.kind);
    keySelect.value = now.key;
    keySelect.parentNode.hidden = !isRotary();
    baseSlider.show(Math.log10(now.base), now.base);
    drawAxes(limit);
    parts.curves.forEach((curve, i) => set(curve, path(others[i])));
    ofOthers.textContent = `positions ${others.join(", ")}`;
    lesson.textContent = explanation();
    move({});
  }

  // Every change ends here.
  function move(changes) {
    Object.assign(now, changes);
    const t = now.position;
    const j = second();
    const x = toX(j - t);
    const y = toY(products[t][j]);
    // Around the columns, not over them.
    const width = toColumn(1) - left + 4;
    [j, j, t, t].forEach((position, i) =>
      set(parts.frames[i], { x: toColumn(position) - 2, width }));
    set(parts.curve, path(t));
    set(parts.handle, { cx: toColumn(t + 0.5) });
    set(parts.stem, { x1: x, x2: x, y1: toY(0), y2: y });
    set(parts.point, { cx: x, cy: y });
    ofFirst.textContent = `position t = ${t}`;
    ofSecond.textContent = `position j = ${j}`;
    say(sentence(t, j));
  }

  function explanation() {
    const slowest = d_model / 2 - 1;
    const turns = Math.round(2 * Math.PI * slowness(slowest));
    return [
      ...(isRotary()
        ? ["Nothing is added: query and key are rotated, the first pair of dimensions by",
          "1 radian per position, each later pair more slowly. Every query has the same",
          `made-up values. Every key has ${keys[now.key][2]}`,
          "Whatever they are, only the distance counts: all curves coincide."]
        : ["Each pair of dimensions is the sine and cosine of an angle, a clock hand:",
          "the first turns by 1 radian per position, each later one more slowly. Dot",
          "products add up the cosines of the angles between hands, and only the",
          "distance counts: all curves coincide."]),
      `The slowest pair, ${slowest}, has a wavelength of ${turns} positions.`,
    ].join(" ");
  }

  function sentence(t, j) {
    const distance = j - t;
    const pairs = all.filter((position) => position + distance in all);
    const alike = pairs.map((position) => products[position][position + distance]);
    const from = show(Math.min(...alike));
    const to = show(Math.max(...alike));
    const score = show(products[t][j]);
    return [
      isRotary()
        ? `Query at position ${t}, key at position ${j}: score ${score}.`
        : `Position ${t} and position ${j}: dot product ${score}.`,
      `All pairs at distance ${fixed(distance, 0)}:`,
      `${from === to ? from : [from, to].join(" to ")}.`,
    ].join(" ");
  }

  // ---- pointer and keys
  const setPosition = (t) => move({ position: clamp(t, 0, last) });
  const setDistance = (distance) => {
    const { position } = now;
    move({ distance: clamp(distance, -position, last - position) });
  };

  // The maps are dragged column by column, the curves by distances.
  function begin(_, y) {
    const shareAt = (x) => (x - left) / (right - left);
    const column = (x) => Math.floor(shareAt(x) * tokens);
    if (y >= floor + 30) {
      return (x) => setDistance(Math.round(2 * shareAt(x) * last) - last);
    }
    const isKey = y >= middle + 15 && isRotary();
    return isKey ? (x) => setDistance(column(x) - now.position)
      : (x) => setPosition(column(x));
  }

  return draw;
}
