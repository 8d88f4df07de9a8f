// Weights by the hundred kilobytes: in the figure's data, or in a script beside the page.

// A promise of data.weights. The script at data.weightsFile sets a variable: a page that
// is a file may fetch nothing, but may load a script.
function loadWeights({ weights, weightsFile }) {
  if (weights) return Promise.resolve(weights);
  return new Promise((resolve, reject) => {
    const script = add(document.head, "script", { src: weightsFile });
    const [, name] = weightsFile.match(/([^/?]*)\.js/);
    script.onload = () => resolve(window.attentionWeights[name]);
    script.onerror = () =>
      reject(new Error(`The model's weights did not load: there is no ${weightsFile}.`));
  });
}
