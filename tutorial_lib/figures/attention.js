// Who looks at whom: lines between tokens beside a heatmap, for one layer and head.

function textWidth(text) {
  pen.font = "13px system-ui, sans-serif";
  return pen.measureText(text).width;
}

function shorten(text, room) {
  let letters = [...text];
  while (textWidth(letters.join("")) > room) letters = [...letters.slice(0, -2), "…"];
  return letters.join("");
}

const embolden = (label, bold) => set(label, { "font-weight": bold ? 700 : 400 });

function attention(root, data, host) {
  const { queries, keys, names, heads } = data;
  const maps = heads > 1 ? [...count(heads), "mean"] : [0];
  const [rows, columns] = [queries.length, keys.length];
  const cells = queries.flatMap((_, query) => keys.map((__, key) => [query, key]));
  const now = { ...data.shown, query: -1, key: -1 };

  // A code is 0 for a weight of exactly 0, else 1 + the weight in thousandths.
  function code(query, key, head = now.head) {
    const map = now.layer * maps.length + head;
    return data.codes[(map * rows + query) * columns + key];
  }
  const weight = (...cell) => Math.max(0, code(...cell) - 1) / 1000;
  const show = (...cell) =>
    ["0", "<0.001"][code(...cell)] ?? weight(...cell).toFixed(3);
  const has = (digits, digit) => (query, key) =>
    digits?.[query * columns + key] === digit;
  const [isMasked, isOutlined] = [has(data.mask, "0"), has(data.outline, "1")];

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
  addCheckbox(bar, "stretch colors per row", (stretched) => choose({ stretched }));
  if (data.outline) add(bar, "span", {}, `□ ${data.outlined}`);
  const thumbnails = (heads > 1 ? maps : []).map((name, head) => {
    const button = addButton(strip, "", () => choose({ head }));
    button.ariaLabel = `head ${name}`;
    const canvas = add(button, "canvas");
    add(button, "span", { class: "small" }, name);
    return { button, canvas };
  });

  function paint(canvas, shadeOf) {
    set(canvas, { width: columns, height: rows });
    const image = new ImageData(columns, rows);
    const dark = isDark(host);
    cells.forEach((cell, i) => image.data.set(colour(shadeOf(...cell), dark), 4 * i));
    canvas.getContext("2d").putImageData(image, 0, 0);
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

  // ---- the sentence
  const tell = (query, key) =>
    show(query, key) +
    (isMasked(query, key) ? " (masked)" : "") +
    (isOutlined(query, key) ? ` (${data.outlined})` : "");

  function largest(tokens, cellOf) {
    return tokens
      .map((token, i) => [code(...cellOf(i)), `${quote(token)} ${tell(...cellOf(i))}`])
      .filter((pair) => pair[0])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3)
      .map(([, text]) => text)
      .join(", ") || "nothing";
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
    return `${row} gives ${column} the weight ${tell(query, key)}. It ${most}`;
  }

  // ---- drawing: a width changes all, a choice the colors, the pointer the marks
  const scene = {
    ...data, cells, now, views, weight, show, paint, point, listen,
    isMasked, isOutlined, isChosen, isIn,
  };
  let [recolour, markHeatmap, markLines] = [];

  function mark() {
    markHeatmap();
    if (markLines) markLines();
    say(sentence());
  }

  function choose(change) {
    Object.assign(now, change);
    thumbnails.forEach(({ button, canvas }, head) => {
      paint(canvas, (query, key) => weight(query, key, head));
      button.ariaPressed = head === now.head;
    });
    if (headSelect) headSelect.value = now.head;
    recolour();
    mark();
  }

  function draw() {
    const width = host.clientWidth;
    const room = Math.min(110, width / 4.2);
    const wide = (tokens) => Math.min(room, Math.max(...tokens.map(textWidth))) + 8;
    const left = 40 + wide([...queries, names[0]]);
    const end = 40 + wide([...keys, names[1]]);
    const right = left + clamp(width - left - end, 50, 90);
    const longest = Math.max(rows, columns);
    const linesWidth = longest > 64 ? 0 : right + end;
    const side = 18 + wide(queries);
    // Slanted labels lean over the right edge: the last ones need room there.
    const leans = keys.map((key, j) => 0.71 * wide([key]) - 12 * (columns - 1 - j));
    const lean = Math.max(8, ...leans);
    const step = linesWidth ? clamp(480 / longest, 15, 40) : 600 / longest;
    const cellIn = (space) => clamp((space - side - lean) / columns, 1, step);
    const [beside, below] = [cellIn(width - linesWidth - 16), cellIn(width)];
    const chosen = beside < Math.min(13, below) ? below : beside;
    const labelled = chosen >= 12;
    const cell = labelled ? chosen : Math.min(step, (width - 32) / columns);
    const flat = keys.every((token) => textWidth(token) <= cell - 4);
    const top = !labelled ? 24 : flat ? 40 : 30 + 0.71 * wide(keys);
    // Side by side, the rows of the two views lie in one line.
    const aligned = cell === beside && labelled;
    const place = aligned ? { step: cell, top } : { step: Math.min(step, 24), top: 24 };
    views.replaceChildren();
    scene.room = room;
    markLines = linesWidth && drawLines(scene, { left, right, end, ...place });
    // The frame of the focus goes around slanted labels, too.
    const reach = labelled && lean;
    const heatmap = { left: labelled ? side : 24, top, cell, flat, labelled, reach };
    [recolour, markHeatmap] = drawHeatmap(scene, heatmap);
    choose({});
  }
  return draw;
}

// Weights travel as base64 of (deflated) little-endian 16-bit integers.
attention.prepare = async (data) => {
  let bytes = Uint8Array.from(atob(data.packed), (letter) => letter.charCodeAt(0));
  if (data.deflated) {
    const inflate = new DecompressionStream("deflate");
    const inflated = new Blob([bytes]).stream().pipeThrough(inflate);
    bytes = new Uint8Array(await new Response(inflated).arrayBuffer());
  }
  data.codes = new Uint16Array(bytes.buffer);
};
