// matplotlib's Blues: the colors of the static heatmaps.
const BLUES = "f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b"
  .split(" ")
  .map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));

// The red, green, blue and alpha of a weight. On a dark page the scale runs the other
// way and begins at the page itself.
function colour(weight, dark) {
  const place = 8 * clamp(dark ? 1 - weight : weight, 0, 1);
  const [low, high] = [BLUES[Math.floor(place)], BLUES[Math.ceil(place)]];
  const mixed = low.map((value, i) => value + (high[i] - value) * (place % 1));
  return [...mixed, dark ? 2000 * weight : 255];
}

// A canvas is one pixel a color, row by row; style stretches it.
function paint(canvas, columns, colours) {
  const image = new ImageData(Uint8ClampedArray.from(colours.flat()), columns);
  set(canvas, { width: columns, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
}
