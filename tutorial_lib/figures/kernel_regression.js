// Nadaraya–Watson regression: drag the query, drag the width, edit the points.

// The kernels of tutorial_lib.kernels, of the distance in widths. Rounded to float32,
// as there, so that a far query finds no weight here exactly where it does there.
const KERNELS = {
  gaussian: (u) => Math.fround(Math.exp((-u * u) / 2)),
  boxcar: (u) => (Math.abs(u) <= 1 ? 1 : 0),
  epanechnikov: (u) => Math.max(0, 1 - u * u),
  triangular: (u) => Math.max(0, 1 - Math.abs(u)),
  constant: () => 1,
};

function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  return count(Math.floor(high / step) - first + 1).map((i) => {
    const value = (first + i) * step;
    return [value, fixed(value, digits)];
  });
}

function kernel_regression(root, data, host) {
  const original = data.x.map((x, i) => ({ x, y: data.y[i] }));
  const state = { ...data.shown, points: [...original], editing: false };
  const { low, high, bottom, top } = data.frame;
  const span = high - low;
  const cursor = { x: state.query, y: (bottom + top) / 2 }; // of the keyboard

  // ---- the estimator
  const kernelAt = (distance) => KERNELS[state.kernel](distance / state.width);
  const sum = (values) => values.reduce((total, value) => total + value, 0);

  function weightsOf(query) {
    const similarities = state.points.map(({ x }) => kernelAt(x - query));
    const total = sum(similarities);
    return similarities.map((similarity) => (total > 0 ? similarity / total : 0));
  }

  // null where no point has any weight: there is nothing to average.
  function estimateAt(query, weights = weightsOf(query)) {
    if (!weights.some((weight) => weight > 0)) return null;
    return sum(weights.map((weight, i) => weight * state.points[i].y));
  }

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const choices = Object.keys(KERNELS).map((name) => [name, name]);
  addSelect(bar, "kernel", choices, state.kernel, (kernel) => {
    state.kernel = kernel;
    refresh();
  });
  const querySlider = addSlider(
    bar, "query", { min: low, max: high, step: span / 500 },
    (value) => fixed(Number(value), 2),
    (value) => setQuery(value),
  );
  const narrowest = Math.log(span / 300);
  const widest = Math.log(span * 2);
  const widthSlider = addSlider(
    bar, "width", { min: narrowest, max: widest, step: (widest - narrowest) / 300 },
    (value) => Math.exp(value).toPrecision(3),
    (value) => setWidth(Math.exp(value)),
  );
  const edit = addButton(bar, "edit points", () => setEditing(!state.editing));
  addButton(bar, "reset", () => {
    Object.assign(state, data.shown, { points: [...original] });
    bar.querySelector("select").value = state.kernel;
    refresh();
  });
  const stage = add(root, "div", { tabindex: 0, role: "application", class: "stage" });
  const say = addReadout(root);

  function setQuery(query) {
    state.query = clamp(query, low, high);
    refresh();
  }

  function setWidth(width) {
    state.width = clamp(width, Math.exp(narrowest), Math.exp(widest));
    refresh();
  }

  function setEditing(editing) {
    state.editing = editing;
    edit.setAttribute("aria-pressed", editing);
    stage.classList.toggle("editing", editing);
    stage.setAttribute(
      "aria-label",
      editing
        ? "plot, editing points: arrow keys move the cross, Enter adds a point or removes the one under the cross"
        : "plot: left and right move the query, up and down change the width",
    );
    refresh();
  }

  // ---- the plot
  let plot;

  function draw() {
    const width = Math.min(host.clientWidth, 760);
    const height = clamp(width * 0.42, 190, 280);
    const [left, right, barsTop, barsBottom] = [38, width - 12, height + 46, height + 120];
    const toX = (x) => left + ((x - low) / span) * (right - left);
    const toY = (y) => 10 + ((top - y) / (top - bottom)) * (height - 10);
    stage.replaceChildren();
    const svg = add(stage, "svg", { width, height: barsBottom + 24 });
    addAxes(svg, { left, right, height, barsTop, barsBottom, toX, toY });
    const truth = data.truth.map(([x, y], i) => `${i ? "L" : "M"}${toX(x)},${toY(y)}`);
    add(svg, "path", { class: "truth", d: truth.join("") });
    plot = {
      svg, width, height, left, right, barsTop, barsBottom, toX, toY,
      fromX: (x) => low + ((x - left) / (right - left)) * span,
      fromY: (y) => top - ((y - 10) / (height - 10)) * (top - bottom),
      window: add(svg, "path", { class: "window" }),
      curve: add(svg, "path", { class: "curve" }),
      line: add(svg, "line", { class: "query" }),
      dots: add(svg, "g"),
      bars: add(svg, "g"),
      reach: add(svg, "line", { class: "query" }),
      widthHandle: add(svg, "circle", { class: "handle hollow", r: 9 }),
      queryHandle: add(svg, "circle", { class: "handle", r: 9 }),
      cross: add(svg, "path", { class: "cross" }),
    };
    listen(svg);
    refresh();
  }

  function addAxes(svg, { left, right, height, barsTop, barsBottom, toX, toY }) {
    for (const [value, text] of ticks(low, high, right > 500 ? 10 : 5)) {
      const x = toX(value);
      add(svg, "line", { class: "grid", x1: x, x2: x, y1: 10, y2: barsBottom });
      add(svg, "text", { class: "small", x, y: barsBottom + 16, "text-anchor": "middle" }, text);
    }
    for (const [value, text] of ticks(bottom, top, 5)) {
      const y = toY(value);
      add(svg, "line", { class: "grid", x1: left, x2: right, y1: y, y2: y });
      add(svg, "text", { class: "small", x: left - 6, y: y + 4, "text-anchor": "end" }, text);
    }
    for (const y of [height, barsBottom]) {
      add(svg, "line", { class: "axis", x1: left, x2: right, y1: y, y2: y });
    }
    add(svg, "text", { x: left, y: barsTop - 14 }, "weight of each point");
  }

  function shapeOfWindow() {
    const { toX, height, left, right } = plot;
    const heights = count(241).map((i) => {
      const x = low + (span * i) / 240;
      return `L${toX(x)},${height - 0.3 * height * kernelAt(x - state.query)}`;
    });
    return `M${left},${height}${heights.join("")}L${right},${height}Z`;
  }

  function shapeOfCurve() {
    const { toX, toY } = plot;
    let pen = "M";
    return count(321).map((i) => {
      const x = low + (span * i) / 320;
      const y = estimateAt(x);
      const piece = y === null ? "" : `${pen}${toX(x)},${toY(y)}`;
      pen = y === null ? "M" : "L";
      return piece;
    }).join("");
  }

  function drawPoints(weights) {
    const { dots, bars, toX, toY, barsTop, barsBottom } = plot;
    const largest = Math.max(...weights, 1e-9);
    dots.replaceChildren();
    bars.replaceChildren();
    state.points.forEach(({ x, y }, i) => {
      const share = weights[i] / largest;
      const place = { cx: toX(x), cy: toY(y), r: 3.5 + 3.5 * share };
      add(dots, "circle", { ...place, class: "dot", "fill-opacity": 0.3 + 0.7 * share });
      const end = barsBottom - share * (barsBottom - barsTop);
      add(bars, "line", { x1: toX(x), x2: toX(x), y1: barsBottom, y2: end, class: "weight" });
    });
  }

  // The handle hangs where the window ends, on the side where there is room for it.
  function placeWidthHandle() {
    const { reach, widthHandle, toX, height } = plot;
    const { query, width, kernel } = state;
    const fits = [query + width, query - width].find((x) => x >= low && x <= high);
    const x = toX(fits ?? high);
    const visibility = kernel === "constant" || state.editing ? "hidden" : "visible";
    set(reach, { x1: toX(query), x2: x, y1: height, y2: height, visibility });
    set(widthHandle, { cx: x, cy: height, visibility });
  }

  function refresh() {
    if (!plot) return;
    const { line, queryHandle, cross, toX, toY, barsBottom, height } = plot;
    const weights = weightsOf(state.query);
    const estimate = estimateAt(state.query, weights);
    const x = toX(state.query);
    querySlider.show(state.query);
    widthSlider.show(Math.log(state.width));
    widthSlider.disabled = state.kernel === "constant";
    set(plot.window, { d: shapeOfWindow() });
    set(plot.curve, { d: shapeOfCurve() });
    set(line, { x1: x, x2: x, y1: 10, y2: barsBottom });
    set(queryHandle, { cx: x, cy: estimate === null ? height / 2 : toY(estimate) });
    set(cross, {
      d: `M${toX(cursor.x) - 9},${toY(cursor.y)}h18m-9,-9v18`,
      visibility: state.editing ? "visible" : "hidden",
    });
    drawPoints(weights);
    placeWidthHandle();
    say(sentence(weights, estimate));
  }

  function sentence(weights, estimate) {
    const help = state.editing
      ? "Click to add a point, drag to draw many, click a point to remove it. "
      : "";
    const query = `At the query ${fixed(state.query, 2)}`;
    if (estimate === null) {
      return `${help}${query} there is no point within the width: every weight is 0 and there is nothing to average (0/0), so the curve has a gap. The library returns 0 there.`;
    }
    const effective = 1 / sum(weights.map((weight) => weight * weight));
    return `${help}${query} the estimate is ${fixed(estimate, 2)}, the weighted mean of ${state.points.length} values. The largest weight is ${Math.max(...weights).toFixed(3)}; the effective number of points, 1/Σw², is ${effective.toFixed(1)}.`;
  }

  // ---- pointer and keys
  function nearestPoint(x, y) {
    const { toX, toY } = plot;
    const distance = (point) => Math.hypot(toX(point.x) - x, toY(point.y) - y);
    const nearest = [...state.points].sort((a, b) => distance(a) - distance(b))[0];
    return nearest && distance(nearest) <= 12 ? nearest : null;
  }

  function addPoint(x, y) {
    state.points.push({
      x: clamp(plot.fromX(x), low, high),
      y: clamp(plot.fromY(y), bottom, top),
    });
    refresh();
  }

  // Returns whether a point was added.
  function addOrRemove(x, y) {
    const point = nearestPoint(x, y);
    if (!point) addPoint(x, y);
    else state.points.splice(state.points.indexOf(point), 1);
    refresh();
    return !point;
  }

  function listen(svg) {
    let drag = null;
    let last;
    const place = (event) => {
      const edge = svg.getBoundingClientRect();
      return [event.clientX - edge.left, event.clientY - edge.top];
    };
    const moves = {
      query: (x) => setQuery(plot.fromX(x)),
      width: (x) => setWidth(Math.abs(plot.fromX(x) - state.query)),
      draw: (x, y) => {
        if (Math.hypot(x - last[0], y - last[1]) < 22) return;
        last = [x, y];
        addPoint(x, y);
      },
    };
    svg.onpointerdown = (event) => {
      const [x, y] = (last = place(event));
      const handle = plot.widthHandle;
      const toHandle = Math.hypot(x - handle.getAttribute("cx"), y - handle.getAttribute("cy"));
      if (state.editing) drag = y <= plot.height && addOrRemove(x, y) ? "draw" : null;
      else drag = toHandle <= 18 && state.kernel !== "constant" ? "width" : "query";
      if (drag === "query") moves.query(x);
      svg.setPointerCapture(event.pointerId);
    };
    svg.onpointermove = (event) => drag && moves[drag](...place(event));
    svg.onpointerup = svg.onpointercancel = () => (drag = null);
  }

  stage.onkeydown = (event) => {
    const move = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    const enter = state.editing && (event.key === "Enter" || event.key === " ");
    if (!move && !enter) return;
    event.preventDefault();
    if (enter) addOrRemove(plot.toX(cursor.x), plot.toY(cursor.y));
    else if (state.editing) moveCursor(...move);
    else if (move[0]) setQuery(state.query + (move[0] * span) / 100);
    else setWidth(state.width * 1.1 ** move[1]);
  };

  function moveCursor(right, up) {
    cursor.x = clamp(cursor.x + (right * span) / 50, low, high);
    cursor.y = clamp(cursor.y + (up * (top - bottom)) / 25, bottom, top);
    refresh();
  }

  setEditing(false);
  return draw;
}
