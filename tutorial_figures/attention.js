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

// The lines between tokens. Returns the function that marks what a reader points at.
function drawLines(scene, { left, right, end, step, top }) {
  const { queries, keys, names, cells, now, weight, show, isChosen, isIn } = scene;
  const height = top + step * Math.max(queries.length, keys.length) + 2;
  const svg = add(scene.views, "svg", { width: right + end, height, role: "img" });
  svg.ariaLabel = `lines from ${names[0]} to ${names[1]}`;
  const lines = add(svg, "g");
  const middle = (row) => top + step * (row + 0.5);

  const addTokens = (tokens, side, x, style, farX, farStyle) => {
    addText(svg, x, top - 8, names[side], `name ${style}`);
    return tokens.map((token, row) => {
      const box = { x: side * right, y: middle(row) - step / 2, height: step };
      const y = middle(row) + 4.5;
      return {
        box: add(svg, "rect", { ...box, width: side ? end : left }),
        label: addText(svg, x, y, shorten(token, scene.room), style),
        number: addText(svg, farX, y, "", `small number ${farStyle}`),
      };
    });
  };
  const queryTokens = addTokens(queries, 0, left - 6, "end", 0, "");
  const keyTokens = addTokens(keys, 1, right + 6, "", right + end, "end");

  scene.listen(svg, (x, y) => {
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
    const tint = chosen ? 0.25 : 0;
    box.style.fillOpacity = weighed ? 0.45 * weight(...cell) : tint;
    number.textContent = weighed ? show(...cell) : "";
    embolden(label, chosen);
  }

  return () => {
    const { query, key } = now;
    const least = isChosen() ? 0.01 : clamp(cells.length / 20_000, 0.01, 0.15);
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

// The heatmap. Returns the functions that color it and mark what a reader points at.
function drawHeatmap(scene, { left, top, cell, flat, named, reach }) {
  const { queries, keys, names, cells, now, weight } = scene;
  const wide = cell * keys.length;
  const high = cell * queries.length;
  const x = (key) => left + cell * key;
  const y = (query) => top + cell * query;
  const help = `heatmap, ${names[0]} by ${names[1]}, arrow keys move`;
  const box = addStage(scene.views, help, ([right, up]) => {
    const query = clamp(now.query - up, -1, queries.length - 1);
    scene.point(query, clamp(now.key + right, -1, keys.length - 1), true);
  }, () => scene.point(-1, -1));
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
  const angle = flat ? 0 : -45;
  const shift = flat ? 0 : 4;
  const slanted = cell < 18 ? "small" : "";
  const style = flat ? "middle" : slanted;
  const columnLabels = (named ? keys : []).map((token, key) =>
    addLabel(token, x(key + 0.5) + shift, top - 6, angle, style));

  const addPath = (kind, isIn, draw) => {
    const d = cells.filter((pair) => isIn(...pair)).map(draw).join("");
    add(svg, "path", { class: kind, d });
  };
  addPath("hatch", scene.isMasked, ([query, key]) => hatch(x(key), y(query), cell));
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

  function recolor() {
    const tops = queries.map((_, query) => now.stretched
      ? Math.max(0.001, ...keys.map((__, key) => weight(query, key)))
      : 1);
    const shadeOf = (query, key) => weight(query, key) / tops[query];
    scene.paintCells(canvas, now.head, shadeOf);
    numbers.forEach((number, i) => {
      const shade = shadeOf(...cells[i]);
      number.style.fill =
        (isDark(box) ? shade > 0.52 : shade < 0.7) ? "black" : "white";
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
  return [recolor, mark];
}

function attention(root, data, host) {
  const { queries, keys, names, rows, columns } = data;
  const cells = queries.flatMap((_, query) => keys.map((__, key) => [query, key]));
  const now = { ...data.shown, query: -1, key: -1 };

  const isMasked = (query, key) => data.mask?.[query * columns + key] === "0";
  const isFramed = (query, key) => data.outline?.[query * columns + key] === "1";

  const { bar, code, weight, show, choose } =
    openHeads(root, data, now, paintCells, () => {
      recolor();
      mark();
    });
  const views = add(root, "div", { class: "bar views" });
  const say = addReadout(root);
  addCheckbox(bar, "stretch colors per row", (stretched) => choose({ stretched }));
  if (data.outline) add(bar, "span", {}, `□ ${data.outlined}`);

  function paintCells(canvas, head, shadeOf = weight) {
    const dark = isDark(host);
    paint(canvas, columns, cells.map((cell) => colorOf(shadeOf(...cell, head), dark)));
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
    const most = `attends most to ${largest(keys, (j) => [query, j])}.`;
    if (key < 0) return `${row} ${most}`;
    return `${row} gives ${column} the weight ${tell(query, key)}. It ${most}`;
  }

  // ---- drawing: a width changes all, a choice the colors, the pointer the marks
  const scene = {
    ...data, cells, now, views, weight, show, paintCells, point, listen,
    isMasked, isFramed, isChosen, isIn,
  };
  let recolor, markHeatmap, markLines;

  function mark() {
    markHeatmap();
    if (markLines) markLines();
    say(sentence());
  }

  function draw() {
    const width = host.clientWidth - 1;
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
    const beside = cellIn(width - taken - 16);
    const below = cellIn(width);
    const chosen = beside < Math.min(13, below) ? below : beside;
    const named = chosen >= 12;
    const cell = named ? chosen : Math.min(step, (width - 32) / columns);
    const flat = keys.every((token) => textWidth(token) <= cell - 4);
    const labels = flat ? 40 : 30 + 0.71 * wide(keys);
    const top = named ? labels : 24;
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
    [recolor, markHeatmap] =
      drawHeatmap(scene, { left: named ? side : 24, top, cell, flat, named, reach });
    choose({});
  }
  return draw;
}

attention.prepare = unpack;
