// Who looks at whom: lines between tokens beside a heatmap, for one layer and head.

// matplotlib's Blues: the colours of the static heatmaps.
const BLUES = "f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b"
  .split(" ")
  .map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const MOST_LINED = 64;

// On a dark page the scale runs the other way and begins at the page itself.
function colour(shade, dark) {
  const place = 8 * clamp(dark ? 1 - shade : shade, 0, 1);
  const [low, high] = [BLUES[Math.floor(place)], BLUES[Math.ceil(place)]];
  const mixed = low.map((value, i) => value + (high[i] - value) * (place % 1));
  return [...mixed, dark ? 2000 * shade : 255];
}

function textWidth(text) {
  textWidth.pen ??= document.createElement("canvas").getContext("2d");
  textWidth.pen.font = "13px system-ui, sans-serif";
  return textWidth.pen.measureText(text).width;
}

function shorten(text, room) {
  let letters = [...text];
  while (textWidth(letters.join("")) > room) letters = [...letters.slice(0, -2), "…"];
  return letters.join("");
}

function attention(root, data, host) {
  const { queries, keys, names, heads, mask } = data;
  const maps = heads > 1 ? [...count(heads), "mean"] : [0];
  const rows = Math.max(queries.length, keys.length);
  const columns = count(keys.length);
  const cells = queries.flatMap((_, query) => columns.map((key) => [query, key]));
  const now = { ...data.shown, query: -1, key: -1 };

  // A code is 0 for a weight of exactly 0, else 1 + the weight in thousandths.
  function code(query, key, head = now.head) {
    const map = now.layer * maps.length + head;
    return data.codes[(map * queries.length + query) * keys.length + key];
  }
  const weight = (...cell) => Math.max(0, code(...cell) - 1) / 1000;
  const show = (...cell) =>
    ["0", "<0.001"][code(...cell)] ?? weight(...cell).toFixed(3);
  const isMasked = (query, key) => mask && mask[query * keys.length + key] === "0";

  const bar = add(root, "div", { class: "bar" });
  const strip = add(root, "div", { class: "bar heads" });
  const views = add(root, "div", { class: "bar views" });
  const say = addReadout(root);
  if (data.layers > 1) {
    const layers = count(data.layers);
    addSelect(bar, "layer", layers, (layer) => choose({ layer })).value = now.layer;
  }
  const headSelect =
    heads > 1 && addSelect(bar, "head", maps, (head) => choose({ head }));
  addCheckbox(bar, "stretch colours per row", (stretched) => choose({ stretched }));
  const thumbnails = (heads > 1 ? maps : []).map((name, head) => {
    const button = addButton(strip, "", () => choose({ head }));
    set(button, { "aria-label": `head ${name}` });
    const canvas = add(button, "canvas");
    add(button, "span", { class: "small" }, name);
    return { button, canvas };
  });

  function paint(canvas, shadeOf) {
    set(canvas, { width: keys.length, height: queries.length });
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(keys.length, queries.length);
    const dark = isDark(host);
    cells.forEach((cell, i) => image.data.set(colour(shadeOf(...cell), dark), 4 * i));
    pen.putImageData(image, 0, 0);
  }

  // ---- what the reader points at, in passing or (pinned) for good; -1 is "all"
  const isChosen = () => now.query >= 0 || now.key >= 0;
  const isIn = (query, key) =>
    (now.query < 0 || now.query === query) && (now.key < 0 || now.key === key);

  function point(query, key, pinned) {
    Object.assign(now, { query, key });
    now.pinned = pinned && isChosen();
    mark();
  }

  function listen(node, cellAt) {
    const cell = (event) => cellAt(...placeIn(node, event));
    node.onpointermove = (event) =>
      now.pinned || event.pointerType === "touch" || point(...cell(event));
    node.onpointerleave = () => now.pinned || point(-1, -1);
    node.onclick = (event) => {
      const [query, key] = cell(event);
      point(query, key, !(now.pinned && now.query === query && now.key === key));
    };
  }

  const embolden = (label, bold) => set(label, { "font-weight": bold ? 700 : 400 });

  // ---- the two views: each draws itself and returns the function that marks in it
  // what the reader points at
  function drawLines({ left, right, end, step, top }) {
    const size = { width: right + end, height: top + step * rows + 2 };
    const svg = add(views, "svg", { ...size, role: "img" });
    svg.ariaLabel = `lines from ${names[0]} to ${names[1]}`;
    const lines = add(svg, "g");
    const middle = (row) => top + step * (row + 0.5);
    const addTokens = (tokens, side, x, style, numberX, numberStyle) => {
      addText(svg, x, top - 8, names[side], `name ${style}`);
      return tokens.map((token, row) => {
        const box = { x: side * right, y: middle(row) - step / 2, height: step };
        const y = middle(row) + 4.5;
        return {
          box: add(svg, "rect", { ...box, width: side ? end : left }),
          label: addText(svg, x, y, shorten(token, room), style),
          number: addText(svg, numberX, y, "", `small number ${numberStyle}`),
        };
      });
    };
    const queryTokens = addTokens(queries, 0, left - 6, "end", 0, "");
    const keyTokens = addTokens(keys, 1, right + 6, "", right + end, "end");
    listen(svg, (x, y) => {
      const row = Math.floor((y - top) / step);
      if (x < left && row in queries) return [row, -1];
      return x > right && row in keys ? [-1, row] : [-1, -1];
    });

    function addLine(query, key) {
      const [from, to, bend] = [middle(query), middle(key), (left + right) / 2];
      add(lines, "path", {
        d: `M${left},${from}C${bend},${from} ${bend},${to} ${right},${to}`,
        "stroke-width": 1 + 4 * weight(query, key),
        "stroke-opacity": 0.12 + weight(query, key),
      });
    }

    // Beside the other tokens stand the weights that the chosen one gives or gets.
    function markToken({ box, label, number }, chosen, weighed, cell) {
      const tint = weighed ? 0.45 * weight(...cell) : chosen ? 0.25 : 0;
      number.textContent = weighed ? show(...cell) : "";
      set(box, { "fill-opacity": tint });
      embolden(label, chosen);
    }

    return () => {
      const { query, key } = now;
      const least = isChosen() ? 0.01 : clamp(cells.length / 2e4, 0.01, 0.15);
      lines.replaceChildren();
      for (const cell of cells) {
        if (isIn(...cell) && weight(...cell) >= least) addLine(...cell);
      }
      keyTokens.forEach((token, j) =>
        markToken(token, j === key, query >= 0 && isIn(query, j), [query, j]));
      queryTokens.forEach((token, i) =>
        markToken(token, i === query, query < 0 && key >= 0, [i, key]));
    };
  }

  function drawHeatmap({ left, top, cell, flat, labelled }) {
    const [wide, high] = [cell * keys.length, cell * queries.length];
    const [x, y] = [(key) => left + cell * key, (query) => top + cell * query];
    const box = add(views, "div", { tabindex: 0, role: "application" });
    box.ariaLabel = `heatmap, ${names[0]} by ${names[1]}, arrow keys move`;
    const place = `left:${left}px;top:${top}px;width:${wide}px;height:${high}px`;
    const canvas = add(box, "canvas", { style: place });
    const svg = add(box, "svg", { width: left + wide + 2, height: top + high + 2 });
    const addLabel = (token, right, down, angle, style) => {
      const transform = `translate(${right},${down}) rotate(${angle})`;
      return add(svg, "text", { transform, class: style }, shorten(token, room));
    };
    addLabel(names[1], left + wide / 2, 12, 0, "name middle");
    addLabel(names[0], 11, top + high / 2, -90, "name middle");
    const rowLabels = (labelled ? queries : []).map((token, query) =>
      addLabel(token, left - 6, y(query + 0.5) + 4.5, 0, "end"));
    const [angle, shift, style] = flat
      ? [0, 0, "middle"]
      : [-45, 4, cell < 18 && "small"];
    const columnLabels = (labelled ? keys : []).map((token, key) =>
      addLabel(token, x(key + 0.5) + shift, top - 6, angle, style));
    const half = cell / 2;
    const hatch = ([query, key]) =>
      isMasked(query, key)
        ? `M${x(key)},${y(query) + half}l${half},${-half}m${half},0l${-cell},${cell}`
        : "";
    add(svg, "path", { class: "hatch", d: cells.map(hatch).join("") });
    const numbers = (cell >= 27 && rows <= 12 ? cells : []).map(([query, key]) =>
      addText(svg, x(key + 0.5), y(query + 0.5) + 4, "", "small number middle"));
    const frame = add(svg, "rect", { class: "frame" });
    listen(box, (right, down) => {
      const query = Math.floor((down - top) / cell);
      const key = Math.floor((right - left) / cell);
      return query in queries && key in keys ? [query, key] : [-1, -1];
    });
    box.onkeydown = (event) => {
      const move = ARROWS[event.key];
      if (event.key === "Escape") point(-1, -1);
      if (!move) return;
      event.preventDefault();
      const query = clamp(now.query - move[1], -1, queries.length - 1);
      point(query, clamp(now.key + move[0], -1, keys.length - 1), true);
    };

    recolour = () => {
      const row = (query) => columns.map((key) => weight(query, key));
      const tops = queries.map((_, query) =>
        now.stretched ? Math.max(0.001, ...row(query)) : 1);
      const shadeOf = (query, key) => weight(query, key) / tops[query];
      paint(canvas, shadeOf);
      numbers.forEach((number, i) => {
        const shade = shadeOf(...cells[i]);
        const black = isDark(host) ? shade > 0.35 : shade < 0.65;
        number.style.fill = black ? "black" : "white";
        const text = show(...cells[i]).replace("0.", ".").replace(".000", "");
        number.textContent = shade ? text : "";
      });
    };

    return () => {
      const { query, key } = now;
      set(frame, {
        x: x(Math.max(0, key)),
        y: y(Math.max(0, query)),
        width: key < 0 ? wide : cell,
        height: query < 0 ? high : cell,
        visibility: isChosen() ? "visible" : "hidden",
      });
      rowLabels.forEach((label, i) => embolden(label, i === query));
      columnLabels.forEach((label, j) => embolden(label, j === key));
    };
  }

  // ---- the sentence
  function largest(tokens, cellOf) {
    return tokens
      .map((token, i) => [code(...cellOf(i)), `${quote(token)} ${show(...cellOf(i))}`])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3)
      .map(([, text]) => text)
      .join(", ");
  }

  function sentence() {
    const { query, key } = now;
    if (!isChosen()) {
      return "Point at a token or cell, click to keep it; arrow keys move in the map.";
    }
    const column = `${names[1]} ${quote(keys[key])}`;
    const givers = largest(queries, (i) => [i, key]);
    if (query < 0) return `${column} gets most from ${givers}.`;
    const row = `${names[0]} ${quote(queries[query])}`;
    const most = `looks most at ${largest(keys, (j) => [query, j])}.`;
    if (key < 0) return `${row} ${most}`;
    const masked = isMasked(query, key) ? " (masked)" : "";
    return `${row} gives ${column} the weight ${show(query, key)}${masked}. It ${most}`;
  }

  // ---- drawing: a width changes all, a choice the colours, the pointer the marks
  let [room, marks, recolour] = [];

  function mark() {
    for (const markView of marks) markView();
    say(sentence());
  }

  function choose(change) {
    Object.assign(now, change);
    thumbnails.forEach(({ button, canvas }, head) => {
      paint(canvas, (query, key) => weight(query, key, head));
      set(button, { "aria-pressed": head === now.head });
    });
    if (headSelect) headSelect.value = now.head;
    recolour();
    mark();
  }

  function draw() {
    const width = host.clientWidth;
    room = Math.min(110, width / 4.2);
    const wide = (tokens) => Math.min(room, Math.max(...tokens.map(textWidth))) + 8;
    const left = 40 + wide([...queries, names[0]]);
    const end = 40 + wide([...keys, names[1]]);
    const right = left + clamp(width - left - end, 50, 90);
    const linesWidth = rows > MOST_LINED ? 0 : right + end;
    const side = 18 + wide(queries);
    // Slanted labels lean over the right edge: the last ones need room there.
    const leans = keys.map((key, j) => 0.71 * wide([key]) - 12 * (keys.length - 1 - j));
    const lean = Math.max(8, ...leans);
    const step = linesWidth ? clamp(480 / rows, 15, 40) : 600 / rows;
    const cellIn = (space) => clamp((space - side - lean) / keys.length, 1, step);
    const [beside, below] = [cellIn(width - linesWidth - 16), cellIn(width)];
    const chosen = beside < Math.min(13, below) ? below : beside;
    const labelled = chosen >= 12;
    const cell = labelled ? chosen : Math.min(step, (width - 32) / keys.length);
    const flat = keys.every((token) => textWidth(token) <= cell - 4);
    const top = !labelled ? 24 : flat ? 40 : 30 + 0.71 * wide(keys);
    // Side by side, the rows of the two views lie in one line.
    const aligned = cell === beside && labelled;
    const place = aligned ? { step: cell, top } : { step: Math.min(step, 24), top: 24 };
    views.replaceChildren();
    marks = linesWidth ? [drawLines({ left, right, end, ...place })] : [];
    marks.push(drawHeatmap({ left: labelled ? side : 24, top, cell, flat, labelled }));
    choose({});
  }
  return draw;
}

// Weights travel as base64 of (deflated) little-endian 16-bit integers.
attention.prepare = async (data) => {
  let bytes = Uint8Array.from(atob(data.packed), (letter) => letter.charCodeAt(0));
  if (data.deflated) {
    const inflate = new DecompressionStream("deflate");
    const inflated = new Response(new Blob([bytes]).stream().pipeThrough(inflate));
    bytes = new Uint8Array(await inflated.arrayBuffer());
  }
  data.codes = new Uint16Array(bytes.buffer);
};
