// What every figure shares: how it starts, follows the page and speaks. Pages
// carry these files without their comments (figure.py), which therefore fill whole lines,
// and no literal goes over several.

const SVG = "http://www.w3.org/2000/svg";

// Text enters the page through textContent and setAttribute alone, never as markup.
function add(parent, tag, attributes = {}, text = "") {
  const drawn = tag === "svg" || parent.namespaceURI === SVG;
  const node = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  set(node, attributes);
  node.textContent = text;
  parent.append(node);
  return node;
}

function set(node, attributes) {
  for (const name in attributes) node.setAttribute(name, attributes[name]);
}

const addText = (svg, x, y, text, style = "") =>
  add(svg, "text", { x, y, class: style }, text);
// A true minus sign is as wide as a plus sign.
const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const count = (length) => Array.from({ length }, (_, i) => i);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const times = (a, b) => sum(a.map((value, i) => value * b[i]));
// Isolated, so that a token written from right to left leaves the sentence alone.
const quote = (token) => `“\u2068${token}\u2069”`;

// Largest first subtracted, so that no power overflows.
function softmaxOf(scores) {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest));
  const total = sum(powers);
  return powers.map((power) => power / total);
}

// In nats.
const entropyOf = (shares) =>
  Math.abs(sum(shares.map((share) => share && share * Math.log(share))));

function addSelect(bar, name, options, onChange) {
  const select = add(add(bar, "label", {}, name), "select", { "aria-label": name });
  options.forEach((text, value) => add(select, "option", { value }, text));
  select.onchange = () => onChange(+select.value);
  return select;
}

function addCheckbox(bar, name, onChange) {
  const label = add(bar, "label");
  const box = add(label, "input", { type: "checkbox" });
  label.append(name);
  box.onchange = () => onChange(box.checked);
  return box;
}

function addButton(bar, text, onClick) {
  const button = add(bar, "button", { type: "button" }, text);
  button.onclick = onClick;
  return button;
}

// `range` is {min, max, step}; what the slider stands for is shown as a text.
function addSlider(bar, name, range, onInput) {
  const label = add(bar, "label", {}, name);
  const slider = add(label, "input", { type: "range", "aria-label": name, ...range });
  const number = add(label, "span", { class: "number" });
  slider.show = (value, text) => {
    slider.value = value;
    number.textContent = text;
    set(slider, { "aria-valuetext": text });
  };
  slider.oninput = () => onInput(Number(slider.value));
  return slider;
}

// A share of 1: as a bar in a bed, and as a number beside it.
const addBed = (parent) => add(add(parent, "span", { class: "bed" }), "span");

function addShare(parent, kind) {
  const cell = add(parent, "span", { class: `share ${kind}` });
  return { bed: addBed(cell), number: add(cell, "span", { class: "number" }) };
}

function showShare({ bed, number }, share) {
  bed.style.width = `${100 * share}%`;
  number.textContent = share > 0 && share < 0.0005 ? "<0.001" : share.toFixed(3);
}

// A cell of a map that is masked.
function hatch(x, y, side) {
  const half = side / 2;
  return `M${x},${y + half}l${half},${-half}m${half},0l${-side},${side}` +
    `m${half},0l${half},${-half}`;
}

// A button that goes on from step to step by itself until the last, now.at === last.
// Returns the function that starts and stops it.
function addPlayer(bar, name, { now, first, last, beat }, show) {
  let timer;
  const button = addButton(bar, name, () => run(!timer));
  function run(running) {
    clearInterval(timer);
    timer = undefined;
    button.textContent = running ? "Pause" : name;
    if (!running) return;
    if (now.at === last) now.at = first;
    timer = setInterval(() => {
      now.at += 1;
      if (now.at === last || !button.isConnected) run(false);
      show();
    }, beat);
    show();
  }
  return run;
}

// The sentence below a figure. Screen readers hear it, or what is to be told in its place,
// once the reader pauses.
function addReadout(root) {
  const seen = add(root, "p", { class: "readout" });
  const heard = add(root, "p", { class: "heard", "aria-live": "polite" });
  let timer;
  return (sentence, told = sentence) => {
    clearTimeout(timer);
    if (seen.textContent) timer = setTimeout(() => (heard.textContent = told), 700);
    seen.textContent = sentence;
  };
}

