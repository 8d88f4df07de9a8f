// Windows on a grid of tokens: choose a token, and see its receptive field.

function windows(root, data, host) {
  const { side, size } = data;
  const cells = count(side ** 2).map((i) => [Math.floor(i / side), i % side]);
  const now = { ...data.shown, place: data.place };

  const bar = add(root, "div", { class: "bar" });
  const slider = addSlider(bar, "layers", { min: 1, max: data.most, step: 1 }, (layers) =>
    choose({ layers }));
  const shiftBox = addCheckbox(bar, "shift every other layer", (shifted) =>
    choose({ shifted }));
  const rollBox = addCheckbox(bar, "cyclic shift", (rolled) => choose({ rolled }));
  const help = `grid of ${side} by ${side} tokens; arrow keys move`;
  const stage = addStage(root, help, ([right, up]) => {
    // The keys move over what is shown.
    const [row, column] = now.place.map(shownAt);
    const next = [row - up, column + right];
    choose({ place: next.map((x) => inverse(clamp(x, 0, side - 1))) });
  }, () => choose({ place: data.place }));
  const legend = add(root, "div", { class: "bar" });
  const kinds = { reads: "attends to", known: "receptive field", masked: "masked" };
  for (const kind in kinds) {
    const label = add(legend, "span", { class: `key of-${kind}` });
    add(add(label, "svg", { width: 16, height: 16 }), "rect", { class: kind });
    label.append(kinds[kind]);
  }
  const say = addReadout(root);
  add(root, "p", { class: "small" }, [
    "Point at a token and click, or use the arrow keys. Tokens are row, column,",
    "counted from 0; thick lines are the windows of the last layer.",
  ].join(" "));

  // ---- windows, the same for rows and for columns
  const shiftOf = (layer) => (now.shifted && layer % 2 === 0 ? size / 2 : 0);
  const windowOf = (x, layer) => Math.floor((x - shiftOf(layer)) / size);
  // Where a row or a column of the grid is shown; rolling brings the windows to 0.
  const roll = () => (now.rolled ? shiftOf(now.layers) : 0);
  const shownAt = (x) => (x - roll() + side) % side;
  const inverse = (x) => (x + roll()) % side;

  // The rows, or columns, that one of them hears of from here down to layer `last`.
  function reach(x, last) {
    let seen = [x];
    for (let layer = now.layers; layer >= last; layer -= 1) {
      const met = new Set(seen.map((y) => windowOf(y, layer)));
      seen = count(side).filter((y) => met.has(windowOf(y, layer)));
    }
    return seen;
  }
  const block = (last) => now.place.map((x) => reach(x, last));
  const within = ([row, column], [rows, columns]) =>
    rows.includes(row) && columns.includes(column);
  // Rolled, a whole window holds what came from other edges, too.
  const together = (place) => place.every((x, axis) =>
    Math.floor(shownAt(x) / size) === Math.floor(shownAt(now.place[axis]) / size));

  let width, squares, lines, seam, frame;

  function draw() {
    width = Math.min(44, Math.floor((host.clientWidth - 4) / side));
    stage.replaceChildren();
    const svg = add(stage, "svg", { width: width * side + 4, height: width * side + 4 });
    squares = cells.map(() => [
      add(svg, "rect", { width: width - 1, height: width - 1 }),
      addText(svg, 0, 0, "", "small middle"),
    ]);
    lines = add(svg, "path", { class: "border" });
    seam = add(svg, "path", { class: "seam" });
    frame = add(svg, "rect", { width: width - 1, height: width - 1, class: "frame" });
    show();
  }

  function choose(change) {
    Object.assign(now, change);
    show();
  }

  function show() {
    slider.show(now.layers, now.layers);
    shiftBox.checked = now.shifted;
    rollBox.checked = now.rolled;
    legend.querySelector(".of-masked").hidden = !now.rolled;
    const [heard, reads] = [block(1), block(now.layers)];
    cells.forEach((place, i) => {
      const [y, x] = place.map((part) => 2 + width * shownAt(part));
      const isMasked = now.rolled && together(place) && !within(place, reads);
      const other = within(place, heard) ? "known" : "";
      const kind = within(place, reads) ? "reads" : other;
      set(squares[i][0], { x, y, class: `${kind} ${isMasked ? "masked" : ""}` });
      set(squares[i][1], { x: x + width / 2, y: y + width / 2 + 4 });
      squares[i][1].textContent = place.join(",");
    });
    const borders = count(side).filter((x) => x > 0 && (now.rolled
      ? x % size === 0
      : windowOf(x, now.layers) !== windowOf(x - 1, now.layers)));
    const long = width * side;
    const across = (x) =>
      `M2,${1.5 + x * width}h${long}M${1.5 + x * width},2v${long}`;
    set(lines, { d: borders.map(across).join("") });
    // Where opposite edges meet.
    set(seam, { d: roll() ? across(side - roll()) : "" });
    const [y, x] = now.place.map((part) => 2 + width * shownAt(part));
    set(frame, { x, y });
    say(sentence(heard, reads));
  }

  function sentence(heard, reads) {
    const [told, read] = [heard, reads].map(([a, b]) => a.length * b.length);
    const kind = shiftOf(now.layers) ? "shifted" : "regular";
    const some = now.layers > 1 ? "layers" : "layer";
    const hidden = cells.filter(together).length - read;
    return [
      `Token (${now.place.join(", ")}) attends to ${read} token${read > 1 ? "s" : ""} in the last layer,`,
      `whose windows are ${kind}. After ${now.layers} ${some} its receptive`,
      `field has ${told} of ${side ** 2} tokens.`,
      now.rolled ? `After the cyclic shift, ${hidden} tokens of its window are masked.` : "",
    ].join(" ").trim();
  }

  stage.onclick = (event) => {
    const [x, y] = placeIn(stage, event).map((part) => Math.floor((part - 2) / width));
    if (x in count(side) && y in count(side)) choose({ place: [y, x].map(inverse) });
  };
  return draw;
}
