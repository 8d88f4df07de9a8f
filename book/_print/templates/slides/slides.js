// A live figure is shown as large as its slide allows, for the last row. It gets its height
// when its slide is shown; it never grows again, so that it is calm while it is used.
const SIZES = [1.6, 1.4, 1.2, 1, 0.9, 0.8, 0.7, 0.65, 0.6, 0.55, 0.5];

const fitted = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const slide = target.closest("section");
    for (const size of SIZES.filter((one) => one <= target.style.zoom)) {
      target.style.zoom = size;
      if (slide.scrollHeight <= slide.clientHeight) break;
    }
  }
});

function fit() {
  for (const figure of document.querySelectorAll("[data-figure]")) {
    figure.style.zoom = SIZES[0];
    fitted.observe(figure);
  }
}

Reveal.initialize({
  hash: true,
  slideNumber: "c/t",
  transition: "none",
  width: 1120,
  height: 680,
  margin: 0.03,
  center: false,
  plugins: [RevealNotes],
}).then(fit);
