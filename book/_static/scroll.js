// What is wider than its place scrolls there: on a narrow screen figures, formulas, tables
// and code. This makes it reachable with the keyboard, and lets the style say that more
// is to be seen, until it is.
const scrolling = [
  ".cell_output figure",
  "div.math mjx-container",
  ".pst-scrollable-table-container",
  ".cell_output .text_html",
  "pre",
];
const readableWhenShrunk = 600; // pixels: pictures up to this width need not scroll

function mark(box) {
  const hidden = box.scrollWidth - box.clientWidth;
  box.classList.toggle("wide", hidden > 2);
  box.classList.toggle("more", hidden - box.scrollLeft > 2);
  if (hidden > 2) {
    box.tabIndex = 0;
  } else if (!box.matches("mjx-container")) {
    box.removeAttribute("tabindex");
  }
}

function markAll() {
  for (const box of document.querySelectorAll(`.bd-article :is(${scrolling})`)) {
    const picture = box.querySelector("img");
    box.classList.toggle("small", picture?.naturalWidth <= readableWhenShrunk);
    mark(box);
    box.onscroll = () => mark(box);
  }
}

addEventListener("load", () => {
  markAll();
  window.MathJax?.startup?.promise?.then(markAll);
});
addEventListener("resize", markAll);
addEventListener("toggle", markAll, true); // a solution that was folded
