// What every figure shares: how it starts, follows the page's theme and speaks.
// It knows no figure.

const SVG_TAGS = /^(svg|g|path|rect|text|circle|line)$/;

// Text enters a page through textContent and setAttribute alone, never as markup.
function add(parent, tag, attributes = {}, text = "") {
  const node = SVG_TAGS.test(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  set(node, attributes);
  if (text !== "") node.textContent = text;
  parent.append(node);
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
}

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const count = (length) => Array.from({ length }, (_, i) => i);
const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");
// Isolated, so that a token written from right to left leaves the sentence alone.
const quote = (token) => `«\u2068${token}\u2069»`;

function addSelect(bar, name, options, value, onChange) {
  const label = add(bar, "label", {}, name);
  const select = add(label, "select");
  for (const [choice, text] of options) add(select, "option", { value: choice }, text);
  select.value = value;
  select.onchange = () => onChange(select.value);
  return select;
}

function addCheckbox(bar, name, checked, onChange) {
  const label = add(bar, "label");
  const input = add(label, "input", { type: "checkbox" });
  label.append(name);
  input.checked = checked;
  input.onchange = () => onChange(input.checked);
  return input;
}

// `range` is {min, max, step}; `show` turns the slider's position into text.
function addSlider(bar, name, range, show, onInput) {
  const label = add(bar, "label", {}, name);
  const input = add(label, "input", { type: "range", ...range });
  const number = add(label, "span", { class: "number" });
  input.show = (value) => {
    input.value = value;
    number.textContent = show(value);
    input.setAttribute("aria-valuetext", show(value));
  };
  input.oninput = () => onInput(Number(input.value));
  return input;
}

function addButton(bar, text, onClick) {
  const button = add(bar, "button", { type: "button" }, text);
  button.onclick = onClick;
  return button;
}

// The sentence below a figure. Screen readers hear it only once the reader pauses.
function addReadout(root) {
  const seen = add(root, "p", { class: "readout" });
  const heard = add(root, "p", { class: "heard", "aria-live": "polite" });
  let timer;
  return (sentence) => {
    const first = seen.textContent === "";
    if (sentence === seen.textContent) return;
    seen.textContent = sentence;
    clearTimeout(timer);
    if (!first) timer = setTimeout(() => (heard.textContent = sentence), 700);
  };
}

function textWidth(text, size = 13) {
  textWidth.pen ??= document.createElement("canvas").getContext("2d");
  textWidth.pen.font = `${size}px system-ui, sans-serif`;
  return textWidth.pen.measureText(text).width;
}

function shorten(text, width) {
  if (textWidth(text) <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && textWidth(letters.join("") + "…") > width) letters.pop();
  return letters.join("") + "…";
}

// A page is dark when its text is light, whichever theme machinery made it so. The
// pixel turns every colour notation of CSS into red, green and blue.
function isDark(host) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.fillStyle = getComputedStyle(host).color;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
  return 0.3 * red + 0.6 * green + 0.1 * blue > 128;
}

function followTheme(host, redraw) {
  const follow = () => {
    const dark = isDark(host);
    if (dark === host.hasAttribute("data-dark")) return;
    host.toggleAttribute("data-dark", dark);
    redraw();
  };
  follow();
  const later = () => setTimeout(follow, 60);
  const observer = new MutationObserver(later);
  for (const node of [document.documentElement, document.body]) {
    observer.observe(node, { attributes: true });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
}

function followWidth(host, redraw) {
  let width = host.clientWidth;
  new ResizeObserver(() => {
    if (host.clientWidth === width) return;
    width = host.clientWidth;
    redraw();
  }).observe(host);
}

// Weights travel as base64 of (deflated) little-endian 16-bit integers.
async function unpack(packed, deflated) {
  let bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  if (deflated) {
    const stream = new Blob([bytes]).stream();
    const inflated = stream.pipeThrough(new DecompressionStream("deflate"));
    bytes = new Uint8Array(await new Response(inflated).arrayBuffer());
  }
  return new Uint16Array(bytes.buffer);
}

// A figure is a function (root, data, host) that builds its parts and returns a
// function that draws them again, for another width or theme.
function startOne(host, data, css, figure) {
  const root = host.attachShadow({ mode: "open" });
  // Keys pressed here turn no page of the book and delete no notebook cell.
  root.addEventListener("keydown", (event) => event.stopPropagation());
  add(root, "style", {}, css);
  const body = add(root, "div", { role: "group", "aria-label": data.text });
  if (data.title) add(body, "h2", {}, data.title);
  try {
    let redraw = () => {};
    followTheme(host, () => redraw());
    redraw = figure(body, data, host);
    redraw();
    followWidth(host, redraw);
  } catch (error) {
    root.replaceChildren(document.createElement("slot")); // the picture again
    throw error;
  }
}

// Starts every copy of the figure on the page that does not run yet.
async function start(key, data, css, figure) {
  if (data.packed) data.codes = await unpack(data.packed, data.deflated);
  for (const host of document.querySelectorAll(`[data-figure="${key}"]`)) {
    if (!host.shadowRoot) startOne(host, data, css, figure);
  }
}
