// On a narrow screen wide figures and formulas scroll sideways. This makes them reachable
// with the keyboard and lets the style fade the edge behind which more is to be seen.
const wide = ".bd-article .cell_output figure, .bd-article div.math";
const readableWhenShrunk = 600; // pixels: pictures up to this width need not scroll

function mark(box) {
  const hidden = box.scrollWidth - box.clientWidth - box.scrollLeft;
  box.classList.toggle("more", hidden > 2);
  if (box.scrollWidth > box.clientWidth + 2) {
    box.tabIndex = 0;
  } else {
    box.removeAttribute("tabindex");
  }
}

function markAll() {
  for (const box of document.querySelectorAll(wide)) {
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
