// A text that is generated: go on by a token, see what else was probable, and to which
// tokens the last one attended.

// From one token to the next, in milliseconds.
const BEAT = 1100;

function generation(root, data) {
  const { tokens, begin, steps, maps } = data;
  const last = tokens.length - 1;
  const now = { at: begin - 1, layer: maps.length - 1 };

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const play = { now, first: begin - 1, last, beat: BEAT };
  const run = addPlayer(bar, "Generate", play, show);
  addButton(bar, "Next token", () => go(now.at + 1));
  addButton(bar, "Back", () => go(now.at - 1));
  addButton(bar, "Begin again", () => go(begin - 1));
  const names = maps.map((_, i) => `layer ${i}`);
  const select = maps.length > 1 && addSelect(bar, "attention of", names, (layer) => {
    now.layer = layer;
    show();
  });
  const text = addStage(root, "the text: arrow keys add a token, or take one back",
    ([right, up]) => go(now.at + (right || -up)));
  const shown = tokens.map((token, i) => {
    const box = add(text, "span", { class: i < begin ? "token given" : "token" });
    add(box, "span", { class: "word" }, token);
    return { box, weight: add(box, "span", { class: "small number" }) };
  });
  const table = add(root, "div", { class: "next" });
  const say = addReadout(root);

  function go(at) {
    run(false);
    now.at = clamp(at, begin - 1, last);
    show();
  }

  // Every change ends here.
  function show() {
    const { at, layer } = now;
    const weights = maps[layer][at];
    if (select) select.value = layer;
    shown.forEach(({ box, weight }, i) => {
      box.classList.toggle("unwritten", i > at);
      box.classList.toggle("reads", i === at);
      const share = i > at ? 0 : weights[i];
      box.style.setProperty("--share", `${45 * share}%`);
      weight.textContent = i > at ? "" : share.toFixed(2);
    });
    table.replaceChildren();
    if (at < last) steps[at].words.forEach((word, i) => addRow(word, i));
    say(sentence(weights));
  }

  function addRow(word, i) {
    const share = steps[now.at].shares[i];
    const drawn = word === tokens[now.at + 1] ? "label drawn" : "label";
    add(table, "span", { class: drawn }, word);
    addBed(table).style.width = `${100 * share}%`;
    add(table, "span", { class: "number" }, share.toFixed(3));
  }

  function sentence(weights) {
    const { at } = now;
    const most = weights.indexOf(Math.max(...weights));
    const attends = `${quote(tokens[at])} attends most to ${quote(tokens[most])}`;
    if (at === last) return `${attends}. The text ends.`;
    const { words, shares } = steps[at];
    const drawn = words.indexOf(tokens[at + 1]);
    const first = `${quote(words[0])} (${shares[0].toFixed(3)})`;
    const other = `; drawn is ${quote(words[drawn])} (${shares[drawn].toFixed(3)})`;
    return `${attends}. The most probable next token is ${first}` +
      `${drawn ? other : ", and it is drawn"}.`;
  }

  return show;
}
