// Softmax: drag scores, change temperature and d_k, watch weights and gradients.

function softmax(root, data) {
  const { labels } = data;
  const state = { ...data.shown, scores: [...data.scores], scaled: true };
  const largest = Math.max(...data.scores.map(Math.abs));
  const limit = Math.max(4, Math.ceil(largest));

  // ---- controls
  const bar = add(root, "div", { class: "bar" });
  const temperature = addSlider(
    bar, "temperature", { min: -2, max: 2, step: 0.02 },
    (power) => (10 ** power).toPrecision(2 + (power >= 0)),
    (power) => update({ temperature: 10 ** power }),
  );
  const size = addSlider(
    bar, "d_k", { min: 0, max: 10, step: 1 },
    (power) => String(2 ** power),
    (power) => update({ d_k: 2 ** power }),
  );
  const scaled = addCheckbox(bar, "divide by √d_k", true, (checked) => update({ scaled: checked }));
  addButton(bar, "reset", () => update({ ...data.shown, scores: [...data.scores], scaled: true }));

  // ---- one row a key
  const table = add(root, "div", { class: "keys" });
  for (const name of ["key", "score", "into softmax", "weight"]) {
    add(table, "span", { class: "head" }, name);
  }
  const rows = labels.map((label, key) => {
    add(table, "span", { class: "label", title: label }, label);
    const track = add(table, "span", { class: "track" });
    const score = add(track, "span", { class: "score" });
    const slider = add(track, "input", { type: "range", min: -limit, max: limit, step: 0.05 });
    slider.setAttribute("aria-label", `score of ${label}`);
    slider.oninput = () => {
      state.scores[key] = Number(slider.value);
      update({});
    };
    const logit = add(table, "span", { class: "number" });
    const cell = add(table, "span", { class: "weights" });
    const weight = add(cell, "span", { class: "weight-bar" });
    const number = add(cell, "span", { class: "number" });
    return { slider, score, logit, weight, number };
  });
  const formula = add(root, "p");
  const say = addReadout(root);

  function update(change) {
    Object.assign(state, change);
    const root_d = Math.sqrt(state.d_k);
    const factor = (state.scaled ? 1 : root_d) / state.temperature;
    const logits = state.scores.map((score) => score * factor);
    const weights = softmaxOf(logits);
    temperature.show(Math.log10(state.temperature));
    size.show(Math.log2(state.d_k));
    scaled.checked = state.scaled;
    rows.forEach((row, key) => showRow(row, state.scores[key], logits[key], weights[key]));
    const spread = fixed(root_d, 1);
    formula.textContent = state.scaled
      ? `Dot products of ${state.d_k} random numbers spread like √d_k = ${spread}; divided by it, they are the scores, whatever d_k is.`
      : `Not divided: the dot products are ${spread} times the scores, and the larger d_k, the harder the softmax.`;
    say(sentence(weights));
  }

  function softmaxOf(logits) {
    const top = Math.max(...logits);
    const powers = logits.map((logit) => Math.exp(logit - top));
    const total = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / total);
  }

  function showRow({ slider, score, logit, weight, number }, value, into, share) {
    const middle = 50;
    const end = 50 + (50 * value) / limit;
    slider.value = value;
    slider.setAttribute("aria-valuetext", fixed(value, 2));
    score.style.left = `${Math.min(middle, end)}%`;
    score.style.width = `${Math.abs(end - middle)}%`;
    logit.textContent = fixed(into, 2);
    weight.style.width = `calc((100% - 48px) * ${share})`;
    number.textContent = share > 0 && share < 0.0005 ? "<0.001" : share.toFixed(3);
  }

  function sentence(weights) {
    const entropy = weights.reduce((sum, w) => (w > 0 ? sum - w * Math.log(w) : sum), 0);
    const gradient = Math.max(...weights.map((w) => w * (1 - w)));
    const shown = gradient < 0.0001 ? gradient.toExponential(1) : gradient.toFixed(4);
    return `Entropy ${entropy.toFixed(2)} nats, as if ${Math.exp(entropy).toFixed(1)} of ${weights.length} keys shared the weight equally. Largest gradient max w(1 − w) = ${shown}, of at most 0.25.`;
  }

  return () => update({});
}
