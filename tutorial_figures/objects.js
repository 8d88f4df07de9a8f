// Object queries over training: choose a step, and see what each predicts.

// From one step to the next, in milliseconds.
const FRAME = 900;

function objects(root, data) {
  const { steps, queries, names } = data;
  const [rows, columns] = data.grid;
  const [height, width] = data.size;
  const images = data.images.map(bytesOf);
  const maps = bytesOf(data.maps);
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
  // Of a query's largest weight, what a patch has: 0 to 255.
  const share = (query, cell) =>
    maps[(now.at * images.length + now.scene) * queries * size + query * size + cell];

  // Dark ink on a light page in both themes, under a veil where a query reads little.
  function colorsOf(query) {
    return [...images[now.scene]].map((ink, i) => {
      const row = Math.floor(Math.floor(i / width) * rows / height);
      const cell = row * columns + Math.floor((i % width) * columns / width);
      const level = 255 - ink;
      const shade = share(query, cell) / 255;
      const seen = 127 + (0.22 + 0.78 * shade) * (level - 127);
      return [seen, seen, seen, 255];
    });
  }

  // The predicted box, in patches.
  function boxOf(query) {
    const [x, y, wide, high] = data.boxes[now.at][now.scene][query];
    return {
      x: (x - wide / 2) * columns, y: (y - high / 2) * rows,
      width: wide * columns, height: high * rows,
    };
  }

  function show() {
    const { at, scene } = now;
    slider.show(at, steps[at]);
    panels.forEach(({ canvas, frames, name }, query) => {
      const speaks = names[at][scene][query];
      paint(canvas, width, colorsOf(query));
      const box = speaks && boxOf(query);
      for (const frame of frames) {
        frame.toggleAttribute("hidden", !box);
        if (box) set(frame, box);
      }
      name.textContent = `query ${query}: ${speaks ?? "∅"}`;
      const middle = box && [box.x + box.width / 2, box.y + box.height / 2];
      const where = box
        ? `its box is centered at column ${middle[0].toFixed(1)}, `
          + `row ${middle[1].toFixed(1)} of the patches` : "it has no box";
      canvas.ariaLabel = `where query ${query} attends in the scene: ${where}`;
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
