// What every figure shares: how it starts, follows the page and speaks. It knows no
// figure. Pages carry these files without their comments (figure.py), which therefore
// fill whole lines, and no literal goes over several.

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
// Isolated, so that a token written from right to left leaves the sentence alone.
const quote = (token) => `«\u2068${token}\u2069»`;

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

// The sentence below a figure. Screen readers hear it once the reader pauses.
function addReadout(root) {
  const seen = add(root, "p", { class: "readout" });
  const heard = add(root, "p", { class: "heard", "aria-live": "polite" });
  let timer;
  return (sentence) => {
    clearTimeout(timer);
    if (seen.textContent) timer = setTimeout(() => (heard.textContent = sentence), 700);
    seen.textContent = sentence;
  };
}

// What an arrow key means: steps to the right and up.
const ARROWS = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

// Slides are scaled, and so is what the pointer and the box report of them.
function placeIn(node, { clientX, clientY }) {
  const { left, top } = node.getBoundingClientRect();
  const { host } = node.getRootNode();
  const scale = host.offsetWidth / host.getBoundingClientRect().width;
  return [(clientX - left) * scale, (clientY - top) * scale];
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
