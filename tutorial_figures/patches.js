// Attention over the patches of an image: point at a patch and see where it looks. Or
// put questions to the image, if there are some: point at a patch and see its weight.

function patches(root, data, host) {
  const { columns: tokens, classToken, patch, questions } = data;
  const [rows, columns] = data.grid;
  const offset = classToken ? 1 : 0;
  const cells = count(rows * columns);
  // How strong red, green and blue are in each pixel, from 0 to 255, and the patch it
  // lies in.
  const pixels = count(rows * columns * patch ** 2).map((i) => {
    const x = i % (columns * patch);
    const y = Math.floor(i / (columns * patch));
    const cell = Math.floor(y / patch) * columns + Math.floor(x / patch);
    return [[...data.bytes.subarray(4 * i, 4 * i + 3)], cell];
  });
  // A place is a row and a column; the class token is column -1.
  const initial = data.first
    ?? [Math.floor(rows / 2), classToken ? -1 : Math.floor(columns / 2)];
  const now = { ...data.shown, place: initial, question: 0 };
  let kept = initial;
  const pointedAt = () => {
    const [row, column] = now.place;
    return column < 0 ? 0 : offset + row * columns + column;
  };
  const query = () => questions ? now.question : pointedAt();

  const asked = questions && add(root, "div", { class: "bar" });
  const buttons = (questions ?? []).map((question, i) =>
    addButton(asked, question, () => ask(i)));
  const { bar, code, weight, show, choose } =
    openHeads(root, data, now, (canvas, head) => {
      const colors = shadesOf(head).map((shade) => colorOf(shade, dark));
      paint(canvas, columns, colors);
    }, mark);
  if (!data.faint) {
    addCheckbox(bar, "colors from 0 to 1", (absolute) => choose({ absolute }));
  }
  const numbersBox = addCheckbox(bar, "numbers", (numbers) => choose({ numbers }));
  const beside = classToken ? ", the class token left of it" : "";
  const help = `image of ${rows} by ${columns} patches${beside}; arrow keys move`;
  const stage = addStage(root, help, ([right, up]) => {
    const [row, column] = kept;
    // From the class token the keys lead back to the row they came from.
    const next = column < 0 ? row : clamp(row - up, 0, rows - 1);
    keep([next, clamp(column + right, -offset, columns - 1)]);
  }, () => keep(initial));
  const legend = add(root, "div", { class: "bar" });
  add(legend, "span", {}, "weight 0");
  const scale = add(legend, "canvas");
  const most = add(legend, "span");
  add(legend, "span", {}, `equal shares: ${(1 / tokens).toFixed(3)}`);
  const say = addReadout(root);
  add(root, "p", { class: "small" }, [
    questions ? "Choose a question." : "",
    `Point at a patch${classToken ? " or at the class token" : ""}, click to keep it;`,
    "arrow keys move. Patches are (row, column), counted from 0.",
  ].join(" "));

  // The weight that the full color stands for, and the weights as shares of it.
  const weightsOf = (head) => cells.map((cell) => weight(query(), offset + cell, head));
  const limitOf = (head) =>
    now.absolute ? 1 : Math.max(0.001, ...weightsOf(head));
  function shadesOf(head) {
    const limit = limitOf(head);
    return weightsOf(head).map((value) => value / limit);
  }

  // ---- drawing
  let canvas, side, left, ceiling, chip, gauge, share, numbers, frames;
  let dark, strongest;

  function draw() {
    left = classToken ? 86 : 4;
    const room = Math.max(60, host.clientWidth - left - 4);
    side = Math.floor(Math.min(room / columns, 340 / Math.max(rows, columns)));
    const wide = side * columns;
    const high = side * rows;
    const whole = classToken ? Math.max(high, 84) : high;
    ceiling = 4 + (whole - high) / 2;
    chip = { x: 4, y: 4 + (whole - 84) / 2, width: 68, height: 84 };
    dark = isDark(host);
    strongest = colorOf(dark ? 0.55 : 0.75).slice(0, 3);
    stage.replaceChildren();
    const place = `left:${left}px;top:${ceiling}px;width:${wide}px;height:${high}px`;
    canvas = add(stage, "canvas", { style: place });
    const svg = add(stage, "svg", { width: left + wide + 4, height: whole + 8 });
    const across = count(rows + 1).map((i) => `M${left},${ceiling + i * side}h${wide}`);
    const down = count(columns + 1).map((j) =>
      `M${left + j * side},${ceiling}v${high}`);
    const d = [...across, ...down].join("");
    for (const tone of ["halo", "grid"]) add(svg, "path", { class: tone, d });
    if (classToken) {
      gauge = add(svg, "rect", { ...chip, class: "gauge" });
      add(svg, "rect", { ...chip, class: "chip" });
      [share] = ["", "token", "class"].map((text, i) =>
        addText(svg, 38, chip.y + 68 - 23 * i, text, "number middle"));
    }
    // Room for the digits of a weight?
    numbersBox.parentNode.hidden = side < 36;
    numbers = (side < 36 ? [] : cells).map((cell) => {
      const x = left + (cell % columns + 0.5) * side;
      const y = ceiling + (Math.floor(cell / columns) + 0.5) * side;
      return addText(svg, x, y + 4, "", "small number middle");
    });
    frames = ["halo", "frame"].map((style) => add(svg, "rect", { class: style }));
    if (questions) ask(now.question);
    else choose({});
  }

  // Ink is dark on a light page and light on a dark one, and pale, because color stands
  // for weights. A photograph keeps its colors, under a veil where nobody looks.
  function blend(colors, shade) {
    const mixed = colors.map((level, i) => {
      if (data.faded) return 127 + (0.22 + 0.78 * shade) * (level - 127);
      const pale = dark ? level / 2 : 255 - level / 2;
      return pale + 0.85 * shade * (strongest[i] - pale);
    });
    return [...mixed, 255];
  }

  function mark() {
    const [row, column] = now.place;
    buttons.forEach((button, i) => (button.ariaPressed = i === now.question));
    const shades = shadesOf();
    paint(canvas, columns * patch, pixels.map(([colors, cell]) =>
      blend(colors, shades[cell])));
    // Weights over both ends of grey.
    paint(scale, 81, [0, 255].flatMap((level) =>
      count(81).map((i) => blend([level, level, level], i / 80))));
    most.textContent = limitOf().toFixed(3);
    numbers.forEach((number, cell) =>
      (number.textContent = now.numbers ? show(query(), offset + cell) : ""));
    if (classToken) {
      const height = chip.height * weight(query(), 0);
      set(gauge, { y: chip.y + chip.height - height, height });
      share.textContent = show(query(), 0);
    }
    const x = left + column * side;
    const y = ceiling + row * side;
    const box = column < 0 ? chip : { x, y, width: side, height: side };
    for (const frame of frames) set(frame, box);
    say(sentence());
  }

  // Choose a question, and point at the patch to which it gives most.
  function ask(question) {
    choose({ question });
    const weights = weightsOf();
    const cell = weights.indexOf(Math.max(...weights));
    keep([Math.floor(cell / columns), cell % columns]);
  }

  // With a space that breaks no line.
  const nameOf = (place) => `(${place.join(",\u00a0")})`;

  function largestOf(from) {
    const name = (cell) => !questions && offset + cell === from
      ? "itself"
      : nameOf([Math.floor(cell / columns), cell % columns]);
    return nameLargest(cells.map((cell) =>
      [code(from, offset + cell), `${name(cell)} ${show(from, offset + cell)}`]));
  }

  function sentence() {
    const from = query();
    if (questions) {
      const pointed = `Patch ${nameOf(now.place)} gets ${show(from, pointedAt())}`;
      return `${questions[from]} ${pointed}, and the largest are ${largestOf(from)}.`;
    }
    const isClass = now.place[1] < 0;
    const subject = isClass ? "The class token" : `Patch ${nameOf(now.place)}`;
    const largest = largestOf(from);
    if (!classToken) return `${subject} attends most to ${largest}.`;
    const receiver = isClass ? "itself" : "the class token";
    const given = `${subject} gives ${receiver} ${show(from, 0)}.`;
    return `${given} Of the patches it attends most to ${largest}.`;
  }

  // ---- pointer and keys: one place is kept, another may be looked at in passing
  function look(place) {
    if (String(place) !== String(now.place)) choose({ place });
  }

  function keep(place) {
    kept = place;
    look(place);
  }

  function tokenAt(event) {
    const [x, y] = placeIn(stage, event);
    const place = [(y - ceiling) / side, (x - left) / side].map(Math.floor);
    if (place[0] in count(rows) && place[1] in count(columns)) return place;
    const isOnChip = Math.abs(x - 38) < 34 && Math.abs(y - chip.y - 42) < 42;
    return classToken && isOnChip ? [kept[0], -1] : kept;
  }
  stage.onpointermove = (event) => look(tokenAt(event));
  stage.onpointerleave = () => look(kept);
  stage.onclick = (event) => keep(tokenAt(event));
  return draw;
}

// The image comes as a file, of which the browser makes bytes: four to a pixel.
patches.prepare = async (data) => {
  const image = document.createElement("img");
  const loaded = new Promise((resolve) => (image.onload = resolve));
  image.src = data.picture;
  await Promise.all([unpack(data), loaded]);
  const canvas = document.createElement("canvas");
  set(canvas, { width: image.width, height: image.height });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  data.bytes = context.getImageData(0, 0, image.width, image.height).data;
};
