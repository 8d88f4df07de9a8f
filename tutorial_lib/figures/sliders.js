// Sliders and signed numbers, for the figures that compute.

// A true minus sign is as wide as a plus sign.
const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");

const sum = (values) => values.reduce((total, value) => total + value, 0);

// `range` is {min, max, step}; what the slider stands for is shown as a text.
function addSlider(bar, name, range, onInput) {
  const label = add(bar, "label", {}, name);
  const slider = add(label, "input", { type: "range", "aria-label": name, ...range });
  const number = add(label, "span", { class: "number" });
  slider.show = (value, text) => {
    slider.value = value;
    number.textContent = text;
    set(slider, { "aria-valuetext": text });
  };
  slider.oninput = () => onInput(Number(slider.value));
  return slider;
}
