// Formulas are set before the slides are measured.
window.MathJax = {
  tex: {
    inlineMath: [["$", "$"], ["\\(", "\\)"]],
    displayMath: [["$$", "$$"], ["\\[", "\\]"]],
  },
  options: { enableMenu: false },
  startup: {
    pageReady: () =>
      MathJax.startup.defaultPageReady().then(() =>
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
      ),
  },
};
