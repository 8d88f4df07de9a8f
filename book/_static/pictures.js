// A picture turns dark with its page, but a photograph in it must not. Such a picture has
// an element "dark": pointed at by its address, it turns its photograph beforehand, so
// that the page turns it back.
const pageRoot = document.documentElement;

function turnPictures() {
  const isDark = pageRoot.dataset.theme === "dark";
  for (const image of document.querySelectorAll('img.photograph[src*=".svg"]')) {
    const [address] = image.getAttribute("src").split("#");
    image.src = isDark ? `${address}#dark` : address;
    image.classList.add("turns");
  }
}

new MutationObserver(turnPictures).observe(pageRoot, { attributeFilter: ["data-theme"] });
turnPictures();
