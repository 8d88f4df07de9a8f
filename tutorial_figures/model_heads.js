// All the heads of a model as a map, and the attention map of the one that is chosen.

function model_heads(root, data, host) {
  const { layers, heads, texts, scores, names, codes } = data;
  const numHeads = layers * heads;
  const triangle = (size) => (size * (size + 1)) / 2;
  const starts = texts.map((_, i) =>
    numHeads * sum(texts.slice(0, i).map(({ tokens }) => triangle(tokens.length))));
  const now = { ...data.shown, query: texts[data.shown.text].query, key: -1 };
  // What the mouse passes over, until it leaves: a head, or a query and a key.
  let passed = {};
  const seen = () => ({ ...now, ...passed });

  const weight = ({ text, head }, query, key) => {
    const size = texts[text].tokens.length;
    const cell = triangle(query) + key;
    return codes[starts[text] + head * triangle(size) + cell] / 255;
  };
  const numberOf = (head) => `${Math.floor(head / heads)}.${head % heads}`;
  const ranked = (score) => count(numHeads)
    .sort((a, b) => scores[score][b] - scores[score][a])
    .slice(0, data.strongest);

  // ---- controls
  const keys = Object.keys(names);
  const bar = add(root, "div", { class: "bar" });
  const score = addSelect(bar, "color", Object.values(names), (i) =>
    choose({ score: keys[i] }));
  const text = addSelect(bar, "text", texts.map(({ name }) => name), (i) =>
    choose({ text: i, query: texts[i].query, key: -1 }));
  const strongest = add(root, "div", { class: "bar strongest", role: "group" });
  strongest.ariaLabel = "heads with the highest scores";
  add(strongest, "span", {}, "highest");
  const buttons = count(data.strongest).map((i) =>
    addButton(strongest, "", () => choose({ head: ranked(now.score)[i] })));

  const views = add(root, "div", { class: "bar views" });
  const say = addReadout(root);
  const headMap = addStage(views, "heads by layer: arrow keys choose one", stepHead);
  const tokenMap = addStage(views, "attention map: arrow keys choose query and key",
    ([right, up]) => {
      const query = clamp(now.query - up, 0, tokens().length - 1);
      const key = clamp(now.key + right, -1, query);
      choose({ query, key: right || now.key < 0 ? key : Math.min(now.key, query) });
    }, () => choose({ key: -1 }));
  const tokens = () => texts[now.text].tokens;

  // Where the map lies flat, layers go to the right.
  let flat, drawn;
  function stepHead([right, up]) {
    const [layerStep, headStep] = flat ? [right, -up] : [-up, right];
    const layer = clamp(Math.floor(now.head / heads) + layerStep, 0, layers - 1);
    const head = clamp((now.head % heads) + headStep, 0, heads - 1);
    choose({ head: layer * heads + head });
  }

  // Every choice ends here.
  function choose(change) {
    Object.assign(now, change);
    passed = {};
    show(change.text !== undefined);
  }

  function pass(change) {
    passed = change;
    show();
  }

  // The mouse shows in passing what a click, or a finger that drags, keeps.
  function listen(svg, changeAt) {
    onDrag(svg, () => (x, y) => {
      const change = changeAt(x, y);
      if (change) choose(change);
    });
    svg.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch" || event.buttons) return;
      pass(changeAt(...placeIn(svg, event)) ?? {});
    });
    svg.onpointerleave = () => pass({});
  }

  // ---- the map of heads
  function drawHeads(width) {
    const [left, top] = [36, 34];
    const wide = flat ? Math.min(20, (width - left - 4) / layers) : 21;
    const high = flat ? 17 : 14;
    const [columns, rows] = flat ? [layers, heads] : [heads, layers];
    const at = (head) => {
      const [layer, own] = [Math.floor(head / heads), head % heads];
      const [column, row] = flat ? [layer, own] : [own, layer];
      return { x: left + column * wide, y: top + row * high };
    };
    headMap.replaceChildren();
    const size = [columns * wide, rows * high];
    const canvas = addCanvas(headMap, left, top, ...size);
    const svg = add(headMap, "svg", {
      width: left + size[0] + 4, height: top + size[1] + 3,
    });
    const [across, down] = flat ? ["layer", "head"] : ["head", "layer"];
    addText(svg, 0, 12, `${down} ↓`, "name small");
    addText(svg, left + 24, 12, `${across} →`, "name small");
    const every = flat && wide < 18 ? 5 : 1;
    for (const i of count(columns)) {
      if (i % every) continue;
      addText(svg, left + (i + 0.5) * wide, top - 6, i, "small middle");
    }
    for (const i of count(rows)) {
      addText(svg, left - 6, top + (i + 0.5) * high + 4, i, "small end");
    }
    const marks = ["halo", "strong"].map((tone) => add(svg, "path", { class: tone }));
    const frame = add(svg, "rect", { class: "frame", width: wide, height: high });
    listen(svg, (x, y) => {
      const column = Math.floor((x - left) / wide);
      const row = Math.floor((y - top) / high);
      if (!(column in count(columns) && row in count(rows))) return null;
      return { head: flat ? column * heads + row : row * heads + column };
    });

    return () => {
      const values = scores[now.score];
      const order = count(numHeads).map((i) =>
        (flat ? (i % layers) * heads + Math.floor(i / layers) : i));
      const dark = isDark(host);
      paint(canvas, columns, order.map((head) => colorOf(values[head], dark)));
      const d = ranked(now.score).map(at).map(({ x, y }) =>
        `M${x + 2},${y + 2}h${wide - 4}v${high - 4}h${4 - wide}z`).join("");
      for (const mark of marks) set(mark, { d });
      set(frame, at(seen().head));
    };
  }

  function addCanvas(stage, left, top, width, height) {
    const style = `left:${left}px;top:${top}px;width:${width}px;height:${height}px`;
    return add(stage, "canvas", { style });
  }

  // ---- the attention map. Its upper triangle is empty, so that a token's name has room
  // where its row ends and its column begins.
  function drawTokens(width) {
    const size = tokens().length;
    const [left, top] = [22, 20];
    const end = 8 + Math.max(...tokens().map((token, i) =>
      nameWidth(token) - (size - 1 - i) * 12));
    const cell = clamp((width - left - end) / size, 10, 20);
    tokenMap.replaceChildren();
    const canvas = addCanvas(tokenMap, left, top, size * cell, size * cell);
    // A name may reach beyond the square.
    canvas.style.outline = "none";
    const height = top + size * cell + 20;
    const svg = add(tokenMap, "svg", { width: left + size * cell + end, height });
    const title = addText(svg, left, 12, "", "name small");
    addText(svg, left, height - 4, "key →", "name small");
    const turned = `translate(14,${top + size * cell}) rotate(-90)`;
    add(svg, "text", { transform: turned, class: "name small" }, "← query");
    const labels = tokens().map((token, i) =>
      addText(svg, left + (i + 1) * cell + 5, top + (i + 0.5) * cell + 4, token,
        cell < 14 ? "small" : "token"));
    const row = add(svg, "rect", { class: "row", x: left, height: cell });
    const column = add(svg, "rect", { class: "row", width: cell });
    const frame = add(svg, "rect", { class: "frame", width: cell, height: cell });
    listen(svg, (x, y) => {
      const query = Math.floor((y - top) / cell);
      const key = Math.floor((x - left) / cell);
      if (!(query in labels)) return null;
      return { query, key: key <= query ? Math.max(-1, key) : -1 };
    });

    return () => {
      const { query, key, ...chosen } = seen();
      const dark = isDark(host);
      paint(canvas, size, count(size * size).map((i) => {
        const [y, x] = [Math.floor(i / size), i % size];
        return x > y ? [0, 0, 0, 0] : colorOf(weight(chosen, y, x), dark);
      }));
      title.textContent = `head ${numberOf(chosen.head)}`;
      labels.forEach((label, i) =>
        set(label, { "font-weight": i === query || i === key ? 700 : 400 }));
      set(row, { y: top + query * cell, width: (query + 1) * cell });
      const place = { x: left + key * cell, visibility: key < 0 ? "hidden" : "visible" };
      set(column, { ...place, y: top + key * cell, height: (query - key + 1) * cell });
      set(frame, { ...place, y: top + query * cell });
    };
  }

  function nameWidth(word) {
    pen.font = "700 12px system-ui, sans-serif";
    return pen.measureText(word).width;
  }

  // ---- what is said
  // Words carry the blank before them, which a sentence leaves out.
  const named = (words, i) => `${quote(words[i].trim())} (${i})`;

  function sentence() {
    const { query, key, ...chosen } = seen();
    const { head } = chosen;
    const words = tokens();
    const told = keys.map((name) => `${names[name]} ${scores[name][head].toFixed(2)}`);
    const weights = count(query + 1).map((i) => weight(chosen, query, i));
    const most = count(query + 1)
      .sort((a, b) => weights[b] - weights[a])
      .slice(0, 3)
      .filter((i) => weights[i] >= 0.005)
      .map((i) => `${named(words, i)} ${weights[i].toFixed(2)}`);
    const one = key < 0
      ? ""
      : `gives ${named(words, key)} the weight ${weights[key].toFixed(2)}, and`;
    return [
      `Layer ${Math.floor(head / heads)}, head ${head % heads}: ${told.join(", ")}.`,
      named(words, query), one,
      `attends most to ${most.join(", ")}.`,
    ].filter(Boolean).join(" ");
  }

  function show(redraw) {
    if (redraw) drawn[1] = drawTokens(room());
    score.value = keys.indexOf(now.score);
    text.value = now.text;
    ranked(now.score).forEach((head, i) => {
      const [button, value] = [buttons[i], scores[now.score][head].toFixed(2)];
      button.textContent = `${numberOf(head)}  ${value}`;
      button.ariaLabel = `layer ${Math.floor(head / heads)}, head ${head % heads}: ${value}`;
      button.ariaPressed = head === now.head;
    });
    for (const draw of drawn) draw();
    say(sentence());
  }

  const room = () => Math.min(host.clientWidth, 760) - (flat ? 0 : 252);

  return () => {
    flat = host.clientWidth < 600;
    drawn = [drawHeads(host.clientWidth), drawTokens(room())];
    show();
  };
}

// The weights are loaded once the figure is nearly in sight. They travel deflated.
model_heads.prepare = async (data) => {
  const stream = new Blob([bytesOf(await loadWeights(data))]).stream();
  const bytes = stream.pipeThrough(new DecompressionStream("deflate"));
  data.codes = new Uint8Array(await new Response(bytes).arrayBuffer());
};
