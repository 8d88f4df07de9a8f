// Lines between tokens. Returns the function that marks what a reader points at.

function drawLines(scene, { left, right, end, step, top }) {
  const { queries, keys, names, cells, now, weight, show, isChosen, isIn } = scene;
  const height = top + step * Math.max(queries.length, keys.length) + 2;
  const svg = add(scene.views, "svg", { width: right + end, height, role: "img" });
  svg.ariaLabel = `lines from ${names[0]} to ${names[1]}`;
  const lines = add(svg, "g");
  const middle = (row) => top + step * (row + 0.5);

  const addTokens = (tokens, side, x, style, farX, farStyle) => {
    addText(svg, x, top - 8, names[side], `name ${style}`);
    return tokens.map((token, row) => {
      const box = { x: side * right, y: middle(row) - step / 2, height: step };
      const y = middle(row) + 4.5;
      return {
        box: add(svg, "rect", { ...box, width: side ? end : left }),
        label: addText(svg, x, y, shorten(token, scene.room), style),
        number: addText(svg, farX, y, "", `small number ${farStyle}`),
      };
    });
  };
  const queryTokens = addTokens(queries, 0, left - 6, "end", 0, "");
  const keyTokens = addTokens(keys, 1, right + 6, "", right + end, "end");

  scene.listen(svg, (x, y) => {
    const row = Math.floor((y - top) / step);
    if (x < left && row in queries) return [row, -1];
    return x > right && row in keys ? [-1, row] : [-1, -1];
  });

  function addLine(query, key) {
    const [from, to, bend] = [middle(query), middle(key), (left + right) / 2];
    add(lines, "path", {
      d: `M${left},${from}C${bend},${from} ${bend},${to} ${right},${to}`,
      "stroke-width": 1 + 4 * weight(query, key),
      "stroke-opacity": 0.12 + weight(query, key),
    });
  }

  // Beside the other tokens stand the weights that the chosen one gives or gets.
  function markToken({ box, label, number }, chosen, weighed, cell) {
    box.style.fillOpacity = weighed ? 0.45 * weight(...cell) : chosen ? 0.25 : 0;
    number.textContent = weighed ? show(...cell) : "";
    embolden(label, chosen);
  }

  return () => {
    const { query, key } = now;
    const least = isChosen() ? 0.01 : clamp(cells.length / 2e4, 0.01, 0.15);
    lines.replaceChildren();
    for (const cell of cells) {
      if (isIn(...cell) && weight(...cell) >= least) addLine(...cell);
    }
    keyTokens.forEach((token, j) =>
      markToken(token, j === key, query >= 0 && isIn(query, j), [query, j]));
    queryTokens.forEach((token, i) =>
      markToken(token, i === query, query < 0 && key >= 0, [i, key]));
  };
}
