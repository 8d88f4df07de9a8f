// The search of the book, on the page of the search. The index (search_index.js) has all
// pages with their sections: heading, sentences, names in code, and terms of
// book/terms.csv. MiniSearch finds sections by their words, and a term leads to its section
// first of all. A word that no page has is read as the word from which it is one slip of
// the keys away.

// --- Words ---------------------------------------------------------------------------

const stemmer = new Stemmer(); // Porter's, which Sphinx brings
const stopWords = new Set(
  `a about am an and are as at be been being between but by can compare could did
  do does find for from had has have how i if in into is it its me
  my need needed needs of on one or our s should so t than that the their them then there
  these they this those to us versus vs was we were what when where which who whose why
  will with work works would you your`.split(/\s+/),
);
const longestUnmatched = 3; // letters that a word needs more to be read as a beginning

// Letters, digits and what joins them in code: d_k and LayerNorm are words.
const wordPattern = /[\p{L}\p{N}]+(?:_[\p{L}\p{N}]+)*/gu;

function plain(text) {
  return text
    .normalize("NFKD")
    .replaceAll(/[\u0300-\u036f\u2063]/g, "")
    .replaceAll(/[’']s\b/g, "")
    .replaceAll("√", " sqrt ");
}

// A word and, if it is a name of several, the parts of it.
function withParts(word) {
  const parts = word.split(/_|(?<=\p{Ll})(?=\p{Lu}\p{Ll})/u);
  return (parts.length > 1 ? [word, ...parts] : [word]).map((each) => each.toLowerCase());
}

function wordsOf(text) {
  return plain(text).match(wordPattern) ?? [];
}

function stem(word) {
  return word.length > 3 ? stemmer.stemWord(word) : word;
}

function lowercase(text) {
  return wordsOf(text).map((word) => word.toLowerCase());
}

function told(words) {
  const some = words.filter((word) => !stopWords.has(word));
  return some.length > 0 ? some : words;
}

// The same for "layer norm", "layer-norms", "LayerNorm" and "layer_norm".
function joined(words) {
  return words.map((word) => word.replaceAll("_", "").replace(/s$/, "")).join("");
}

// --- The index -----------------------------------------------------------------------

const fields = ["title", "page", "terms", "text", "names"];
const boost = { title: 4, page: 2, terms: 3, text: 1, names: 0.4 };
const referenceShare = 0.1; // of its score keeps a page to look things up
const leastShare = 0.02; // of the best score, else a page is not named
const asideShare = 0.6; // the same for a section that repeats or only mentions
const asideSection = /^(Exercise |Further reading|Summary|In real models)/;
const termShare = 2; // of the best score is added where the query is a term

function listSections(pages) {
  const sections = [];
  for (const page of pages) {
    for (const section of page.sections) {
      sections.push({
        ...section,
        page: page.title,
        text: [...section.sentences, ...section.hidden].join(" "),
        of: page,
        number: sections.length,
      });
    }
  }
  return sections;
}

function makeIndex(sections) {
  const index = new MiniSearch({
    fields,
    idField: "number",
    extractField: (section, field) => {
      const value = section[field];
      return Array.isArray(value) ? value.flat().join(" ") : value;
    },
    tokenize: (text) => wordsOf(text).flatMap(withParts),
    processTerm: (word) => (stopWords.has(word) ? null : stem(word)),
  });
  index.addAll(sections);
  return index;
}

// How often a word stands in the book, as it is written.
function countWords(sections) {
  const counts = new Map();
  for (const section of sections) {
    const text = [section.title, section.text, ...section.terms.flat(), ...section.names];
    for (const word of wordsOf(text.join(" ")).flatMap(withParts)) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return counts;
}

// For each spelling of a term its section, and the words of all its spellings.
function listTerms(sections) {
  const explained = new Map();
  for (const section of sections) {
    for (const spellings of section.terms) {
      const words = spellings.map((spelling) => told(lowercase(spelling)));
      const term = { section, terms: words.flat().map(stem) };
      for (const each of words) {
        explained.set(joined(each), term);
      }
    }
  }
  return explained;
}

// --- Slips of the keys ---------------------------------------------------------------

// Whether one letter is missing, superfluous, wrong, or two have changed places.
function isOneSlip(typed, word) {
  let same = 0;
  while (same < typed.length && typed[same] === word[same]) {
    same += 1;
  }
  const restTyped = typed.slice(same);
  const restWord = word.slice(same);
  return (
    restTyped.slice(1) === restWord ||
    restTyped === restWord.slice(1) ||
    restTyped.slice(1) === restWord.slice(1) ||
    (restTyped[0] === restWord[1] &&
      restTyped[1] === restWord[0] &&
      restTyped.slice(2) === restWord.slice(2))
  );
}

// The words for one that no page has: the most frequent that is a slip away, or the two
// of which it is joined, or itself.
function mended(typed, counts, stems) {
  if (typed.length < 3 || stems.has(stem(typed)) || stopWords.has(typed)) {
    return [typed];
  }
  const known = [...counts.keys()];
  if (known.some((word) => word.startsWith(typed))) {
    return [typed];
  }
  const near = known.filter((word) => word.length > 2 && isOneSlip(typed, word));
  if (near.length > 0) {
    near.sort((one, other) => counts.get(other) - counts.get(one));
    return near.slice(0, 1);
  }
  for (let end = 3; end <= typed.length - 3; end += 1) {
    const two = [typed.slice(0, end), typed.slice(end)];
    if (two.every((word) => stems.has(stem(word)))) {
      return two;
    }
  }
  return [typed];
}

// --- Finding -------------------------------------------------------------------------

// The terms that stand in the query, each with its share of the query's words.
function explaining(words, explained) {
  const shares = new Map();
  for (let from = 0; from < words.length; from += 1) {
    for (let to = from + 1; to <= words.length; to += 1) {
      const term = explained.get(joined(words.slice(from, to)));
      if (term) {
        const share = (to - from) / words.length;
        shares.set(term, Math.max(share, shares.get(term) ?? 0));
      }
    }
  }
  return shares;
}

function makeSearch(pages) {
  const sections = listSections(pages);
  const index = makeIndex(sections);
  const explained = listTerms(sections);
  const counts = countWords(sections);
  const stems = new Set([...counts.keys()].map(stem));

  // Two words that the book writes as one are looked for as one, too.
  function withPairs(words) {
    const pairs = words.slice(1).map((word, number) => words[number] + word);
    return [...words, ...pairs.filter((pair) => counts.has(pair))];
  }

  // Of each section that has a word of the query, the score and the words found.
  function scoresFor(words) {
    const asked = withPairs(words);
    const results = index.search(asked.join(" "), {
      boost,
      prefix: (term) => term.length > longestUnmatched,
      weights: { prefix: 0.3, fuzzy: 0 },
    });
    const scores = new Map();
    for (const result of results) {
      const section = sections[result.id];
      const share = Math.min(new Set(result.queryTerms).size / words.length, 1);
      const kept = asideSection.test(section.title) ? asideShare : 1;
      const own = section.of.reference ? referenceShare : kept;
      const score = result.score * share ** 2 * own;
      scores.set(section, { score, terms: result.terms });
    }
    const best = Math.max(1, ...[...scores.values()].map((each) => each.score));
    for (const [{ section, terms }, share] of explaining(words, explained)) {
      const before = scores.get(section) ?? { score: 0, terms: [] };
      const score = before.score + termShare * best * share ** 2;
      scores.set(section, { score, terms: before.terms, spellings: terms });
    }
    return scores;
  }

  // The pages for a query, the best first, and of each the best three sections.
  return function find(query) {
    const typed = lowercase(query);
    const words = typed.flatMap((word) => mended(word, counts, stems));
    const found = new Map();
    for (const [section, { score: points, terms, spellings }] of scoresFor(told(words))) {
      const others = found.get(section.of) ?? [];
      const hit = { section, points, terms, spellings };
      found.set(section.of, [...others, hit]);
    }
    const results = [...found].map(([page, hits]) => {
      hits.sort((one, other) => other.points - one.points);
      const near = hits.filter(({ points }) => points > hits[0].points / 3);
      return { page, points: hits[0].points, hits: near.slice(0, 3) };
    });
    results.sort((one, other) => other.points - one.points);
    const least = (results[0]?.points ?? 0) * leastShare;
    const isMended = words.join(" ") !== typed.join(" ");
    const near = results.filter(({ points }) => points >= least);
    return { results: near, mended: isMended ? words.join(" ") : "" };
  };
}

// --- What is shown of a hit ----------------------------------------------------------

const shortest = 70; // characters of an excerpt, else the next sentence follows
const longest = 260;

function isFound(word, terms) {
  return withParts(word).some((part) => terms.has(stem(part)));
}

// The words to show: those of the query, or else other spellings of the term.
function withShownTerms({ section, terms, spellings }) {
  const own = new Set(terms);
  const isThere = choose(section.sentences, own).count > 0;
  return { section, terms: isThere ? own : new Set(spellings) };
}

// The first of the sentences that has most of the words.
function choose(sentences, terms) {
  let best = { number: 0, count: 0 };
  for (const [number, sentence] of sentences.entries()) {
    const found = new Set();
    for (const word of wordsOf(sentence).flatMap(withParts)) {
      if (terms.has(stem(word))) {
        found.add(stem(word));
      }
    }
    if (found.size > best.count) {
      best = { number, count: found.size };
    }
  }
  return best;
}

function excerpt({ section, terms }) {
  const { number, count } = choose(section.sentences, terms);
  let text = section.sentences[number] ?? "";
  if (text.length < shortest) {
    text = section.sentences.slice(number, number + 2).join(" ");
  }
  return { text: shortened(text, terms), sentence: count ? section.sentences[number] : "" };
}

// A long text begins a little before the first word that was found.
function shortened(text, terms) {
  if (text.length <= longest) {
    return text;
  }
  const first = text.match(wordPattern)?.find((word) => isFound(word, terms)) ?? "";
  const before = Math.max(0, text.indexOf(first) - longest / 2);
  const from = before > 0 ? text.indexOf(" ", before) + 1 : 0;
  const to = from + longest < text.length ? text.lastIndexOf(" ", from + longest) : text.length;
  return `${from > 0 ? "… " : ""}${text.slice(from, to)}${to < text.length ? " …" : ""}`;
}

// The address of a section and, where the browser can go there, of a phrase in it. A
// phrase holds a word that was found and no formula.
function address({ section, terms }, sentence) {
  const place = section.id ? `#${section.id}` : "";
  if (!("fragmentDirective" in document) || !sentence) {
    return section.of.url + place;
  }
  const plainParts = sentence.split(/\u2063[^\u2063]*\u2063| · /);
  for (const part of plainParts) {
    const words = part.trim().split(/\s+/);
    const at = words.findIndex((word) => wordsOf(word).some((each) => isFound(each, terms)));
    const phrase = words.slice(Math.max(0, at - 3), at + 5);
    if (at >= 0 && phrase.length > 2) {
      const text = encodeURIComponent(phrase.join(" ")).replaceAll("-", "%2D");
      return `${section.of.url}${place || "#"}:~:text=${text}`;
    }
  }
  return section.of.url + place;
}

// --- The page ------------------------------------------------------------------------

const pagesAtOnce = 10;

function element(name, className, ...parts) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...parts);
  return made;
}

function marked(text, terms) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(wordPattern)) {
    if (isFound(match[0], terms)) {
      parts.push(text.slice(end, match.index), element("mark", "", match[0]));
      end = match.index + match[0].length;
    }
  }
  return [...parts, text.slice(end)];
}

