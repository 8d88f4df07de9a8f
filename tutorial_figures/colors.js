// Scales of color, where it stands for a number. A color is red, green, blue and alpha.

// A scale is colors at equal distances, mixed between them: those of plotting/colors.py,
// on light pages and on dark ones.
const toScale = (colors) => colors.split(" ").map((hex) =>
  [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const WEIGHTS = [
  "ffffff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b",
  "14181e 19304d 1d4474 23599b 2f73bf 4f92da 7eb2ee add0fa dcebff",
].map(toScale);
const SCORES = [
  "053061 2166ac 4393c3 92c5de d1e5f0 ffffff fddbc7 f4a582 d6604d b2182b 67001f",
  "add0fa 7eb2ee 4f92da 2a66ab 1c3c66 14181e 56302a 974a3a d5705a ff9d87 ffcdbf",
].map(toScale);

function mix(scale, place) {
  const [low, high] = [scale[Math.floor(place)], scale[Math.ceil(place)]];
  return low.map((part, i) => part + (high[i] - part) * (place % 1));
}

// The color of a weight from 0 to 1. On a dark page, whose paper we do not know, the
// smallest show the page through.
function colorOf(weight, dark) {
  const place = 8 * clamp(weight, 0, 1);
  return [...mix(WEIGHTS[dark ? 1 : 0], place), dark ? 2000 * weight : 255];
}

// The color of a number from -1 to 1: blue below 0, red above.
function signedColorOf(value, dark) {
  return [...mix(SCORES[dark ? 1 : 0], 5 + 5 * value), dark ? 1000 * Math.abs(value) : 255];
}

// What travels as base64.
const bytesOf = (packed) =>
  Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));

// A canvas is one pixel a color, row by row; style stretches it.
function paint(canvas, columns, colors) {
  const image = new ImageData(Uint8ClampedArray.from(colors.flat()), columns);
  set(canvas, { width: columns, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
}
