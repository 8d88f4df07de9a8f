// A language model that writes: what was likely at each token, and for every head who was
// attended to. Heads can be switched off, and the text stays as it is to see the difference.

// From one token to the next, in milliseconds.
const TICK = 70;
const LONGEST = 400;
const LINE = 60;
const LIKELY = 6;
// Tokens for which a row of attention has room at least.
const ROOM = 64;
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
function openWriter(data, onAnswer, onError) {
  const source = [
    `const sum = ${sum}, count = ${count}, bytesOf = ${bytesOf};`,
    softmaxOf, readWeights, writingModel, makeWriter, probabilitiesOf, drawFrom, randomNumber,
    `(${answerInWorker})();`,
  ].join("\n");
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const thread = new Worker(address);
  URL.revokeObjectURL(address);
  thread.onmessage = (event) => onAnswer(event.data);
  thread.onerror = onError;
  thread.postMessage(data);
  return thread;
}

const SIGNS = { "\n": "↵", " ": "␣" };
const IN_WORDS = { "\n": "line end", " ": "space" };
const printed = (token) => SIGNS[token] ?? token;
const spoken = (token) => IN_WORDS[token] ?? quote(token);

function writing(root, data, host) {
  const { words, separator, sizes, line } = data;
  const heads = sizes.num_layers * sizes.num_heads;
  const unit = separator ? "token" : "character";
  const split = (text) => (separator ? text.split(/\s+/) : [...text]);
  const toIds = (text) => split(text).map((word) => words.indexOf(word));
  const toText = (tokens) => tokens.map((token) => words[token]).join(separator);
  const ids = line && { context: toIds(line.context), tokens: toIds(line.text) };
  const stored = toIds(data.prompt + separator + data.written);
  const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  const now = { prompt: toIds(data.prompt), tokens: stored, steps: [], off: new Set() };
  now.settings = { temperature: data.temperature, p: 1, seed: 0 };
  // The head whose attention colors the text; without one, the mean of all.
  now.shown = -1;
  let waits = data.autoplay && moves;
  if (waits) now.tokens = now.prompt;
  now.at = now.tokens.length - 1;
  let thread, timer, sign, visible, dark, asked, id = 0;
  root.ariaLabel = data.title || "A language model that writes, head by head";

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const field = add(add(bar, "label", { class: "grows" }, "text"), "input", {
    "aria-label": "a text to go on with", spellcheck: "false", autocapitalize: "off",
  });
  field.value = data.prompt;
  field.onkeydown = ({ key }) => {
    if (key === "Enter") begin();
  };
  addButton(bar, "Write", begin);
  const play = addButton(bar, "Continue", () => (now.running ? stop() : run(LONGEST)));
  const all = addButton(bar, "", () => {
    now.off = new Set(now.off.size ? [] : count(heads));
    rewrite();
  });

  const trouble = add(root, "p", { class: "trouble", role: "alert" });

  const both = add(root, "div", { class: "both" });
  const left = add(both, "div", { class: "left" });
  const text = addStage(left, "the text: arrow keys choose a token", ([right, up]) =>
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
  const shading = add(left, "div", { class: "small" });
  const title = add(left, "div", { class: "title" });
  const table = add(left, "div", { class: "next", role: "img" });
  const loss = line && add(left, "div", { class: "loss" });

  const panel = add(both, "div", { class: "panel", role: "toolbar" });
  panel.ariaLabel = "attention heads: arrow keys choose one, the space bar switches it off";
  panel.ariaOrientation = "vertical";
  const top = add(panel, "div", { class: "small top" });
  add(top, "span", {}, "layer.head");
  add(top, "span", {}, `attends to: first … marked ${unit}`);
  const rows = count(heads).map(addHead);
  onArrows(panel, ([right, up]) => focusHead(now.stop + right - up));
  panel.addEventListener("keydown", (event) => {
    const head = { Home: 0, End: heads - 1 }[event.key];
    if (head === undefined) return;
    event.preventDefault();
    focusHead(head);
  });

  const dials = add(root, "div", { class: "bar dials" });
  const temperature = addSlider(dials, "temperature", { min: 0.1, max: 2, step: 0.1 },
    (value) => change({ temperature: value }));
  const share = addSlider(dials, "top-p", { min: 0.1, max: 1, step: 0.05 }, (value) =>
    change({ p: value }));
  addButton(dials, `Next ${unit}`, () => {
    stop();
    ask(now.tokens, now.tokens.length + 1);
  });
  addButton(dials, "Sample again", () => change({ seed: now.settings.seed + 1 }));
  const say = addReadout(root);

  // ---- heads
  function numberOf(head) {
    return `${Math.floor(head / sizes.num_heads)}.${head % sizes.num_heads}`;
  }

  function headName(head) {
    const [layer, own] = numberOf(head).split(".");
    const name = data.headNames[head];
    return `layer ${layer}, head ${own}${name ? `: ${name}` : ""}`;
  }

  function addHead(head) {
    const button = addButton(panel, "", () => {
      const looks = now.tapped !== undefined && now.tapped !== now.seen;
      now.seen = now.tapped;
      // A finger cannot point: its first tap looks at a head.
      if (looks) return;
      if (!now.off.delete(head)) now.off.add(head);
      compare();
    });
    button.onpointerdown = ({ pointerType }) => {
      now.tapped = pointerType === "touch" ? head : undefined;
    };
    add(button, "span", {}, `${numberOf(head)} ${data.headNames[head]}`);
    button.ariaLabel = headName(head);
    button.onpointerenter = () => color(head);
    button.onpointerleave = () => color(-1);
    button.onfocus = () => {
      setStop(head);
      color(head);
    };
    button.onblur = () => color(-1);
    if (head && head % sizes.num_heads === 0) button.classList.add("layer");
    return { button, canvas: add(button, "canvas") };
  }

  // All heads are one stop of the Tab key.
  function setStop(head) {
    now.stop = head;
    rows.forEach(({ button }, i) => set(button, { tabindex: i === head ? 0 : -1 }));
  }

  const focusHead = (head) => rows[clamp(head, 0, heads - 1)].button.focus();
  setStop(0);

  // ---- writing
  function begin() {
    const unknown = [...new Set(split(field.value))].filter((x) => !words.includes(x));
    const complain = (fault) => (trouble.textContent = fault);
    complain("");
    if (unknown.length) complain(`The model does not know ${unknown.map(quote).join()}.`);
    else if (!field.value) complain("Write a text.");
    else {
      const given = toIds(field.value);
      now.prompt = given.slice(-LONGEST / 2);
      now.cut = given.length - now.prompt.length;
      rewrite();
    }
  }

  function change(settings) {
    Object.assign(now.settings, settings);
    rewrite();
  }

  // From the prompt on, as it is written with these heads and settings.
  function rewrite() {
    stop();
    now.tokens = now.prompt;
    now.steps = [];
    now.at = now.tokens.length - 1;
    run(now.prompt.length + LINE);
  }

  // Who wants no movement gets a line at once.
  function run(until) {
    if (now.running) return;
    if (now.tokens.length >= LONGEST) now.tokens = now.prompt;
    now.until = Math.min(Math.max(until, now.tokens.length + 1), LONGEST);
    if (!moves) {
      ask(now.tokens, Math.min(now.tokens.length + LINE, now.until));
      return;
    }
    now.running = true;
    ask(now.tokens, now.tokens.length + 1);
  }

  function stop() {
    waits = false;
    clearTimeout(timer);
    if (!now.running) return;
    now.running = false;
    show();
  }

  // The same text, with these heads.
  function compare() {
    stop();
    ask(now.tokens, now.tokens.length, now.at);
  }

  // What the model would make of these tokens, and what it adds until there are so many.
  function ask(given, until, at = until - 1) {
    waits = false;
    id += 1;
    const { settings } = now;
    const off = [...now.off].sort((a, b) => a - b);
    const key = JSON.stringify([off, settings]);
    const goesOn = key === now.key && now.steps.length <= given.length;
    now.isFresh = key === now.key;
    asked = { key, since: goesOn ? now.steps.length : 0, at };
    const question = { id, given, until, off, settings, since: asked.since };
    clearTimeout(sign);
    sign = setTimeout(() => say(thread ? "Computing …" : "Loading the model …"), WAIT);
    openOnce().then((opened) => opened.postMessage(question)).catch(({ message }) =>
      fail(message));
    show();
  }

  // The model is loaded when something is first asked of it.
  let opening;
  function openOnce() {
    opening ??= loadWeights(data).then((weights) => {
      const model = { sizes, spec: data.spec, weights, line: ids };
      thread = openWriter(model, answer, () => fail("Cannot compute here."));
      return thread;
    });
    return opening;
  }

  // Without the model, what was stored is shown.
  function fail(message) {
    clearTimeout(sign);
    now.running = false;
    if (!now.steps.length) {
      now.tokens = stored;
      now.at = stored.length - 1;
    }
    show();
    say(message);
  }

  // Only what is new of a text is sent.
  function answer({ tokens, steps: added, loss: own, id: answered }) {
    if (answered !== id) return;
    clearTimeout(sign);
    const steps = [...now.steps.slice(0, asked.since), ...added];
    const at = Math.min(asked.at, tokens.length - 1);
    Object.assign(now, { key: asked.key, tokens, steps, at, loss: own, isFresh: true });
    if (tokens.length >= now.until) now.running = false;
    show();
    if (now.running) timer = setTimeout(next, TICK);
  }

  function next() {
    now.isLate = now.running && !visible;
    if (now.running && visible) ask(now.tokens, now.tokens.length + 1);
  }

  // It writes once by itself. Out of sight nothing is computed.
  new IntersectionObserver(([{ isIntersecting, intersectionRatio }]) => {
    visible = isIntersecting;
    if (waits && intersectionRatio >= 0.5) run(stored.length);
    else if (now.isLate) next();
  }, { threshold: [0, 0.5] }).observe(text);

  // ---- what is shown
  function choose(at) {
    stop();
    now.at = clamp(at, 0, now.tokens.length - 1);
    if (now.steps.length < now.tokens.length) ask(now.tokens, now.tokens.length, now.at);
    else show();
  }

  // Where nothing was computed yet, what is stored belongs to the last token.
  function stepAt(at) {
    const { maps, probs } = data;
    if (now.steps[at]) return now.steps[at];
    if (now.tokens === stored && at === stored.length - 1) return { maps, probs };
    return { maps: maps.map(() => []), probs: [] };
  }

  function show() {
    const { settings } = now;
    temperature.show(settings.temperature, settings.temperature.toFixed(1));
    share.show(settings.p, settings.p.toFixed(2));
    play.textContent = now.running ? "Pause" : "Continue";
    all.textContent = `All heads ${now.off.size ? "on" : "off"}`;
    text.classList.toggle("writes", Boolean(now.running));
    text.replaceChildren();
    now.tokens.forEach((token, i) => {
      const kind = i < now.prompt.length ? "given" : "";
      const mark = i === now.at ? "chosen" : "";
      add(text, "span", { class: `${kind} ${mark}` }, words[token] + separator);
    });
    const step = stepAt(now.at);
    showMaps(step.maps);
    showLikely(step);
    showLoss();
    color(now.shown);
    if (!now.running) say(sentence(step, printed), heard(step));
    else if (!now.told) say("Writing …");
    now.told = now.running;
  }

  function showMaps(maps) {
    const length = maps[0].length;
    const wide = Math.max(length, ROOM);
    rows.forEach(({ button, canvas }, head) => {
      button.ariaPressed = !now.off.has(head);
      const weights = count(wide).map((i) => maps[head][i] ?? 0);
      paint(canvas, wide, weights.map((weight) => colorOf(weight, dark)));
    });
  }

  // The text takes the color of attention, of one head or of the mean of all.
  function color(head) {
    now.shown = head;
    const { maps } = stepAt(now.at);
    const first = now.at + 1 - maps[0].length;
    const of = head < 0 ? maps.filter((_, i) => !now.off.has(i)) : [maps[head]];
    [...text.children].forEach((letter, i) => {
      const weight = sum(of.map((row) => row[i - first] ?? 0)) / Math.max(of.length, 1);
      const part = `color-mix(in srgb, var(--accent) ${(50 * weight).toFixed(0)}%, transparent)`;
      letter.style.background = weight < 0.01 || i === now.at ? "" : part;
    });
    const whose = head < 0 ? `mean of ${of.length} heads` : `head ${numberOf(head)}`;
    shading.textContent = of.length
      ? `Shaded: what the marked ${unit} attends to, ${whose}`
      : "All heads are off: nothing is attended to";
  }

  const isCompared = (step) => now.off.size > 0 && now.isFresh && step.withAll !== undefined;

  // With heads off, two bars each: with all heads, and without those.
  function showLikely(step) {
    const { probs } = step;
    const before = isCompared(step) ? step.withAll : probs;
    const compared = isCompared(step);
    table.replaceChildren();
    table.classList.toggle("compared", compared);
    const here = printed(words[now.tokens[now.at]]);
    title.textContent = compared
      ? `After ${quote(here)}: gray all heads, blue ${gone()}`
      : `Next after ${quote(here)}`;
    const larger = count(probs.length).map((i) => Math.max(before[i], probs[i]));
    const order = count(probs.length).sort((a, b) => larger[b] - larger[a]).slice(0, LIKELY);
    const drawn = now.tokens[now.at + 1];
    for (const token of order) {
      const kind = token === drawn ? "label drawn" : "label";
      add(table, "span", { class: kind }, printed(words[token]));
      addBars(table, before[token], probs[token], compared);
      const number = add(table, "span", { class: "number" }, probs[token].toFixed(2));
      if (compared) number.textContent = `${before[token].toFixed(2)} → ${number.textContent}`;
    }
    const read = order.map((i) => {
      const changed = compared ? `, with all heads ${before[i].toFixed(2)}` : "";
      return `${spoken(words[i])} ${probs[i].toFixed(2)}${changed}`;
    });
    table.ariaLabel = `most probable next: ${read.join("; ") || "not computed yet"}`;
  }

  function addBars(parent, before, after, compared) {
    const bed = add(parent, "span", { class: "bed" });
    if (compared) add(bed, "span", { class: "before" }).style.width = `${100 * before}%`;
    add(bed, "span").style.width = `${100 * after}%`;
  }

  // The bed is as long as the loss of a guess.
  function showLoss() {
    if (!line) return;
    const guess = Math.log(words.length);
    const isNew = now.off.size > 0 && now.isFresh;
    const own = isNew ? now.loss : line.loss;
    loss.replaceChildren();
    loss.classList.toggle("compared", isNew);
    add(loss, "div", { class: "title" }, `Loss on ${quote(line.text)}, in nats`);
    addBars(loss, line.loss / guess, own / guess, isNew);
    const number = isNew ? `${line.loss.toFixed(2)} → ` : "";
    add(loss, "span", { class: "number" }, `${number}${own.toFixed(2)}`);
  }

  function gone() {
    const [head, second] = now.off;
    if (second === undefined) return `without head ${numberOf(head)}`;
    return `without ${now.off.size === heads ? "any head" : `${now.off.size} heads`}`;
  }

  // `name` is how a token is called, for the eye or for the ear.
  function sentence(step, name = spoken) {
    const called = (token) => name === printed ? quote(printed(token)) : name(token);
    const here = called(words[now.tokens[now.at]]);
    if (!step.probs.length) return `At ${here}. Press Write, or begin with a text of your own.`;
    const before = isCompared(step) ? step.withAll : step.probs;
    const likeliest = before.indexOf(Math.max(...before));
    const probability = before[likeliest].toFixed(2);
    let told = `After ${here} the likeliest is ${called(words[likeliest])}, ` +
      `with probability ${probability}`;
    if (isCompared(step)) told += `; ${gone()} it has ${step.probs[likeliest].toFixed(2)}`;
    told += ".";
    if (isCompared(step) && line) {
      told += ` The loss on the line goes from ${line.loss.toFixed(2)} to ${now.loss.toFixed(2)}.`;
    }
    if (now.cut) told += ` The first ${now.cut} tokens were left out.`;
    return now.steps.length ? told : `${told} Press Write, or begin with a text of your own.`;
  }

  // What is new in the text is read out once it stands there.
  function heard(step) {
    const whole = toText(now.tokens);
    const isNew = now.steps.length > 0 && whole !== now.read;
    now.read = whole;
    const written = toText(now.tokens.slice(now.prompt.length)).replaceAll("\n", " line end ");
    return isNew ? `It wrote: ${quote(written)}. ${sentence(step)}` : sentence(step);
  }

  return () => {
    dark = host.hasAttribute("data-dark");
    show();
  };
}
