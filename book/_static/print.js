// On paper nothing can be unfolded or moved: what is folded away on the screen is shown,
// except the checks of exercises and their solutions, which print.css leaves out, and an
// interactive figure is its picture. The colors are those of the light.
const root = document.documentElement;
let theme = root.dataset.theme;

function picture(figure) {
  const image = figure.querySelector(":scope > img").cloneNode();
  image.classList.add("on-paper");
  return image;
}

addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) {
    fold.open = true;
  }
  for (const figure of document.querySelectorAll("[data-figure]:has(> img)")) {
    if (figure.shadowRoot && !figure.nextElementSibling?.matches(".on-paper")) {
      figure.after(picture(figure));
    }
  }
  theme = root.dataset.theme;
  root.dataset.theme = "light";
});

addEventListener("afterprint", () => {
  for (const image of document.querySelectorAll(".on-paper")) {
    image.remove();
  }
  root.dataset.theme = theme;
});
