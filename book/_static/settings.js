// A picture of *Try it* for which a few settings were drawn when its notebook ran gets a
// menu for each of its controls. They are loaded when a menu is first touched. Without this
// script the picture stands as it was drawn.
const besideThis = new URL(".", document.currentScript.src);

function load(name) {
  const loaded = window.tutorialSettings?.[name];
  if (loaded) return Promise.resolve(loaded);
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(`${name}.js`, besideThis);
    script.onload = () => resolve(window.tutorialSettings[name]);
    script.onerror = reject;
    document.head.append(script);
  });
}

// The number of a setting, as they were drawn: the last menu changes fastest.
function placeOf(controls, chosen) {
  return controls.reduce((place, { values }, i) => place * values.length + chosen[i], 0);
}

function show(cell, drawn, before, words) {
  const printed = cell.querySelector(".output.stream pre");
  if (printed && (drawn.text || before.text)) {
    const rest = printed.textContent.slice(before.text.length);
    printed.textContent = drawn.text + rest;
  }
  if (drawn.png) {
    const image = cell.querySelector("img");
    image.src = `data:image/png;base64,${drawn.png}`;
    image.alt = words;
  } else {
    const place = cell.querySelector(".text_html");
    const made = document.createRange().createContextualFragment(drawn.html);
    place.replaceChildren(made); // its scripts run now
  }
}

function offer(bar) {
  const cell = bar.closest(".cell");
  const name = bar.dataset.file;
  const controls = JSON.parse(bar.dataset.controls);
  const chosen = controls.map(({ first }) => first);
  let shown = placeOf(controls, chosen);
  const status = document.createElement("span");
  status.setAttribute("role", "status");

  async function choose() {
    let settings;
    status.textContent = "Loading …";
    try {
      settings = await load(name);
    } catch {
      status.textContent = "The other pictures could not be loaded: reload the page.";
      return;
    }
    const place = placeOf(controls, chosen);
    const said = controls.map(({ label, values }, i) => `${label}: ${values[chosen[i]]}`);
    show(cell, settings[place], settings[shown], `The picture for ${said.join(", ")}.`);
    shown = place;
    status.textContent = "";
  }

  bar.append("Drawn for this page:");
  controls.forEach(({ label, values, first }, i) => {
    const select = document.createElement("select");
    select.setAttribute("aria-label", label);
    values.forEach((value, place) => {
      select.add(new Option(value, place, place === first, place === first));
    });
    select.onpointerdown = select.onfocus = () => load(name).catch(() => {});
    select.onchange = () => {
      chosen[i] = Number(select.value);
      choose();
    };
    const whole = document.createElement("label");
    whole.append(label, select);
    bar.append(whole);
  });
  bar.append(status);
}

addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".settings").forEach(offer);
});
