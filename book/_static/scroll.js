// What is wider than its place scrolls there: on a narrow screen figures, formulas, tables
// and code. This makes it reachable with the keyboard, and lets the style say that more
// is to be seen, until it is.
const scrolling = [
  ".cell_output figure",
  "div.math > .formula",
  ".pst-scrollable-table-container",
  ".cell_output .text_html",
  "pre",
];
const readableWhenShrunk = 600; // pixels: pictures up to this width need not scroll

function mark(box, { scrolls, toTheRight }) {
  box.classList.toggle("wide", scrolls);
  box.classList.toggle("more", scrolls && toTheRight > 2);
  if (scrolls) {
    box.tabIndex = 0;
  } else {
    box.removeAttribute("tabindex");
  }
}

function measure(box) {
  const hidden = box.scrollWidth - box.clientWidth;
  const scrolls = hidden > 2; // pixels, which need not be seen
  return { scrolls, toTheRight: hidden - box.scrollLeft };
}

// All is measured before anything is marked: a page is then laid out once, not once a box.
// What is folded is measured when it opens, for a browser lays it out for nothing else.
function markAll() {
  const all = [...document.querySelectorAll(`.bd-article :is(${scrolling})`)];
  const boxes = all.filter((box) => !box.closest("details:not([open])"));
  for (const box of boxes) {
    const picture = box.querySelector("img");
    box.classList.toggle("small", picture?.naturalWidth <= readableWhenShrunk);
    box.onscroll = () => mark(box, measure(box));
  }
  const measured = boxes.map(measure);
  boxes.forEach((box, number) => mark(box, measured[number]));
}

addEventListener("load", markAll);
addEventListener("resize", markAll);
addEventListener("toggle", markAll, true); // a solution that was folded
