// A live figure that is too high for its slide is shown smaller, as pictures are. It
// gets its height when its slide is shown; it never grows again, so that this ends.
const SMALLEST = 0.5;

const fitted = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const slide = target.closest("section");
    const over = slide.scrollHeight - slide.clientHeight;
    if (over > 0) {
      const height = target.getBoundingClientRect().height / Reveal.getScale();
      const zoom = (target.style.zoom || 1) * (1 - over / height);
      target.style.zoom = Math.max(SMALLEST, zoom);
    }
  }
});

function fit() {
  for (const figure of document.querySelectorAll("[data-figure]")) {
    fitted.observe(figure);
  }
}

// Formulas are set before the slides are measured.
window.MathJax = {
  tex: {
    inlineMath: [["$", "$"], ["\\(", "\\)"]],
    displayMath: [["$$", "$$"], ["\\[", "\\]"]],
  },
  options: { enableMenu: false },
  startup: {
    pageReady: () =>
      MathJax.startup
        .defaultPageReady()
        .then(() =>
          Reveal.initialize({
            hash: true,
            slideNumber: "c/t",
            transition: "none",
            width: 1120,
            height: 680,
            margin: 0.03,
            center: false,
            plugins: [RevealNotes],
          }),
        )
        .then(fit),
  },
};
