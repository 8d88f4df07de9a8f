// A text that writes itself: go on by a word, see what else was likely, and which words
// were read for it.

// From one word to the next, in milliseconds.
const BEAT = 1100;

function generation(root, data) {
  const { tokens, begin, steps, maps } = data;
  const last = tokens.length - 1;
  const now = { at: begin - 1, block: maps.length - 1 };

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const play = { now, first: begin - 1, last, beat: BEAT };
  const run = addPlayer(bar, "Write", play, show);
  addButton(bar, "Next word", () => go(now.at + 1));
  addButton(bar, "Back", () => go(now.at - 1));
  addButton(bar, "Begin again", () => go(begin - 1));
  const names = maps.map((_, i) => `block ${i}`);
  const select = maps.length > 1 && addSelect(bar, "attention of", names, (block) => {
    now.block = block;
    show();
  });
  const text = addStage(root, "the text: arrow keys write a word, or take one back",
    ([right, up]) => go(now.at + (right || -up)));
  const places = tokens.map((token, i) => {
    const place = add(text, "span", { class: i < begin ? "token given" : "token" });
    add(place, "span", { class: "word" }, token);
    return { place, weight: add(place, "span", { class: "small number" }) };
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
    const { at, block } = now;
    const weights = maps[block][at];
    if (select) select.value = block;
    places.forEach(({ place, weight }, i) => {
      place.classList.toggle("unwritten", i > at);
      place.classList.toggle("reads", i === at);
      const share = i > at ? 0 : weights[i];
      place.style.setProperty("--share", `${45 * share}%`);
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
    const looks = `${quote(tokens[at])} looks most at ${quote(tokens[most])}`;
    if (at === last) return `${looks}. The text ends.`;
    const { words, shares } = steps[at];
    const drawn = words.indexOf(tokens[at + 1]);
    const said = drawn ? `, drawn is ${quote(words[drawn])}` : " and is drawn";
    return `${looks}. The likeliest next word is ${quote(words[0])}${said}, which has ` +
      `probability ${shares[drawn].toFixed(3)}.`;
  }

  return show;
}