function link(hit, sentence, text) {
  const made = element("a", "", text);
  made.href = address(hit, sentence);
  return made;
}

function shownResult({ page, hits }) {
  const [first, ...others] = hits.map(withShownTerms);
  const { text, sentence } = excerpt(first);
  const item = element("li", "");
  item.append(element("h2", "", link(first, sentence, first.section.title)));
  if (first.section.id) {
    item.append(element("p", "page", page.title));
  }
  if (text) {
    item.append(element("p", "excerpt", ...marked(text, first.terms)));
  }
  if (others.length > 0) {
    const more = others.map((hit) => link(hit, excerpt(hit).sentence, hit.section.title));
    item.append(element("p", "also", "Also: ", ...more.flatMap((each) => [each, " · "])));
    item.lastChild.lastChild.remove();
  }
  return item;
}

function statusOf(query, { results, mended: read }) {
  if (!query.trim()) {
    return "";
  }
  const pages = results.length === 1 ? "1 page" : `${results.length || "No"} pages`;
  const number = `${pages} for “${read || query.trim()}”`;
  return read ? `${number}, since no page has “${query.trim()}”` : number;
}

function start() {
  const field = document.querySelector("#query");
  const status = document.querySelector("#search-status");
  const list = document.querySelector("#search-results");
  const more = document.querySelector("#search-more");
  const find = makeSearch(searchPages);
  let waiting = 0;

  function show() {
    const query = field.value;
    const found = find(query);
    const items = found.results.map((result) => () => shownResult(result));
    list.replaceChildren(...items.slice(0, pagesAtOnce).map((make) => make()));
    more.hidden = items.length <= pagesAtOnce;
    more.onclick = () => {
      const rest = items.slice(pagesAtOnce).map((make) => make());
      list.append(...rest);
      more.hidden = true;
      rest[0].querySelector("a").focus();
    };
    status.textContent = statusOf(query, found);
  }

  function remember() {
    const asked = new URL(location.href);
    asked.searchParams.set("q", field.value);
    history.replaceState(null, "", asked);
  }

  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      show();
      remember();
    }, 150);
  });
  field.form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    show();
    remember();
  });
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.focus();
  field.select();
  show();
  globalThis.find = find; // for the tests, which ask much at once
}

start();
