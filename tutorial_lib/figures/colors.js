// Scales of color, where it stands for a number. A color is red, green, blue and alpha.

// A scale of matplotlib is colors at equal distances, mixed between them.
const toScale = (colors) => colors.split(" ").map((hex) =>
  [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const BLUES = toScale(
  "f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b",
);
const BLUE_TO_RED = toScale(
  "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f",
);

function mix(scale, place) {
  const [low, high] = [scale[Math.floor(place)], scale[Math.ceil(place)]];
  return low.map((part, i) => part + (high[i] - part) * (place % 1));
}

// The color of a weight from 0 to 1, as in the static heatmaps. On a dark page the
// scale runs the other way and begins at the page itself.
function colorOf(weight, dark) {
  const place = 8 * clamp(dark ? 1 - weight : weight, 0, 1);
  return [...mix(BLUES, place), dark ? 2000 * weight : 255];
}

// The color of a number from -1 to 1. On a dark page 0 is the page itself, and both
// colors brighten.
function signedColorOf(value, dark) {
  const size = Math.abs(value);
  const onDark = value < 0 ? 3 * size : 10 - 3 * size;
  const place = dark ? onDark : 5 + 5 * value;
  return [...mix(BLUE_TO_RED, place), dark ? 1000 * size : 255];
}

// A canvas is one pixel a color, row by row; style stretches it.
function paint(canvas, columns, colors) {
  const image = new ImageData(Uint8ClampedArray.from(colors.flat()), columns);
  set(canvas, { width: columns, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
}
