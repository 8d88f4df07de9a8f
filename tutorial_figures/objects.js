// Object queries over training: choose a step, and see what each predicts.

// From one step to the next, in milliseconds.
const FRAME = 900;

function objects(root, data) {
  const { steps, queries, names } = data;
  const [rows, columns] = data.grid;
  const [height, width] = data.size;
  const images = data.images.map(bytesOf);
  const masks = bytesOf(data.masks);
  const size = rows * columns;
  const last = steps.length - 1;
  const now = { at: last, scene: 0 };

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const run = addPlayer(bar, "Train", { now, first: 0, last, beat: FRAME }, show);
  const range = { min: 0, max: last, step: 1 };
  const slider = addSlider(bar, "steps of training", range, (at) => {
    run(false);
    choose({ at });
  });
  const scenes = images.map((_, i) => `${i + 1}`);
  if (images.length > 1) addSelect(bar, "scene", scenes, (scene) => choose({ scene }));
  const stage = add(root, "div", { class: "panels" });
  const panels = count(queries).map(() => {
    const panel = add(stage, "div", { class: "panel" });
    const view = add(panel, "div", { class: "view" });
    const canvas = add(view, "canvas", { role: "img" });
    const svg = add(view, "svg", { viewBox: `0 0 ${columns} ${rows}` });
    const frames = ["halo", "frame"].map((style) => add(svg, "rect", { class: style }));
    return { canvas, frames, name: add(panel, "div") };
  });
  const say = addReadout(root);

  function choose(change) {
    Object.assign(now, change);
    show();
  }

  // ---- drawing
  const share = (query, cell) =>
    masks[(now.at * images.length + now.scene) * queries * size + query * size + cell];

  // Dark ink on a light page in both themes, under a veil where the mask is not.
  function colorsOf(query, speaks) {
    return [...images[now.scene]].map((ink, i) => {
      const row = Math.floor(Math.floor(i / width) * rows / height);
      const cell = row * columns + Math.floor((i % width) * columns / width);
      const level = 255 - ink;
      const shade = speaks ? share(query, cell) / 255 : 0;
      const seen = 127 + (0.22 + 0.78 * shade) * (level - 127);
      return [seen, seen, seen, 255];
    });
  }

  // The box around what the mask covers.
  function boxOf(query) {
    const cells = count(size).filter((cell) =>
      share(query, cell) > 255 * data.there);
    if (!cells.length) return null;
    const ys = cells.map((cell) => Math.floor(cell / columns));
    const xs = cells.map((cell) => cell % columns);
    const [y, x] = [Math.min(...ys), Math.min(...xs)];
    return { x, y, width: Math.max(...xs) - x + 1, height: Math.max(...ys) - y + 1 };
  }

  function show() {
    const { at, scene } = now;
    slider.show(at, steps[at]);
    panels.forEach(({ canvas, frames, name }, query) => {
      const speaks = names[at][scene][query];
      paint(canvas, width, colorsOf(query, speaks));
      const box = speaks && boxOf(query);
      for (const frame of frames) {
        frame.toggleAttribute("hidden", !box);
        if (box) set(frame, box);
      }
      name.textContent = `query ${query}: ${speaks ?? "∅"}`;
      const where = box
        ? `its box begins at row ${box.y}, column ${box.x}` : "it draws nothing";
      canvas.ariaLabel = `scene as query ${query} sees it: ${where}`;
    });
    say(sentence());
  }

  function sentence() {
    const parts = names[now.at][now.scene].map((name, query) =>
      `query ${query} predicts ${name ?? "no object"}`);
    return `After ${steps[now.at]} steps ${parts.join(", ")}.`;
  }

  return show;
}
