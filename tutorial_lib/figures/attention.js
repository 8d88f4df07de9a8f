// Who looks at whom: lines between tokens beside a heatmap, for one layer and head.

// matplotlib's Blues: the colours of the static heatmaps.
const BLUES = [
  [247, 251, 255], [222, 235, 247], [198, 219, 239], [158, 202, 225], [107, 174, 214],
  [66, 146, 198], [33, 113, 181], [8, 81, 156], [8, 48, 107],
];

// On a dark page the scale runs the other way and begins at the page itself.
function colour(weight, dark) {
  const place = clamp(dark ? 1 - weight : weight, 0, 1) * 8;
  const [low, high] = [BLUES[Math.floor(place)], BLUES[Math.ceil(place)]];
  const rgb = low.map((value, i) => value + (high[i] - value) * (place % 1));
  return [...rgb, dark ? 255 * Math.min(1, weight * 8) : 255];
}

function attention(root, data, host) {
  const { queries, keys, layers, heads, names, mask } = data;
  const maps = heads > 1 ? heads + 1 : 1; // the last one is the mean over the heads
  const state = { ...data.shown, query: -1, key: -1, pinned: false, perRow: false };

  // A code is 0 for a weight of exactly 0, else 1 + the weight in thousandths.
  const codeAt = (query, key, head = state.head) =>
    data.codes[((state.layer * maps + head) * queries.length + query) * keys.length + key];
  const weightAt = (...place) => Math.max(0, codeAt(...place) - 1) / 1000;
  const show = (...place) => {
    const code = codeAt(...place);
    return code > 1 ? weightAt(...place).toFixed(3) : code ? "<0.001" : "0";
  };
  const isMasked = (query, key) => mask && mask[query * keys.length + key] === "0";

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const headNames = count(maps).map((head) => (head < heads ? String(head) : "mean"));
  const options = (length) => count(length).map((i) => [i, i]);
  if (layers > 1) {
    addSelect(bar, "layer", options(layers), state.layer, (layer) => {
      state.layer = Number(layer);
      draw();
    });
  }
  const headSelect =
    heads > 1 &&
    addSelect(bar, "head", headNames.entries(), state.head, (head) => chooseHead(head));
  addCheckbox(bar, "colours per row", false, (checked) => {
    state.perRow = checked;
    refresh();
  });
  const strip = add(root, "div", { class: "bar", style: "gap: 6px" });
  set(strip, { role: "group", "aria-label": "heads of this layer" });
  const views = add(root, "div", { class: "bar", style: "align-items: flex-start" });
  const say = addReadout(root);

  function chooseHead(head) {
    state.head = Number(head);
    headSelect.value = state.head;
    refresh();
  }

  const thumbnails = count(heads > 1 ? maps : 0).map((head) => {
    const button = addButton(strip, "", () => chooseHead(head));
    set(button, { "aria-label": `head ${headNames[head]}`, class: "thumbnail" });
    const canvas = add(button, "canvas", { width: keys.length, height: queries.length });
    add(button, "span", { class: "small" }, headNames[head]);
    return { button, canvas };
  });

  function paint(canvas, head, perRow) {
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(keys.length, queries.length);
    count(queries.length).forEach((query) => {
      const top = perRow ? rowTop(query, head) : 1;
      count(keys.length).forEach((key) => {
        const shade = colour(weightAt(query, key, head) / top, isDarkNow());
        image.data.set(shade, (query * keys.length + key) * 4);
      });
    });
    pen.putImageData(image, 0, 0);
  }

  const isDarkNow = () => host.hasAttribute("data-dark");
  const rowTop = (query, head) =>
    Math.max(0.001, ...count(keys.length).map((key) => weightAt(query, key, head)));

  // ---- what the reader points at
  function choose(query, key) {
    if (query === state.query && key === state.key) return;
    Object.assign(state, { query, key });
    highlight();
  }

  function pin(query, key) {
    const again = state.pinned && state.query === query && state.key === key;
    state.pinned = !again;
    choose(query, key);
  }

  const hover = (query, key) => state.pinned || choose(query, key);

  // ---- lines
  const TOP = 22;
  const VALUE = 44;
  let lines;

  function drawLines(width) {
    const rows = Math.max(queries.length, keys.length);
    if (rows > 64) return 0;
    const step = clamp(500 / rows, 15, 24);
    const room = Math.min(130, (width - 2 * VALUE - 60) / 2);
    const wide = (tokens) => Math.min(room, Math.max(...tokens.map((t) => textWidth(t)))) + 8;
    const left = VALUE + wide([...queries, names[0]]);
    const span = Math.min(110, width - left - wide([...keys, names[1]]) - VALUE);
    const right = left + span;
    const total = right + wide([...keys, names[1]]) + VALUE;
    const svg = add(views, "svg", { width: total, height: TOP + rows * step + 4 });
    set(svg, { role: "img", "aria-label": `lines from each ${names[0]} to the ${names[1]}s it looks at` });
    svg.onpointerleave = () => hover(-1, -1);
    const middle = (i) => TOP + step * (i + 0.5);
    const paths = add(svg, "g");
    add(svg, "text", { x: left - 6, y: 12, "text-anchor": "end", class: "name" }, names[0]);
    add(svg, "text", { x: right + 6, y: 12, class: "name" }, names[1]);

    const addToken = (token, i, isKey) => {
      const [start, end] = isKey ? [right, total] : [0, left];
      const group = add(svg, "g", { class: "token", "data-side": isKey ? "key" : "query" });
      const y = middle(i);
      const box = add(group, "rect", { x: start, y: y - step / 2, width: end - start, height: step, rx: 3 });
      const anchor = isKey ? "start" : "end";
      const label = add(group, "text", { x: isKey ? right + 6 : left - 6, y: y + 4.5, "text-anchor": anchor }, shorten(token, room));
      const value = add(group, "text", { x: isKey ? total - 2 : 2, y: y + 4, class: "small number", "text-anchor": isKey ? "end" : "start" });
      const place = isKey ? [-1, i] : [i, -1];
      group.onpointerenter = (event) => event.pointerType === "mouse" && hover(...place);
      group.onclick = () => pin(...place);
      return { box, label, value };
    };
    const queryTokens = queries.map((token, i) => addToken(token, i, false));
    const keyTokens = keys.map((token, i) => addToken(token, i, true));
    lines = { paths, queryTokens, keyTokens, left, right, middle };
    return total;
  }

  function curve(query, key, weight) {
    const { paths, left, right, middle } = lines;
    const centre = (left + right) / 2;
    const [from, to] = [middle(query), middle(key)];
    add(paths, "path", {
      d: `M${left},${from}C${centre},${from} ${centre},${to} ${right},${to}`,
      "stroke-width": 1 + 4 * weight,
      "stroke-opacity": Math.min(1, 0.12 + weight),
    });
  }

  function highlightLines() {
    const idle = state.query < 0 && state.key < 0;
    const least = idle && queries.length * keys.length > 2500 ? 0.15 : 0.01;
    lines.paths.replaceChildren();
    count(queries.length).forEach((query) => {
      if (state.query >= 0 && query !== state.query) return;
      count(keys.length).forEach((key) => {
        if (state.key >= 0 && key !== state.key) return;
        const weight = weightAt(query, key);
        if (weight >= least) curve(query, key, weight);
      });
    });
    // A chosen query shows its weights beside the keys, a chosen key beside the queries.
    const mark = (tokens, chosen, other, place) =>
      tokens.forEach(({ box, label, value }, i) => {
        const weighed = other >= 0 && (chosen < 0 || chosen === i);
        value.textContent = weighed ? show(...place(i)) : "";
        const tint = weighed ? 0.45 * weightAt(...place(i)) : 0;
        box.setAttribute("fill-opacity", chosen === i && !weighed ? 0.25 : tint);
        label.setAttribute("font-weight", chosen === i ? 700 : 400);
      });
    mark(lines.keyTokens, state.key, state.query, (key) => [state.query, key]);
    mark(lines.queryTokens, state.query, state.query < 0 ? state.key : -1, (query) => [query, state.key]);
  }

  // ---- heatmap
  let heatmap;

  function drawHeatmap(width, linesWidth) {
    const [rows, columns] = [queries.length, keys.length];
    const labelWidth = Math.min(120, width / 4, Math.max(...queries.map((t) => textWidth(t)))) + 8;
    const left = 18 + labelWidth;
    const slant = Math.min(110, Math.max(...keys.map((t) => textWidth(t))));
    const cellIn = (space) => Math.min(40, 480 / rows, (space - left - 2) / columns);
    const beside = cellIn(width - linesWidth - 18);
    const below = cellIn(width);
    const labelled = (cell) => cell >= 12;
    let cell = beside >= Math.min(20, below) ? beside : below;
    // Slanted labels lean over the right edge; the last ones need room there.
    const flat = keys.every((token) => textWidth(token) <= cell - 4);
    const lean = flat || !labelled(cell) ? 0 : Math.max(0, ...keys.map((token, key) =>
      Math.min(110, textWidth(token)) * 0.71 + 8 - (columns - key - 0.5) * cell));
    cell = Math.max(1, cell - lean / columns);
    const top = 22 + (labelled(cell) ? (flat ? 18 : slant * 0.71 + 14) : 4);
    const size = { width: left + columns * cell + lean + 1, height: top + rows * cell + 2 };
    const box = add(views, "div", {
      class: "heatmap",
      style: `width: ${size.width}px; height: ${size.height}px`,
      tabindex: 0,
      role: "application",
      "aria-label": `heatmap, rows are ${names[0]} tokens, columns are ${names[1]} tokens; arrow keys move, Escape lets go`,
    });
    const canvas = add(box, "canvas", { width: columns, height: rows, style:
      `left: ${left}px; top: ${top}px; width: ${columns * cell}px; height: ${rows * cell}px` });
    const svg = add(box, "svg", size);
    add(svg, "text", { x: left + (columns * cell) / 2, y: 12, "text-anchor": "middle", class: "name" }, names[1]);
    add(svg, "text", { transform: `translate(11,${top + (rows * cell) / 2}) rotate(-90)`, "text-anchor": "middle", class: "name" }, names[0]);
    const x = (key) => left + cell * key;
    const y = (query) => top + cell * query;
    const rowLabels = labelled(cell) ? queries.map((token, query) =>
      add(svg, "text", { x: left - 6, y: y(query + 0.5) + 4.5, "text-anchor": "end" }, shorten(token, labelWidth - 8))) : [];
    const columnLabels = labelled(cell) ? keys.map((token, key) => {
      const turned = flat ? "" : " rotate(-45)";
      const place = `translate(${x(key + 0.5) + (flat ? 0 : 4)},${top - 6})${turned}`;
      return add(svg, "text", { transform: place, "text-anchor": flat ? "middle" : "start" }, shorten(token, flat ? cell : 110));
    }) : [];
    const numbers = [];
    if (cell >= 32 && rows * columns <= 144) {
      count(rows).forEach((query) => count(columns).forEach((key) => {
        const place = { x: x(key + 0.5), y: y(query + 0.5) + 4, "text-anchor": "middle", class: "small number" };
        numbers.push([add(svg, "text", place), query, key]);
      }));
    }
    if (mask) add(svg, "path", { class: "hatch", d: hatching(x, y, cell) });
    const frame = add(svg, "rect", { class: "frame" });
    listen(box, canvas, cell);
    heatmap = { canvas, numbers, frame, rowLabels, columnLabels, x, y, cell };
  }

  function hatching(x, y, cell) {
    let path = "";
    count(queries.length).forEach((query) => count(keys.length).forEach((key) => {
      if (!isMasked(query, key)) return;
      const [left, top, half] = [x(key), y(query), cell / 2];
      path += `M${left},${top + half}l${half},${-half}M${left},${top + cell}l${cell},${-cell}M${left + half},${top + cell}l${half},${-half}`;
    }));
    return path;
  }

  function listen(box, canvas, cell) {
    const cellUnder = (event) => {
      const edge = canvas.getBoundingClientRect();
      return [
        clamp(Math.floor((event.clientY - edge.top) / cell), 0, queries.length - 1),
        clamp(Math.floor((event.clientX - edge.left) / cell), 0, keys.length - 1),
      ];
    };
    canvas.onpointermove = (event) => event.pointerType === "mouse" && hover(...cellUnder(event));
    canvas.onpointerleave = () => hover(-1, -1);
    canvas.onclick = (event) => pin(...cellUnder(event));
    box.onkeydown = (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (event.key === "Escape") {
        state.pinned = false;
        choose(-1, -1);
      }
      if (!move) return;
      event.preventDefault();
      state.pinned = true;
      // Before the first row and column lies "all of them".
      choose(
        clamp(state.query + move[0], -1, queries.length - 1),
        clamp(state.key + move[1], -1, keys.length - 1),
      );
    };
  }

  function highlightHeatmap() {
    const { frame, rowLabels, columnLabels, x, y, cell } = heatmap;
    const { query, key } = state;
    set(frame, {
      x: x(Math.max(0, key)),
      y: y(Math.max(0, query)),
      width: key < 0 ? keys.length * cell : cell,
      height: query < 0 ? queries.length * cell : cell,
      visibility: query < 0 && key < 0 ? "hidden" : "visible",
    });
    rowLabels.forEach((label, i) => label.setAttribute("font-weight", i === query ? 700 : 400));
    columnLabels.forEach((label, i) => label.setAttribute("font-weight", i === key ? 700 : 400));
  }

  // ---- the sentence
  function largest(tokens, place) {
    return tokens
      .map((token, i) => [codeAt(...place(i)), `${quote(token)} ${show(...place(i))}`])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3)
      .filter(([code]) => code > 1)
      .map(([, text]) => text)
      .join(", ");
  }

  function sentence() {
    const { query, key } = state;
    if (query < 0 && key < 0) {
      return "Point at a token or a cell to read weights; click to keep it. In the heatmap the arrow keys move.";
    }
    if (query < 0) {
      return `${names[1]} ${quote(keys[key])} is looked at most by ${largest(queries, (i) => [i, key]) || "nobody"}.`;
    }
    const row = `${names[0]} ${quote(queries[query])}`;
    const most = `looks most at ${largest(keys, (j) => [query, j]) || "nothing"}.`;
    if (key < 0) return `${row} ${most}`;
    const masked = isMasked(query, key) ? " (masked)" : "";
    return `${row} gives ${names[1]} ${quote(keys[key])} the weight ${show(query, key)}${masked}. It ${most}`;
  }

  // ---- drawing: the pointer changes the highlights, a head the colours, a width all
  function highlight() {
    if (lines) highlightLines();
    highlightHeatmap();
    say(sentence());
  }

  function refresh() {
    thumbnails.forEach(({ button, canvas }, head) => {
      paint(canvas, head, false);
      button.setAttribute("aria-pressed", head === state.head);
    });
    paint(heatmap.canvas, state.head, state.perRow);
    heatmap.numbers.forEach(([label, query, key]) => {
      const weight = weightAt(query, key);
      const shade = weight / (state.perRow ? rowTop(query, state.head) : 1);
      label.textContent = weight > 0 ? show(query, key).replace(/^0/, "") : "";
      const black = isDarkNow() ? shade > 0.35 : shade < 0.65;
      label.style.fill = black ? "#000" : "#fff";
    });
    highlight();
  }

  function draw() {
    views.replaceChildren();
    lines = null;
    drawHeatmap(host.clientWidth, drawLines(host.clientWidth));
    refresh();
  }
  return draw;
}
