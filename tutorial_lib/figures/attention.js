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
  const { queries, keys, names, rows, columns } = data;
  const cells = queries.flatMap((_, query) => keys.map((__, key) => [query, key]));
  const now = { ...data.shown, query: -1, key: -1 };

  const has = (digits, digit) => (query, key) =>
    digits?.[query * columns + key] === digit;
  const [isMasked, isFramed] = [has(data.mask, "0"), has(data.outline, "1")];

  const { bar, code, weight, show, choose } =
    openHeads(root, data, now, paintCells, () => {
      recolour();
      mark();
    });
  const views = add(root, "div", { class: "bar views" });
  const say = addReadout(root);
  addCheckbox(bar, "stretch colors per row", (stretched) => choose({ stretched }));
  if (data.outline) add(bar, "span", {}, `□ ${data.outlined}`);

  function paintCells(canvas, head, shadeOf = weight) {
    const dark = isDark(host);
    paint(canvas, columns, cells.map((cell) => colour(shadeOf(...cell, head), dark)));
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
  const tell = (...cell) =>
    show(...cell) +
    (isMasked(...cell) ? " (masked)" : "") +
    (isFramed(...cell) ? ` (${data.outlined})` : "");

  const largest = (tokens, cellOf) => nameLargest(tokens.map((token, i) =>
    [code(...cellOf(i)), `${quote(token)} ${tell(...cellOf(i))}`]));

  function sentence() {
    const { query, key } = now;
    if (!isChosen()) {
      return "Point at a token or cell, click to keep it; arrow keys move in the map.";
    }
    const column = `${names[1]} ${quote(keys[key])}`;
    if (query < 0) {
      return `${column} gets most from ${largest(queries, (i) => [i, key])}.`;
    }
    const row = `${names[0]} ${quote(queries[query])}`;
    const most = `looks most at ${largest(keys, (j) => [query, j])}.`;
    if (key < 0) return `${row} ${most}`;
    return `${row} gives ${column} the weight ${tell(query, key)}. It ${most}`;
  }

  // ---- drawing: a width changes all, a choice the colors, the pointer the marks
  const scene = {
    ...data, cells, now, views, weight, show, paintCells, point, listen,
    isMasked, isFramed, isChosen, isIn,
  };
  let [recolour, markHeatmap, markLines] = [];

  function mark() {
    markHeatmap();
    if (markLines) markLines();
    say(sentence());
  }

  function draw() {
    const width = host.clientWidth;
    const room = Math.min(110, width / 4.2);
    const wide = (tokens) => Math.min(room, Math.max(...tokens.map(textWidth))) + 8;
    const left = 40 + wide([...queries, names[0]]);
    const end = 40 + wide([...keys, names[1]]);
    const right = left + clamp(width - left - end, 50, 90);
    const longest = Math.max(rows, columns);
    const taken = longest > 64 ? 0 : right + end;
    const side = 18 + wide(queries);
    // Slanted labels lean over the right edge: the last ones need room there.
    const leans = keys.map((key, j) => 0.71 * wide([key]) - 12 * (columns - 1 - j));
    const lean = Math.max(8, ...leans);
    const step = taken ? clamp(480 / longest, 15, 40) : 600 / longest;
    const cellIn = (space) => clamp((space - side - lean) / columns, 1, step);
    const [beside, below] = [cellIn(width - taken - 16), cellIn(width)];
    const chosen = beside < Math.min(13, below) ? below : beside;
    const named = chosen >= 12;
    const cell = named ? chosen : Math.min(step, (width - 32) / columns);
    const flat = keys.every((token) => textWidth(token) <= cell - 4);
    const top = !named ? 24 : flat ? 40 : 30 + 0.71 * wide(keys);
    views.replaceChildren();
    scene.room = room;
    markLines = taken && drawLines(scene, {
      left, right, end,
      // Side by side, the rows of the two views lie in one line.
      ...(cell === beside && named
        ? { step: cell, top }
        : { step: Math.min(step, 24), top: 24 }),
    });
    // The frame of the focus goes around slanted labels, too.
    const reach = named && lean;
    [recolour, markHeatmap] =
      drawHeatmap(scene, { left: named ? side : 24, top, cell, flat, named, reach });
    choose({});
  }
  return draw;
}

attention.prepare = unpack;
