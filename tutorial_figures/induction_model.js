// A model of two layers that learns to complete names that it has read before: attention
// and nothing else, one head a layer. The backward pass is written out. A worker runs this
// function from its text, so it uses nothing outside of it.

function inductionModel(sizes) {
  const { vocab, d_model: width, tokens } = sizes;
  const depth = [0, 1];
  const scale = 1 / Math.sqrt(width);
  let seed = sizes.seed;

  // Mulberry32: the same numbers in every browser.
  function random() {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  const normal = () =>
    Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

  // ---- parameters: one row of numbers, and names for its parts
  const shapes = {
    token_embedding: [vocab, width],
    position_embedding: [tokens, width],
  };
  for (const layer of depth) {
    for (const name of "QKVO") shapes[name + layer] = [width, width];
  }
  shapes.output = [width, vocab];
  const total = Object.values(shapes).reduce((n, [a, b]) => n + a * b, 0);

  function named(numbers) {
    const parts = {};
    let offset = 0;
    for (const name in shapes) {
      const [rows, columns] = shapes[name];
      parts[name] = numbers.subarray(offset, (offset += rows * columns));
    }
    return parts;
  }

  const row = () => new Float64Array(total);
  const weights = row();
  const gradients = row();
  const mean = row();
  const square = row();
  const W = named(weights);
  const dW = named(gradients);
  for (const name in W) {
    const size = name.endsWith("embedding") ? 0.5 : scale;
    W[name].forEach((_, i) => (W[name][i] = size * normal()));
  }

  // ---- products, added to `out`: A B, Aᵀ B and A Bᵀ
  function multiply(A, B, out, [n, k, m]) {
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < k; j += 1) {
        const a = A[i * k + j];
        for (let c = 0; c < m; c += 1) out[i * m + c] += a * B[j * m + c];
      }
    }
  }

  function multiplyTurned(A, B, out, [n, k, m]) {
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < k; j += 1) {
        const a = A[i * k + j];
        for (let c = 0; c < m; c += 1) out[j * m + c] += a * B[i * m + c];
      }
    }
  }

  function multiplyByTurned(A, B, out, [n, k, m]) {
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < k; j += 1) {
        let value = 0;
        for (let c = 0; c < m; c += 1) value += A[i * m + c] * B[j * m + c];
        out[i * k + j] += value;
      }
    }
  }

  // ---- one text
  const ofTokens = [tokens, width, width];
  const table = (columns) => new Float64Array(tokens * columns);
  const stream = [table(width), table(width), table(width)];
  const parts = depth.map(() =>
    Object.fromEntries([..."QKVC"].map((name) => [name, table(width)])));
  const maps = depth.map(() => table(tokens));
  const probs = table(vocab);

  function normalize(numbers, offset, length) {
    let [largest, whole] = [-Infinity, 0];
    for (let i = offset; i < offset + length; i += 1) {
      largest = Math.max(largest, numbers[i]);
    }
    for (let i = offset; i < offset + length; i += 1) {
      whole += numbers[i] = Math.exp(numbers[i] - largest);
    }
    for (let i = offset; i < offset + length; i += 1) numbers[i] /= whole;
  }

  // Reads a text: `maps` are then the weights of its two heads, `probs` the probability
  // of every next word. A head that is off adds nothing.
  function read(text, off = []) {
    for (let i = 0; i < tokens * width; i += 1) {
      const word = text[Math.floor(i / width)];
      stream[0][i] =
        W.token_embedding[word * width + (i % width)] + W.position_embedding[i];
    }
    for (const layer of depth) {
      const [x, { Q, K, V, C }, map] = [stream[layer], parts[layer], maps[layer]];
      [Q, K, V, C, map].forEach((numbers) => numbers.fill(0));
      multiply(x, W[`Q${layer}`], Q, ofTokens);
      multiply(x, W[`K${layer}`], K, ofTokens);
      multiply(x, W[`V${layer}`], V, ofTokens);
      for (let i = 0; i < tokens; i += 1) {
        const key = (j) => j * width;
        for (let j = 0; j <= i; j += 1) {
          let score = 0;
          for (let c = 0; c < width; c += 1) score += Q[key(i) + c] * K[key(j) + c];
          map[i * tokens + j] = score * scale;
        }
        normalize(map, i * tokens, i + 1);
      }
      multiply(map, V, C, [tokens, tokens, width]);
      stream[layer + 1].set(x);
      if (!off[layer]) multiply(C, W[`O${layer}`], stream[layer + 1], ofTokens);
    }
    probs.fill(0);
    multiply(stream[2], W.output, probs, [tokens, width, vocab]);
    for (let i = 0; i < tokens; i += 1) normalize(probs, i * vocab, vocab);
  }

  // Adds the gradients of one text's loss; `share` is a word's part of it.
  function learnFrom({ text, known }, share) {
    read(text);
    let loss = 0;
    const errors = table(vocab);
    for (const i of known) {
      const right = i * vocab + text[i + 1];
      loss -= share * Math.log(probs[right]);
      for (let c = 0; c < vocab; c += 1) errors[i * vocab + c] = share * probs[i * vocab + c];
      errors[right] -= share;
    }
    multiplyTurned(stream[2], errors, dW.output, [tokens, width, vocab]);
    const dx = table(width);
    multiplyByTurned(errors, W.output, dx, [tokens, width, vocab]);
    for (const layer of [1, 0]) learnLayer(layer, dx);
    for (let i = 0; i < tokens * width; i += 1) {
      const word = text[Math.floor(i / width)];
      dW.token_embedding[word * width + (i % width)] += dx[i];
      dW.position_embedding[i] += dx[i];
    }
    return loss;
  }

  // `dx` is the gradient of a layer's output, and becomes that of its input.
  function learnLayer(layer, dx) {
    const [x, map] = [stream[layer], maps[layer]];
    const { Q, K, V, C } = parts[layer];
    const [dC, dQ, dK, dV] = [...Array(4)].map(() => table(width));
    const dMap = table(tokens);
    multiplyTurned(C, dx, dW[`O${layer}`], ofTokens);
    multiplyByTurned(dx, W[`O${layer}`], dC, ofTokens);
    multiplyByTurned(dC, V, dMap, [tokens, tokens, width]);
    multiplyTurned(map, dC, dV, [tokens, tokens, width]);
    for (let i = 0; i < tokens; i += 1) {
      const offset = i * tokens;
      let middle = 0;
      for (let j = 0; j < tokens; j += 1) middle += map[offset + j] * dMap[offset + j];
      for (let j = 0; j < tokens; j += 1) {
        dMap[offset + j] = map[offset + j] * (dMap[offset + j] - middle) * scale;
      }
    }
    multiply(dMap, K, dQ, [tokens, tokens, width]);
    multiplyTurned(dMap, Q, dK, [tokens, tokens, width]);
    for (const [name, dY] of [["Q", dQ], ["K", dK], ["V", dV]]) {
      multiplyTurned(x, dY, dW[name + layer], ofTokens);
      multiplyByTurned(dY, W[name + layer], dx, ofTokens);
    }
  }

  // ---- texts: names of different letters, in any order. A letter's successor is known
  // within a name that was there before; `known` are the positions of such letters.
  function draw() {
    const { names, letters } = sizes;
    const words = Array.from({ length: vocab }, (_, i) => i);
    for (let i = 0; i < names * letters; i += 1) {
      const j = i + Math.floor(random() * (vocab - i));
      [words[i], words[j]] = [words[j], words[i]];
    }
    const text = [];
    while (text.length <= tokens) {
      const first = letters * Math.floor(random() * names);
      text.push(...words.slice(first, first + letters));
    }
    text.length = tokens + 1;
    const known = [...text.keys()].slice(0, tokens)
      .filter((i) => (i + 1) % letters && text.indexOf(text[i]) < i);
    return { text, known };
  }

  const countKnown = (texts) => texts.reduce((n, { known }) => n + known.length, 0);

  // Returns the loss of several texts and leaves its gradients in `gradients`.
  function learn(texts) {
    gradients.fill(0);
    const share = 1 / countKnown(texts);
    return texts.reduce((loss, text) => loss + learnFrom(text, share), 0);
  }

  // Adam, Kingma and Ba (2015), on a new batch; the rate climbs to its full size.
  let steps = 0;
  function step() {
    const loss = learn(Array.from({ length: sizes.batch }, draw));
    steps += 1;
    const rate = sizes.rate * Math.min(1, steps / sizes.warmup);
    const [a, b] = [0.9, 0.99];
    for (let i = 0; i < total; i += 1) {
      mean[i] += (1 - a) * (gradients[i] - mean[i]);
      square[i] += (1 - b) * (gradients[i] ** 2 - square[i]);
      const size = Math.sqrt(square[i] / (1 - b ** steps)) + 1e-8;
      weights[i] -= (rate * mean[i]) / (1 - a ** steps) / size;
    }
    return loss;
  }

  // How often the likeliest word is right; the weight of layer 0 on the word before,
  // and that of layer 1 on words that once followed the one read.
  function measure(texts, off) {
    let [loss, right, back, prefix] = [0, 0, 0, 0];
    for (const { text, known } of texts) {
      read(text, off);
      for (let i = 1; i < tokens; i += 1) back += maps[0][i * tokens + i - 1];
      for (const i of known) {
        const next = probs.subarray(i * vocab, (i + 1) * vocab);
        loss -= Math.log(next[text[i + 1]]);
        right += next.indexOf(Math.max(...next)) === text[i + 1];
        for (let j = 1; j <= i; j += 1) {
          if (text[j - 1] === text[i]) prefix += maps[1][i * tokens + j];
        }
      }
    }
    const words = countKnown(texts);
    back /= texts.length * (tokens - 1);
    return { loss: loss / words, accuracy: right / words, back, prefix: prefix / words };
  }

  return { weights, gradients, maps, probs, total, draw, read, learn, step, measure };
}
