// Attention weights by layer and head: read, pictured small, picked. It knows neither
// tokens nor patches.

// Weights travel as base64 of (deflated) little-endian 16-bit integers.
async function unpack(data) {
  let stream = new Blob([bytesOf(data.packed)]).stream();
  if (data.deflated) stream = stream.pipeThrough(new DecompressionStream("deflate"));
  data.codes = new Uint16Array(await new Response(stream).arrayBuffer());
}

// The texts of the three largest, of pairs of a code and a text.
const nameLargest = (pairs) =>
  pairs
    .filter((pair) => pair[0])
    .sort((a, b) => b[0] - a[0])
    .slice(0, 3)
    .map((pair) => pair[1])
    .join(", ") || "nothing";

// Returns the bar of controls, three ways to read a weight of the layer and head chosen
// now (code, number, text), and the function that changes what is chosen.
// draw(canvas, head) draws a head small, and redraw() all the rest.
function openHeads(root, data, now, draw, redraw) {
  const { heads, layers, codes, rows, columns } = data;
  const maps = heads > 1 ? [...count(heads), "mean"] : [];

  // A code is 0 for a weight of exactly 0, else 1 + the weight in thousandths.
  const code = (query, key, head = now.head) =>
    codes[((now.layer * (maps.length || 1) + head) * rows + query) * columns + key];
  const weight = (...cell) => Math.max(0, code(...cell) - 1) / 1000;
  function show(...cell) {
    if (code(...cell) === 0) return "0";
    return code(...cell) === 1 ? "<0.001" : weight(...cell).toFixed(3);
  }

  const bar = add(root, "div", { class: "bar" });
  const strip = add(root, "div", { class: "bar heads" });
  if (layers > 1) {
    const layer = addSelect(bar, "layer", count(layers), (i) => choose({ layer: i }));
    layer.value = now.layer;
  }
  const select = heads > 1 && addSelect(bar, "head", maps, (head) => choose({ head }));
  maps.forEach((name, head) => {
    const button = addButton(strip, "", () => choose({ head }));
    button.ariaLabel = `head ${name}`;
    add(button, "canvas");
    add(button, "span", { class: "small" }, name);
  });

  function choose(change) {
    Object.assign(now, change);
    if (select) select.value = now.head;
    [...strip.children].forEach((button, head) => {
      draw(button.firstChild, head);
      button.ariaPressed = head === now.head;
    });
    redraw();
  }
  return { bar, code, weight, show, choose };
}
