// A language model that writes on: what was likely at each token, and for every head who
// was attended to. A head that is switched off changes what is written.

// From one token to the next, in milliseconds.
const TICK = 70;
const LONGEST = 400;
const LINE = 60;
const LIKELY = 8;
// Milliseconds after which the reader is told to wait.
const WAIT = 300;

// The first message is the model, and each of the others asks for a text.
function answerInWorker() {
  let write;
  self.onmessage = ({ data }) => {
    if (write) self.postMessage({ ...write(data), id: data.id });
    else write = makeWriter(data);
  };
}

// The text of what is used here runs there.
function openWriter(data, onSteps, onError) {
  const source = [
    `const sum = ${sum}, count = ${count}, bytesOf = ${bytesOf};`,
    softmaxOf, readWeights, writingModel, makeWriter, probabilitiesOf, drawFrom, randomNumber,
    `(${answerInWorker})();`,
  ].join("\n");
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const thread = new Worker(address);
  URL.revokeObjectURL(address);
  thread.onmessage = (event) => onSteps(event.data);
  thread.onerror = onError;
  thread.postMessage({ sizes: data.sizes, spec: data.spec, weights: data.weights });
  return thread;
}

const printed = (word) => ({ "\n": "↵", " ": "␣" })[word] ?? word;

