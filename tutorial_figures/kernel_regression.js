// Nadaraya–Watson regression: drag the query, drag the bandwidth, edit the points.

// The kernels of tutorial_lib.kernels, of the distance in bandwidths. In float32, as
// there, so that a query is too far from every point here exactly where it is there.
const KERNELS = {
  gaussian: (u) => Math.fround(Math.exp((-u * u) / 2)),
  boxcar: (u) => (Math.abs(u) <= 1 ? 1 : 0),
  epanechnikov: (u) => Math.max(0, 1 - u * u),
  triangular: (u) => Math.max(0, 1 - Math.abs(u)),
  constant: () => 1,
};
const NAMES = Object.keys(KERNELS);

function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const first = Math.ceil(low / step);
  return count(Math.floor(high / step) - first + 1).map((i) => {
    const value = (first + i) * step;
    return [value, fixed(value, digits)];
  });
}

function kernel_regression(root, data, host) {
  const { low, high, bottom, top, digits } = data;
  const span = high - low;
  const points = data.points.map(([x, y]) => ({ x, y }));
  const initially = () => ({ ...data.shown, points });
  const now = { ...initially(), editing: false };
  const cursor = { x: low + 0.6 * span, y: (bottom + top) / 2 };

  const kernelAt = (distance) => KERNELS[now.kernel](distance / now.bandwidth);

  // All 0 where no point is near enough: there is nothing to average.
  function weightsOf(query) {
    const similarities = now.points.map(({ x }) => kernelAt(x - query));
    const total = sum(similarities) || 1;
    return similarities.map((similarity) => similarity / total);
  }

  function estimateAt(query) {
    const weights = weightsOf(query);
    if (!sum(weights)) return null;
    return sum(weights.map((weight, i) => weight * now.points[i].y));
  }

  // ---- controls: the values used are the values shown
  const bar = add(root, "div", { class: "bar" });
  const select = addSelect(bar, "kernel", NAMES, (i) => change({ kernel: NAMES[i] }));
  const queries = { min: low, max: high, step: 10 ** -digits[0] };
  const querySlider = addSlider(bar, "query", queries, setQuery);
  const narrow = Math.log(span / 300);
  const wide = Math.log(span * 2);
  const bandwidths = { min: narrow, max: wide, step: (wide - narrow) / 300 };
  const bandwidthSlider = addSlider(bar, "bandwidth", bandwidths, (power) =>
    setBandwidth(Math.exp(power)));
  const edit = addButton(bar, "edit points", () =>
    change({ editing: !now.editing }));
  addButton(bar, "reset", () => change(initially()));
  const legend = add(root, "div", { class: "bar legend" });
  const truth = data.truth.length ? ["truth"] : [];
  for (const name of ["estimate", ...truth, "kernel"]) {
    add(legend, "span", { class: `key-${name}` }, name);
  }
  const stage = addStage(root, "", ([right, up]) => {
    if (now.editing) {
      cursor.x = clamp(cursor.x + (right * span) / 50, low, high);
      cursor.y = clamp(cursor.y + (up * (top - bottom)) / 25, bottom, top);
      change({});
    } else if (right) {
      setQuery(now.query + (right * span) / 100);
    } else {
      setBandwidth(now.bandwidth * 1.1 ** up);
    }
  });
  const say = addReadout(root);

  function setQuery(query) {
    change({ query: Number(clamp(query, low, high).toFixed(digits[0])) });
  }

  function setBandwidth(bandwidth) {
    const near = clamp(bandwidth, Math.exp(narrow), Math.exp(wide));
    change({ bandwidth: Number(near.toPrecision(3)) });
  }

  // ---- the plot
  const left = 40;
  const tall = 74;
  let svg, right, floor, base;
  let parts = {};
  const toX = (x) => left + ((x - low) / span) * (right - left);
  const toY = (y) => 20 + ((top - y) / (top - bottom)) * (floor - 20);
  const fromX = (x) => clamp(low + ((x - left) / (right - left)) * span, low, high);
  const fromY = (y) =>
    clamp(top - ((y - 20) / (floor - 20)) * (top - bottom), bottom, top);
  const path = (places) => places.map(([x, y]) => `${toX(x)},${toY(y)}`).join("L");

  function draw() {
    const width = Math.min(host.clientWidth, 760);
    right = width - 10;
    floor = clamp(width * 0.42, 200, 280);
    base = floor + 44 + tall;
    stage.replaceChildren();
    svg = add(stage, "svg", { width, height: base + 38 });
    drawAxes();
    add(svg, "path", { class: "truth", d: truth.length ? `M${path(data.truth)}` : "" });
    parts = {
      scale: addText(svg, left - 6, base - tall + 4, "", "small end"),
      kernel: add(svg, "path", { class: "kernel" }),
      curve: add(svg, "path", { class: "curve" }),
      line: add(svg, "line", { class: "mark" }),
      dots: add(svg, "g", { class: "dots" }),
      bars: add(svg, "g"),
      reach: add(svg, "line", { class: "mark" }),
      bandwidthHandle: add(svg, "circle", { class: "handle hollow", r: 9 }),
      queryHandle: add(svg, "circle", { r: 9 }),
      cross: add(svg, "path", { class: "mark" }),
    };
    onDrag(svg, begin, () => now.editing);
    change({});
  }

  function drawAxes() {
    const line = (style, x1, y1, x2, y2) =>
      add(svg, "line", { class: style, x1, y1, x2, y2 });
    for (const [value, text] of ticks(low, high, right > 500 ? 10 : 5)) {
      line("grid", toX(value), 20, toX(value), base);
      addText(svg, toX(value), base + 16, text, "small middle");
    }
    for (const [value, text] of ticks(bottom, top, 5)) {
      line("grid", left, toY(value), right, toY(value));
      addText(svg, left - 6, toY(value) + 4, text, "small end");
    }
    line("axis", left, floor, right, floor);
    line("axis", left, base, right, base);
    addText(svg, left - 6, base + 4, "0", "small end");
    addText(svg, left, 10, "value y", "name values");
    addText(svg, left, floor + 30, "weight of each point", "name");
    addText(svg, right, base + 32, "key x", "name end keys");
  }

  function curve() {
    const places = count(481).map((i) => low + (span * i) / 480);
    const estimates = places.map((x) => [x, estimateAt(x)]);
    let command = "M";
    return estimates.map((point) => {
      const piece = point[1] === null ? "" : command + path([point]);
      command = piece ? "L" : "M";
      return piece;
    }).join("");
  }

  function drawPoints(weights, largest) {
    parts.dots.replaceChildren();
    parts.bars.replaceChildren();
    now.points.forEach(({ x, y }, i) => {
      const share = weights[i] / (largest || 1);
      const dot = { cx: toX(x), cy: toY(y), r: 3.5 + 3.5 * share };
      add(parts.dots, "circle", { ...dot, "fill-opacity": 0.4 + 0.6 * share });
      const line = { x1: toX(x), x2: toX(x), y1: base, y2: base - tall * share };
      add(parts.bars, "line", { ...line, class: "weight" });
    });
  }

  // Every change ends here.
  function change(changes) {
    Object.assign(now, changes);
    const { query, bandwidth, kernel, editing } = now;
    const weights = weightsOf(query);
    const estimate = estimateAt(query);
    const largest = Math.max(0, ...weights);
    const none = estimate === null;
    const steady = kernel === "constant";
    select.value = NAMES.indexOf(kernel);
    querySlider.show(query, fixed(query, digits[0]));
    bandwidthSlider.show(Math.log(bandwidth), bandwidth.toPrecision(3));
    bandwidthSlider.disabled = steady;
    set(edit, { "aria-pressed": editing });
    set(stage, { class: editing ? "stage editing" : "stage" });
    stage.ariaLabel = editing
      ? "plot: arrow keys move the cross, Enter adds a point or removes the nearest"
      : "plot: left and right move the query, up and down the bandwidth";
    const x = toX(query);
    // The bandwidth's handle hangs on the side of the query where there is room.
    const ends = [query + bandwidth, query - bandwidth, high];
    const edge = toX(ends.find((end) => end >= low && end <= high));
    const handles = steady || editing ? "hidden" : "visible";
    // A boxcar's walls stand upright only if both their ends are among the places.
    const walls = [-1.0001, -1, 1, 1.0001].map((u) => query + u * bandwidth);
    const inside = walls.map((wall) => clamp(wall, low, high));
    const around = [...count(161).map((i) => low + (span * i) / 160), ...inside];
    const heights = around
      .sort((a, b) => a - b)
      .map((at) => `L${toX(at)},${floor - 0.3 * floor * kernelAt(at - query)}`);
    set(parts.kernel, { d: `M${left},${floor}${heights.join("")}L${right},${floor}` });
    set(parts.curve, { d: curve() });
    set(parts.line, { x1: x, x2: x, y1: 20, y2: base });
    set(parts.reach, { x1: x, x2: edge, y1: floor, y2: floor, visibility: handles });
    set(parts.bandwidthHandle, { cx: edge, cy: floor, visibility: handles });
    set(parts.queryHandle, { cx: x, cy: none ? floor / 2 : toY(estimate) });
    set(parts.queryHandle, { class: none ? "handle hollow" : "handle" });
    const cross = `M${toX(cursor.x) - 9},${toY(cursor.y)}h18m-9,-9v18`;
    set(parts.cross, { d: cross, visibility: editing ? "visible" : "hidden" });
    parts.scale.textContent = largest ? largest.toFixed(3) : "";
    drawPoints(weights, largest);
    say(sentence(weights, estimate, largest));
  }

  function sentence(weights, estimate, largest) {
    const shared = Math.exp(entropyOf(weights));
    const help = "Click to add a point, drag to add many, click a point to remove it.";
    return [
      ...(now.editing ? [help] : []),
      `At the query ${fixed(now.query, digits[0])}`,
      ...(estimate === null
        ? ["no point lies within the bandwidth: every weight is 0, the mean would be",
          "0/0, and the curve has a gap (the library returns 0)."]
        : [`the estimate is ${fixed(estimate, digits[1])}, the weighted mean of`,
          `${weights.length} values; the largest weight is ${largest.toFixed(3)}, as`,
          `if ${shared.toFixed(1)} of them shared the weight equally.`]),
    ].join(" ");
  }

  // ---- pointer and keys
  // Returns whether there was no point to remove.
  function addOrRemove(x, y) {
    const distance = (point) => Math.hypot(toX(point.x) - x, toY(point.y) - y);
    const [nearest] = [...now.points].sort((a, b) => distance(a) - distance(b));
    const isNew = !nearest || distance(nearest) > 12;
    const kept = now.points.filter((point) => isNew || point !== nearest);
    const added = isNew ? [{ x: fromX(x), y: fromY(y) }] : [];
    change({ points: [...kept, ...added] });
    return isNew;
  }

  // More points are added on the way of a drag that began by adding one.
  function beginPoints(x, y) {
    const isOnPlot = y < floor + 9;
    if (!isOnPlot || !addOrRemove(x, y)) return null;
    let last = [x, y];
    return (...place) => {
      if (Math.hypot(place[0] - last[0], place[1] - last[1]) < 24) return;
      last = place;
      addOrRemove(...place);
    };
  }

  function begin(x, y) {
    if (now.editing) return beginPoints(x, y);
    const { cx, cy } = parts.bandwidthHandle;
    const away = Math.hypot(x - cx.baseVal.value, y - cy.baseVal.value);
    if (away >= 16 || now.kernel === "constant") return (at) => setQuery(fromX(at));
    return (at) => setBandwidth(Math.abs(fromX(at) - now.query));
  }

  stage.addEventListener("keydown", (event) => {
    if (!now.editing || ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    addOrRemove(toX(cursor.x), toY(cursor.y));
  });

  return draw;
}
