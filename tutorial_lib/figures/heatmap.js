// The heatmap. Returns the functions that color it and mark what a reader points at.

function drawHeatmap(scene, { left, top, cell, flat, named, reach }) {
  const { queries, keys, names, cells, now, weight } = scene;
  const [wide, high] = [cell * keys.length, cell * queries.length];
  const [x, y] = [(key) => left + cell * key, (query) => top + cell * query];
  const box = add(scene.views, "div", { tabindex: 0, role: "application" });
  box.ariaLabel = `heatmap, ${names[0]} by ${names[1]}, arrow keys move`;
  const canvas = add(box, "canvas", {
    style: `left:${left}px;top:${top}px;width:${wide}px;height:${high}px`,
  });
  const svg = add(box, "svg", { width: left + wide + reach, height: top + high + 2 });

  const addLabel = (token, right, down, angle, style) => {
    const transform = `translate(${right},${down}) rotate(${angle})`;
    return add(svg, "text", { transform, class: style }, shorten(token, scene.room));
  };
  addLabel(names[1], left + wide / 2, 12, 0, "name middle");
  addLabel(names[0], 11, top + high / 2, -90, "name middle");
  const rowLabels = (named ? queries : []).map((token, query) =>
    addLabel(token, left - 6, y(query + 0.5) + 4.5, 0, "end"));
  const [angle, shift, style] = flat
    ? [0, 0, "middle"]
    : [-45, 4, cell < 18 && "small"];
  const columnLabels = (named ? keys : []).map((token, key) =>
    addLabel(token, x(key + 0.5) + shift, top - 6, angle, style));

  const addPath = (kind, isIn, draw) => {
    const d = cells.filter((pair) => isIn(...pair)).map(draw).join("");
    add(svg, "path", { class: kind, d });
  };
  const half = cell / 2;
  addPath("hatch", scene.isMasked, ([query, key]) =>
    `M${x(key)},${y(query) + half}l${half},${-half}m${half},0l${-cell},${cell}` +
    `m${half},0l${half},${-half}`);
  // Inset, so that neighbors stay apart and the pointer's frame goes around it; in two
  // tones, of which one stands out from any cell.
  const side = cell - 4;
  const square = ([query, key]) =>
    `M${x(key) + 2},${y(query) + 2}h${side}v${side}h${-side}z`;
  for (const tone of ["halo", "outline"]) addPath(tone, scene.isFramed, square);
  const numbers = (cell >= 27 && cells.length <= 144 ? cells : []).map(([query, key]) =>
    addText(svg, x(key + 0.5), y(query + 0.5) + 4, "", "small number middle"));
  const frame = add(svg, "rect", { class: "frame" });

  scene.listen(box, (right, down) => {
    const query = Math.floor((down - top) / cell);
    const key = Math.floor((right - left) / cell);
    return query in queries && key in keys ? [query, key] : [-1, -1];
  });
  box.onkeydown = (event) => {
    const move = ARROWS[event.key];
    if (event.key === "Escape") scene.point(-1, -1);
    if (!move) return;
    event.preventDefault();
    const query = clamp(now.query - move[1], -1, queries.length - 1);
    scene.point(query, clamp(now.key + move[0], -1, keys.length - 1), true);
  };

  function recolour() {
    const tops = queries.map((_, query) => now.stretched
      ? Math.max(0.001, ...keys.map((__, key) => weight(query, key)))
      : 1);
    const shadeOf = (query, key) => weight(query, key) / tops[query];
    scene.paintCells(canvas, now.head, shadeOf);
    numbers.forEach((number, i) => {
      const shade = shadeOf(...cells[i]);
      number.style.fill =
        (isDark(box) ? shade > 0.35 : shade < 0.65) ? "black" : "white";
      number.textContent = shade ? weight(...cells[i]).toFixed(2) : "";
    });
  }

  function mark() {
    const { query, key } = now;
    set(frame, {
      x: x(Math.max(0, key)),
      y: y(Math.max(0, query)),
      width: key < 0 ? wide : cell,
      height: query < 0 ? high : cell,
      visibility: scene.isChosen() ? "visible" : "hidden",
    });
    rowLabels.forEach((label, i) => embolden(label, i === query));
    columnLabels.forEach((label, j) => embolden(label, j === key));
  }
  return [recolour, mark];
}
