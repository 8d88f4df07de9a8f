// Softmax: drag scores, change temperature and d_k, watch weights and gradients.

function softmax(root, data) {
  const { labels } = data;
  const initially = () => ({ ...data.shown, scores: [...data.scores], divided: true });
  const now = initially();
  // A slider's end leaves room to drag the largest score further.
  const limit = Math.ceil(Math.max(3, 1.5 * Math.max(...now.scores.map(Math.abs))));

  // ---- controls: the values used are the values shown
  const bar = add(root, "div", { class: "bar" });
  const showTemperature = (value) => value.toPrecision(value < 1 ? 2 : 3);
  const powers = { min: -2, max: 2, step: 0.02 };
  const temperature = addSlider(bar, "temperature T", powers, (power) =>
    change({ temperature: Number(showTemperature(10 ** power)) }));
  const scales = now.d_k !== null;
  const sizes = { min: 0, max: 10, step: 1 };
  const size = scales &&
    addSlider(bar, "d_k", sizes, (power) => change({ d_k: 2 ** power }));
  const divide = scales &&
    addCheckbox(bar, "divide by √d_k", (divided) => change({ divided }));
  addButton(bar, "reset", () => change(initially()));

  // ---- one row a key
  const table = add(root, "div", { class: "keys" });
  for (const name of ["key", "score", "input", "weight"]) {
    add(table, "span", { class: "name" }, name);
  }
  const rows = labels.map((label, key) => {
    add(table, "span", { class: "label", title: label }, label);
    const track = add(table, "span", { class: "track" });
    const score = addBed(track);
    // A slider counts its steps from min, so min is chosen to reach the score exactly.
    const steps = Math.ceil((now.scores[key] + limit) / 0.05);
    const range = { min: now.scores[key] - 0.05 * steps, max: limit, step: 0.05 };
    const slider = add(track, "input", { type: "range", ...range });
    slider.ariaLabel = `score of ${label}`;
    slider.oninput = () => {
      now.scores[key] = Number(slider.value);
      change({});
    };
    const logit = add(table, "span", { class: "number" });
    return { score, slider, logit, weight: addShare(table, "weight") };
  });
  const formula = add(root, "p");
  const say = addReadout(root);

  // Every change ends here.
  function change(changes) {
    Object.assign(now, changes);
    const factor = (now.divided ? 1 : Math.sqrt(now.d_k)) / now.temperature;
    const logits = now.scores.map((score) => score * factor);
    const weights = softmaxOf(logits);
    temperature.show(Math.log10(now.temperature), showTemperature(now.temperature));
    if (scales) {
      size.show(Math.log2(now.d_k), now.d_k);
      divide.checked = now.divided;
    }
    rows.forEach((row, i) => showRow(row, now.scores[i], logits[i], weights[i]));
    formula.textContent = explanation();
    say(sentence(weights));
  }

  function showRow({ score, slider, logit, weight }, value, into, share) {
    slider.value = value;
    set(slider, { "aria-valuetext": fixed(value, 2) });
    const [from, to] = [Math.min(0, value), Math.max(0, value)];
    score.style.left = `${50 + (50 * from) / limit}%`;
    score.style.width = `${(50 * (to - from)) / limit}%`;
    logit.textContent = fixed(into, 2);
    showShare(weight, share);
  }

  function explanation() {
    const { d_k } = now;
    if (!scales) return "weight = softmax(input), input = score / T";
    const spread = Math.sqrt(d_k).toFixed(1);
    const lines = now.divided
      ? ["weight = softmax(input), input = q·k / √d_k / T = score / T. Divided by",
        `√d_k, dot products of ${d_k} numbers spread no further than the scores,`,
        "whatever d_k is."]
      : ["weight = softmax(input), input = q·k / T = √d_k · score / T. Undivided,",
        `dot products of ${d_k} numbers spread √${d_k} = ${spread} times as far: the`,
        "larger d_k, the harder the softmax and the smaller its gradients."];
    return lines.join(" ");
  }

  function sentence(weights) {
    if (!scales) {
      const largest = Math.max(...weights);
      const label = labels[weights.indexOf(largest)];
      return `The largest weight is ${largest.toFixed(2)}, that of ${quote(label)}.`;
    }
    const entropy = entropyOf(weights);
    const gradient = Math.max(...weights.map((weight) => weight * (1 - weight)));
    const tiny = gradient > 0 && gradient < 0.0001;
    return [
      `Entropy ${entropy.toFixed(2)} nats, as if`,
      `${Math.exp(entropy).toFixed(1)} of ${weights.length} keys shared the weight`,
      `equally. Largest derivative of a weight, max α(1 − α):`,
      `${tiny ? gradient.toExponential(0) : gradient.toFixed(4)} (at most 0.25).`,
    ].join(" ");
  }

  return () => change({});
}
