// What is folded away on the screen is wanted on paper.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) {
    fold.open = true;
  }
});