// An arrow key is a step [to the right, up].
const ARROWS = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

function onArrows(node, onStep) {
  node.addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    onStep(step, event.target);
  });
}

// What is pointed at, or moved by the arrow keys; Escape goes back.
function addStage(root, label, onStep, onEscape) {
  const stage = add(root, "div", { class: "stage", tabindex: 0, role: "application" });
  stage.ariaLabel = label;
  onArrows(stage, onStep);
  stage.addEventListener("keydown", ({ key }) => key === "Escape" && onEscape?.());
  return stage;
}

// Slides are scaled, and so is what the pointer and the box report of them.
function placeIn(node, { clientX, clientY }) {
  const { left, top } = node.getBoundingClientRect();
  const { host } = node.getRootNode();
  const scale = host.offsetWidth / host.getBoundingClientRect().width;
  return [(clientX - left) * scale, (clientY - top) * scale];
}

// A drag: begin(x, y) returns the function that hears of every place of the pointer, if
// there is one. A finger may be about to scroll the page: it moves nothing until it is
// sure, if not isSure().
function onDrag(svg, begin, isSure = () => false) {
  let pull, first, sure;
  const move = (event) => {
    if (!pull) return;
    const [x, y] = placeIn(svg, event);
    sure ||= Math.abs(x - first[0]) > Math.abs(y - first[1]);
    if (sure) pull(x, y);
  };
  svg.onpointerdown = (event) => {
    first = placeIn(svg, event);
    sure = event.pointerType !== "touch" || isSure();
    pull = begin(...first);
    move(event);
    svg.setPointerCapture(event.pointerId);
  };
  svg.onpointermove = move;
  svg.onpointercancel = () => (pull = null);
  svg.onpointerup = (event) => {
    sure = true;
    move(event);
    pull = null;
  };
}

const pen = document.createElement("canvas").getContext("2d", {
  willReadFrequently: true,
});

// A page is dark when its text is light, whichever machinery made it so. The pixel
// turns every color notation of CSS into red, green and blue.
function isDark(host) {
  pen.fillStyle = getComputedStyle(host).color;
  pen.clearRect(0, 0, 1, 1);
  pen.fillRect(0, 0, 1, 1);
  const [red, green] = pen.getImageData(0, 0, 1, 1).data;
  return red + 2 * green > 384;
}

// Draws again when the page's theme or the figure's width changes.
function follow(host, draw) {
  let drawn;
  const check = () => {
    const dark = host.toggleAttribute("data-dark", isDark(host));
    const look = `${host.clientWidth} ${dark}`;
    if (look === drawn || !host.clientWidth) return;
    drawn = look;
    draw();
  };
  check();
  const later = () => setTimeout(check, 60);
  const watch = new MutationObserver(later);
  for (const node of document.querySelectorAll("html, body")) {
    watch.observe(node, { attributes: true });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  new ResizeObserver(check).observe(host);
}

// A figure is a function (root, data, host) that builds its parts and returns the
// function that draws them.
function startIn(host, data, css, figure) {
  const root = host.attachShadow({ mode: "open" });
  // Keys pressed here turn no page of the book and delete no notebook cell.
  root.addEventListener("keydown", (event) => event.stopPropagation());
  add(root, "style", {}, css);
  const body = add(root, "div", { role: "group" });
  body.ariaLabel = data.title || "figure";
  if (data.title) add(body, "b", {}, data.title);
  try {
    follow(host, figure(body, data, host));
  } catch (error) {
    // The slot shows the picture again.
    root.replaceChildren(document.createElement("slot"));
    throw error;
  }
}

// Starts every copy of the figure on the page that does not run yet, once it is nearly in
// sight: a page answers before figures are built that nobody has come to.
function start(key, data, css, figure) {
  let ready;
  const watch = new IntersectionObserver((changes) => {
    for (const { isIntersecting, target } of changes) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      ready ??= Promise.resolve(figure.prepare?.(data));
      ready.then(() => target.shadowRoot || startIn(target, data, css, figure));
    }
  }, { rootMargin: "800px" });
  document.querySelectorAll(`[data-figure="${key}"]`).forEach((host) =>
    watch.observe(host));
}
