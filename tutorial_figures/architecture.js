// A diagram of boxes that lead to their code: click a box or its frame, or press keys.

// As many units of the drawing are one em of its letters.
const UNITS = 13;
const MOST = 1.07;

// The node is placed in em, so that the size of the letters scales all.
function placeAt(node, [x, y, width, height]) {
  const sides = Object.entries({ left: x, top: y, width, height });
  node.style.cssText = sides.map(([side, at]) => `${side}:${at / UNITS}em`).join(";");
}

// The box that lies next in the direction [right, up], sooner in line than aside.
function findNext(boxes, from, [right, up]) {
  const middle = ([x, y, width, height]) => [x + width / 2, y + height / 2];
  const [x, y] = middle(boxes[from].place);
  const ways = boxes.map(({ place }) => {
    const east = middle(place)[0] - x;
    const north = y - middle(place)[1];
    const along = east * right + north * up;
    const aside = Math.abs(east * up) + Math.abs(north * right);
    return along > 4 ? along + 2 * aside : Infinity;
  });
  const shortest = Math.min(...ways);
  return shortest < Infinity ? ways.indexOf(shortest) : from;
}

// A mask's rows are queries, its columns keys; what is hidden is hatched.
function drawMask(svg, [middle, height, rows], cell) {
  rows.forEach((row, query) => [...row].forEach((seen, key) => {
    const x = middle + cell * (key - row.length / 2);
    const y = height + cell * (query - rows.length / 2);
    const shape = { x, y, width: cell, height: cell };
    add(svg, "rect", { ...shape, class: seen === "1" ? "seen" : "hidden" });
    if (seen === "0") add(svg, "path", { d: hatch(x, y, cell) });
  }));
}

function architecture(root, data, host) {
  const { boxes, about, code, width, height } = data;
  add(root, "p", {}, "Click a box or a frame for its code; arrow keys move.");
  const views = add(root, "div", { class: "views" });
  const stage = add(views, "div", { class: "stage" });
  const panel = add(views, "div", { class: "panel" });
  const say = addReadout(panel);
  const sentence = panel.querySelector(".readout");
  const listing = add(panel, "pre", { tabindex: 0, role: "region" });
  // In a box that scrolls, as the page's is, what is told could not stay in sight.
  host.parentElement.style.overflow = "visible";

  // ---- the diagram: frames and boxes to press, and what flows between them
  const parts = boxes.map((box, i) => {
    const style = `frame ${box.about}`;
    const frame = box.frame.length && add(stage, "div", { class: style });
    const button = addButton(stage, box.label, () => {
      choose(i);
      sentence.scrollIntoView({ block: "nearest" });
    });
    const tower = box.name.split(":")[0];
    set(button, { class: `${tower} ${box.about} ${frame ? "title" : ""}` });
    button.ariaLabel = box.name;
    placeAt(button, box.place);
    if (frame) {
      placeAt(frame, box.frame);
      frame.onclick = button.onclick;
    }
    return { button, frame };
  });
  const svg = add(stage, "svg", { viewBox: `0 0 ${width} ${height}` });
  svg.ariaHidden = true;
  for (const kind in data.paths) add(svg, "path", { class: kind, d: data.paths[kind] });
  for (const [x, y, text] of data.texts) addText(svg, x, y, text, "middle");
  for (const mask of data.masks) drawMask(svg, mask, data.cell);

  onArrows(stage, (step, target) => {
    const from = parts.findIndex(({ button }) => button === target);
    const next = findNext(boxes, from, step);
    parts[next].button.focus();
    choose(next);
  });

  function choose(chosen) {
    parts.forEach(({ button, frame }, i) => {
      button.ariaPressed = i === chosen;
      if (frame) frame.toggleAttribute("data-chosen", i === chosen);
    });
    const { name } = boxes[chosen];
    const { part, does, takes, gives, marks } = about[boxes[chosen].about];
    const source = code[part];
    const flows = [`in: ${takes}`, `out: ${gives}`];
    say([name, does, ...flows, `code: ${source.name}`].join("\n"));
    list(source, marks);
  }

  // The source; comments and docstrings stand back, the lines that matter are marked.
  function list({ name, cuts }, marks) {
    listing.replaceChildren();
    listing.ariaLabel = `source of ${name}`;
    const lines = add(listing, "code");
    for (const line of marks) add(lines, "mark", { style: `top:${1.5 * line}em` });
    cuts.forEach((text, i) => add(lines, i % 2 ? "i" : "span", {}, text));
    const first = lines.querySelector("mark");
    listing.scrollTo(0, first ? first.offsetTop - listing.clientHeight / 3 : 0);
  }

  choose(0);
  return () => {
    const room = host.clientWidth;
    const beside = room >= 620;
    views.toggleAttribute("data-beside", beside);
    const scale = beside ? clamp((room - 330) / width, 0.9, MOST) : room / width;
    placeAt(stage, [0, 0, width, height]);
    stage.style.fontSize = `${UNITS * Math.min(MOST, scale)}px`;
  };
}
