// One step of sampling: change what may be drawn, and draw.

function sampling(root, data) {
  const { logits, words } = data;
  const vocab = words.length;
  const named = Math.min(data.rows, vocab);
  const now = { ...data.shown, drawn: words.map(() => 0), last: -1 };

  // ---- controls: the values used are the values shown
  if (data.prompt) add(root, "p", {}, `${data.prompt} …`);
  const bar = add(root, "div", { class: "bar" });
  const showTemperature = (value) => value.toPrecision(value < 1 ? 2 : 3);
  const powers = { min: -1, max: 1, step: 0.02 };
  const temperature = addSlider(bar, "temperature T", powers, (power) =>
    change({ temperature: Number(showTemperature(10 ** power)) }));
  // The slider's right end keeps all words.
  const largest = Math.min(20, vocab - 1) + 1;
  const top = addSlider(bar, "top-k", { min: 1, max: largest, step: 1 }, (k) =>
    change({ k: k === largest ? vocab : k }));
  const share = addSlider(bar, "top-p", { min: 0.05, max: 1, step: 0.05 }, (p) =>
    change({ p: Number(p.toFixed(2)) }));
  const floor = addSlider(bar, "min-p", { min: 0, max: 0.5, step: 0.01 }, (low) =>
    change({ least: Number(low.toFixed(2)) }));
  addButton(bar, "sample", () => draw(1));
  addButton(bar, "sample 100", () => draw(100));
  addButton(bar, "reset", () => change(data.shown));

  // ---- one row a word
  const table = add(root, "div", { class: "words" });
  for (const name of ["token", "model", "sampled from", "count"]) {
    add(table, "span", { class: "name" }, name);
  }
  const others = vocab - named;
  const names = words.slice(0, named);
  if (others) names.push(`${others} others`);
  const rows = names.map((label) => {
    const word = add(table, "span", { class: "label", title: label }, label);
    const [before, after] = ["model", "chance"].map((kind) => addShare(table, kind));
    return { word, before, after, drawn: add(table, "span", { class: "number" }) };
  });
  const say = addReadout(root);

  const tempered = (T) => softmaxOf(logits.map((logit) => logit / T));

  // The likeliest word is the first, so that what is kept is a beginning.
  function probsNow() {
    const first = tempered(now.temperature).slice(0, now.k);
    const total = sum(first);
    let before = 0;
    const kept = first.map((value) => value / total).filter((value, i) => {
      const likely = value >= (now.least * first[0]) / total;
      const stays = i === 0 || (before < now.p && likely);
      before += value;
      return stays;
    });
    const left = sum(kept);
    return words.map((_, i) => (i < kept.length ? kept[i] / left : 0));
  }

  function draw(wanted) {
    const shares = probsNow();
    const last = shares.findLastIndex((value) => value > 0);
    for (let i = 0; i < wanted; i += 1) {
      let left = Math.random();
      now.last = shares.findIndex((value) => (left -= value) < 0);
      if (now.last < 0) now.last = last;
      now.drawn[now.last] += 1;
    }
    show();
  }

  // Every change ends here: what was drawn by other numbers is forgotten.
  function change(changes) {
    Object.assign(now, changes, { drawn: words.map(() => 0), last: -1 });
    show();
  }

  const rowsOf = (values) =>
    [...values.slice(0, named), ...(others ? [sum(values.slice(named))] : [])];

  function show() {
    const shares = probsNow();
    temperature.show(Math.log10(now.temperature), showTemperature(now.temperature));
    top.show(Math.min(now.k, largest), now.k >= vocab ? "all" : now.k);
    share.show(now.p, now.p.toFixed(2));
    floor.show(now.least, now.least.toFixed(2));
    const [before, after, drawn] = [tempered(1), shares, now.drawn].map(rowsOf);
    rows.forEach((row, i) => {
      showShare(row.before, before[i]);
      showShare(row.after, after[i]);
      row.drawn.textContent = drawn[i] || "";
      row.word.classList.toggle("out", after[i] === 0);
      row.word.classList.toggle("last", i === Math.min(now.last, named));
    });
    say(sentence(shares));
  }

  function sentence(shares) {
    const entropy = entropyOf(shares);
    const kept = shares.filter((value) => value > 0).length;
    const draws = sum(now.drawn);
    const often = draws === 1 ? "once:" : `${draws} times, last:`;
    const sampled = draws ? ` Sampled ${often} ${quote(words[now.last])}.` : "";
    return [
      `${kept} of ${vocab} tokens may be sampled. Entropy`,
      `${entropy.toFixed(2)} nats, as if ${Math.exp(entropy).toFixed(1)}`,
      `tokens were equally probable.${sampled}`,
    ].join(" ");
  }

  return () => show();
}