function writing(root, data, host) {
  const { words, separator, sizes } = data;
  const heads = sizes.num_layers * sizes.num_heads;
  const split = (text) => (separator ? text.split(/\s+/) : [...text]);
  const toIds = (text) => split(text).map((word) => words.indexOf(word));
  const stored = { tokens: toIds(data.prompt + separator + data.written), steps: [] };
  const now = { ...stored, prompt: toIds(data.prompt), off: new Set(), running: false };
  now.settings = { temperature: data.temperature, p: 1, seed: 0 };
  now.at = now.tokens.length - 1;
  let thread, timer, wait, visible, dark, asked, id = 0;

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const field = add(add(bar, "label", { class: "grows" }, "text"), "input", {
    "aria-label": "a text to go on with", spellcheck: "false",
  });
  field.value = data.prompt;
  field.onchange = begin;
  const play = addButton(bar, "Continue", () => run(!now.running));
  addButton(bar, "Next token", () => { run(false); ask(now.tokens.length + 1); });
  addButton(bar, "Sample again", () => change({ seed: now.settings.seed + 1 }));
  const dials = add(root, "div", { class: "bar" });
  const temperature = addSlider(dials, "temperature", { min: 0.1, max: 2, step: 0.1 },
    (value) => change({ temperature: value }));
  const share = addSlider(dials, "top-p", { min: 0.1, max: 1, step: 0.05 }, (value) =>
    change({ p: value }));
  const all = addButton(dials, "", () => {
    now.off = new Set(now.off.size ? [] : count(heads));
    rewrite();
  });

  const text = addStage(root, "the text: arrow keys choose a token", ([right, up]) =>
    choose(now.at + right - up));
  text.classList.add("text");
  text.addEventListener("keydown", (event) => {
    const by = { Home: -LONGEST, End: LONGEST }[event.key];
    if (!by) return;
    event.preventDefault();
    choose(now.at + by);
  });
  text.onclick = ({ target }) => {
    const at = [...text.children].indexOf(target);
    if (at >= 0) choose(at);
  };
  const both = add(root, "div", { class: "both" });
  const table = add(both, "div", { class: "next" });
  const panel = add(both, "div", { class: "panel", role: "group" });
  panel.ariaLabel = "heads of attention";
  const letters = add(panel, "div", { class: "letters number" });
  const rows = count(heads).map((head) => {
    const layer = Math.floor(head / sizes.num_heads);
    const button = addButton(panel, "", () => {
      if (!now.off.delete(head)) now.off.add(head);
      rewrite();
    });
    add(button, "span", {}, `layer ${layer}, head ${head % sizes.num_heads}`);
    return { button, canvas: add(button, "canvas") };
  });
  const say = addReadout(root);

  // ---- writing
  function begin() {
    const unknown = [...new Set(split(field.value))].filter((x) => !words.includes(x));
    if (!field.value) say("Write a text.");
    else if (unknown.length) say(`The model does not know ${unknown.map(quote).join()}.`);
    else write();
  }

  function write() {
    run(false);
    const given = toIds(field.value);
    now.prompt = given.slice(-LONGEST / 2);
    now.cut = given.length - now.prompt.length;
    ask(now.prompt.length + LINE);
  }

  function change(settings) {
    Object.assign(now.settings, settings);
    rewrite();
  }

  const rewrite = () => ask(Math.max(now.tokens.length, now.prompt.length + 1));

  // The model is unpacked when something is first asked of it.
  function ask(until, at = until - 1) {
    const { prompt, settings } = now;
    thread ??= openWriter(data, shown, () => {
      clearTimeout(wait);
      say("Cannot compute here.");
    });
    id += 1;
    const off = [...now.off];
    const key = JSON.stringify([prompt, off, settings]);
    const since = key === now.key ? now.steps.length : 0;
    asked = { key, since, at };
    thread.postMessage({ id, prompt, settings, off, since, until: Math.min(until, LONGEST) });
    clearTimeout(wait);
    wait = setTimeout(() => now.running || say("Computing …"), WAIT);
    show();
  }

  // Only what is new of a text is sent.
  function shown({ tokens, steps: added, id: answered }) {
    if (answered !== id) return;
    clearTimeout(wait);
    const steps = [...now.steps.slice(0, asked.since), ...added];
    const at = Math.min(asked.at, tokens.length - 1);
    Object.assign(now, { key: asked.key, tokens, steps, at });
    if (tokens.length === LONGEST) run(false);
    show();
    if (now.running) timer = setTimeout(next, TICK);
  }

  const next = () => now.running && visible && ask(now.tokens.length + 1);

  // Who wants no movement gets a line at once.
  function run(running) {
    clearTimeout(timer);
    if (running && matchMedia("(prefers-reduced-motion: reduce)").matches) {
      ask(now.tokens.length + LINE);
      return;
    }
    now.running = running;
    play.textContent = running ? "Pause" : "Continue";
    if (running && now.tokens.length === LONGEST) now.tokens = now.prompt;
    if (running) ask(now.tokens.length + 1);
    else if (now.steps.length) show();
  }

  // Out of sight nothing is computed.
  new IntersectionObserver(([{ isIntersecting }]) => {
    visible = isIntersecting;
    next();
  }).observe(host);

  // ---- what is shown
  function choose(at) {
    now.at = clamp(at, 0, now.tokens.length - 1);
    run(false);
    if (!now.steps.length) ask(now.tokens.length, now.at);
  }

  function show() {
    const { tokens, steps, at, settings } = now;
    temperature.show(settings.temperature, settings.temperature.toFixed(1));
    share.show(settings.p, settings.p.toFixed(2));
    text.replaceChildren();
    tokens.forEach((token, i) => {
      const kind = i < now.prompt.length ? "given" : "";
      const mark = i === at ? "chosen" : "";
      add(text, "span", { class: `${kind} ${mark}` }, words[token] + separator);
    });
    all.textContent = `All heads ${now.off.size ? "on" : "off"}`;
    const { maps, probs } = steps[at] ?? data;
    showMaps(maps, tokens.slice(0, at + 1));
    showLikely(probs);
    if (!now.running) say(sentence(steps[at]));
  }

  function showMaps(maps, read) {
    const wide = Math.min(maps[0].length, 24);
    const last = separator ? [] : read.slice(-wide);
    letters.replaceChildren();
    add(letters, "span", { class: "corner" }, "attention to");
    last.forEach((token) => add(letters, "span", {}, printed(words[token])));
    rows.forEach(({ button, canvas }, head) => {
      button.ariaPressed = !now.off.has(head);
      paint(canvas, wide, maps[head].slice(-wide).map((weight) => colorOf(weight, dark)));
    });
  }

  function showLikely(probs) {
    table.replaceChildren();
    const order = count(probs.length).sort((a, b) => probs[b] - probs[a]);
    const drawn = now.tokens[now.at + 1];
    for (const token of order.slice(0, LIKELY)) {
      const kind = token === drawn ? "label drawn" : "label";
      add(table, "span", { class: kind }, printed(words[token]));
      addBed(table).style.width = `${100 * probs[token]}%`;
      add(table, "span", { class: "number" }, probs[token].toFixed(2));
    }
  }

  function sentence(step) {
    const here = printed(words[now.tokens[now.at]]);
    if (!step) return `At ${quote(here)}. Continue, or begin with a text of your own.`;
    const likeliest = step.probs.indexOf(Math.max(...step.probs));
    const probability = step.probs[likeliest].toFixed(2);
    const off = now.off.size ? ` Heads that are off: ${now.off.size} of ${heads}.` : "";
    const cut = now.cut ? ` The first ${now.cut} tokens were left out.` : "";
    return `After ${quote(here)} the likeliest is ${quote(printed(words[likeliest]))}, ` +
      `with probability ${probability}.${off}${cut}`;
  }

  return () => {
    dark = host.hasAttribute("data-dark");
    show();
  };
}
