// A question waits for the reader. Its options become buttons, and its answer is hidden
// until one of them is chosen, or until somebody asks for it, finds it in the page, or
// follows a link to it. With it wait the texts and results below that give it away, and a
// line in their place leads back to the question. Who has asked for all answers finds them
// open on every page, until the questions are to be asked again. Without this script, and on
// paper, everything is there.
const asking = "asking"; // the class of a page that is not yet there as a whole
document.documentElement.classList.add(asking);

const parts = new Map(); // the box of a question -> what waits for it, there and below

// What the browser keeps, if it keeps anything, from page to page.
const kept = "answers";

function allAreShown() {
  try {
    return localStorage.getItem(kept) === "shown";
  } catch {
    return false;
  }
}

function keep(shown) {
  try {
    localStorage.setItem(kept, shown ? "shown" : "asked for");
  } catch {
    // then the next page asks again
  }
}

function make(tag, content, attributes = {}) {
  const element = document.createElement(tag);
  element.append(...content);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  return element;
}

// The list of options gives its contents to a group of buttons, named by the question.
function ask(box, number) {
  const question = box.querySelector("p.predict");
  const list = box.querySelector(".options");
  question.id ||= `predict-${number + 1}`;
  for (const formula of list.querySelectorAll("math")) {
    formula.setAttribute("role", "img"); // a button's name is text: the formula as typed
    formula.setAttribute("aria-label", formula.getAttribute("alttext"));
  }
  const options = [...list.children].map((item) => {
    const content = make("span", item.firstElementChild.childNodes);
    const option = make("button", [content], { class: item.className, type: "button" });
    option.onclick = () => reveal(box, option);
    return option;
  });
  const about = { "aria-labelledby": question.id, class: "options", role: "group" };
  const verdict = make("p", [], { class: "verdict", role: "status", tabindex: -1 });
  const show = command("Show the answer", () => {
    reveal(box);
    verdict.focus({ preventScroll: true }); // the button that had it is gone
  });
  const all = command("Show all answers", () => {
    keep(true);
    revealAll();
    verdict.focus({ preventScroll: true });
  });
  list.replaceWith(make("div", options, about), show, " ", all, verdict);
  for (const part of parts.get(box)) {
    part.setAttribute("hidden", "until-found");
  }
  for (const part of parts.get(box).filter(beginsToWait)) {
    const link = make("a", ["Waits for your answer above"], { href: `#${question.id}` });
    part.before(make("p", [link], { class: "waiting" }));
  }
}

// Tell whether nothing right before it waits for the same question.
function beginsToWait(part) {
  const before = part.previousElementSibling;
  const waiting = ".prediction, .answer, .cell:has(> .waits)";
  return part.matches(".waits") && !before?.matches(waiting);
}

// The question of what waits: the last before it, or the one whose box it stands in.
function findParts() {
  let box;
  for (const found of document.querySelectorAll(".prediction, .prediction .answer, .waits")) {
    if (found.matches(".prediction")) {
      box = found;
      parts.set(box, []);
    } else {
      parts.get(box).push(found);
    }
  }
}

function boxOf(part) {
  return [...parts.keys()].find((box) => parts.get(box).includes(part));
}

function command(name, act) {
  const button = make("button", [name], { class: "show", type: "button" });
  button.onclick = act;
  return button;
}

function revealAll() {
  for (const box of parts.keys()) {
    reveal(box);
    const again = command("Ask me again", () => {
      keep(false);
      location.reload();
    });
    again.classList.add("again");
    box.querySelector(".verdict").after(again);
  }
}

// Show the answer, and say and mark what is right and what was chosen, if anything was.
// The first choice counts.
function reveal(box, chosen) {
  const commands = box.querySelectorAll(".show:not(.again)");
  if (!commands.length) {
    return;
  }
  commands.forEach((button) => button.remove());
  for (const part of parts.get(box)) {
    part.removeAttribute("hidden");
    if (part.previousElementSibling?.matches(".waiting")) {
      part.previousElementSibling.remove();
    }
  }
  const right = box.querySelector("button.right");
  const verdict = chosen === right ? "Right:" : "The right answer is:";
  const before = chosen && chosen !== right ? "Not this time. " : "";
  box.querySelector(".verdict").append(
    before,
    make("strong", [verdict]),
    " ",
    ...right.firstElementChild.cloneNode(true).childNodes,
  );
  for (const option of box.querySelectorAll(".options button")) {
    option.setAttribute("aria-disabled", true);
    option.setAttribute("aria-pressed", option === chosen);
  }
  right.append(make("span", ["✓ right"], { class: "told" }));
  if (before) {
    chosen.append(make("span", ["✗ your choice"], { class: "told" }));
  }
  dispatchEvent(new Event("resize")); // for what was measured while it was hidden
}

function revealTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = target?.closest(".answer[hidden]");
  if (part) {
    reveal(boxOf(part));
    target.scrollIntoView();
  }
}

function askAll() {
  document.documentElement.classList.remove(asking);
  findParts();
  [...parts.keys()].forEach(ask);
  if (allAreShown()) {
    revealAll();
  }
  revealTarget();
}

document.addEventListener("readystatechange", askAll, { once: true });
addEventListener("hashchange", revealTarget);
addEventListener("beforematch", (found) => reveal(boxOf(found.target)));
