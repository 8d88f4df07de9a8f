// A GPT or a Llama, one token at a time, with its KV cache; heads can be switched off.
// It computes in float32 from weights of 8 bits.

// A matrix is its rows' scales and then its rows, in whole numbers; a vector has 0 rows.
function readWeights(spec, packed) {
  const { buffer } = bytesOf(packed);
  const weights = {};
  let at = 0;
  for (const [name, rows, columns] of spec) {
    const scales = new Float32Array(buffer, at, rows || columns);
    at += 4 * scales.length;
    let values = scales;
    if (rows) {
      const whole = new Int8Array(buffer, at, rows * columns);
      at += 4 * Math.ceil(whole.length / 4);
      values = Float32Array.from(whole, (value, i) => value * scales[Math.floor(i / columns)]);
    }
    weights[name] = { values, rows, columns };
  }
  return weights;
}

function writingModel({ sizes, spec, weights: packed }) {
  const weights = readWeights(spec, packed);
  const { d_model, num_heads, num_kv_heads, num_layers, frequencies } = sizes;
  const d_k = d_model / num_heads;
  const group = num_heads / num_kv_heads;
  const table = weights["token_embedding.weight"];
  const positionTable = weights["position_embedding.weight"];
  const output = weights["output.weight"] ? "output" : "token_embedding";

  const row = ({ values, columns }, i) => values.slice(i * columns, (i + 1) * columns);

  function linear(name, x) {
    const { values, rows, columns } = weights[`${name}.weight`];
    const y = weights[`${name}.bias`]?.values.slice() ?? new Float32Array(rows);
    for (let i = 0, k = 0; i < rows; i += 1) {
      let total = 0;
      for (let j = 0; j < columns; j += 1, k += 1) total += values[k] * x[j];
      y[i] += total;
    }
    return y;
  }

  // LayerNorm has a bias, and RMSNorm has none.
  function norm(name, x) {
    const scale = weights[`${name}.weight`].values;
    const bias = weights[`${name}.bias`]?.values;
    const mean = bias ? sum([...x]) / x.length : 0;
    const squares = sum(Array.from(x, (value) => (value - mean) ** 2));
    const factor = 1 / Math.sqrt(squares / x.length + 1e-5);
    return x.map((value, i) => (value - mean) * factor * scale[i] + (bias ? bias[i] : 0));
  }

  // Neighboring dimensions are a pair.
  function rotate(x, position) {
    const y = x.slice();
    frequencies.forEach((frequency, i) => {
      const [cos, sin] = [Math.cos(position * frequency), Math.sin(position * frequency)];
      y[2 * i] = x[2 * i] * cos - x[2 * i + 1] * sin;
      y[2 * i + 1] = x[2 * i] * sin + x[2 * i + 1] * cos;
    });
    return y;
  }

  const headsOf = (x, heads) => count(heads).map((h) => x.slice(h * d_k, (h + 1) * d_k));
  const silu = (x) => x / (1 + Math.exp(-x));
  const gelu = (x) =>
    (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

  function attend(layer, x, cache, off, maps) {
    const position = cache.length;
    const queries = headsOf(linear(`${layer}.Q`, x), num_heads);
    const keys = headsOf(linear(`${layer}.K`, x), num_kv_heads);
    cache.push({
      keys: keys.map((key) => rotate(key, position)),
      values: headsOf(linear(`${layer}.V`, x), num_kv_heads),
    });
    const context = new Float32Array(d_model);
    queries.forEach((query, head) => {
      const shared = Math.floor(head / group);
      const rotated = rotate(query, position);
      const scores = cache.map(({ keys: rows }) =>
        rotated.reduce((total, value, i) => total + value * rows[shared][i], 0));
      const shares = softmaxOf(scores.map((score) => score / Math.sqrt(d_k)));
      maps.push(shares);
      if (off.has(layer * num_heads + head)) return;
      shares.forEach((share, j) => {
        const value = cache[j].values[shared];
        for (let i = 0; i < d_k; i += 1) context[head * d_k + i] += share * value[i];
      });
    });
    return linear(`${layer}.O`, context);
  }

  function feedForward(layer, x) {
    const up = linear(`${layer}.up`, x);
    if (!weights[`${layer}.gate.weight`]) return linear(`${layer}.down`, up.map(gelu));
    const gate = linear(`${layer}.gate`, x);
    return linear(`${layer}.down`, up.map((value, i) => value * silu(gate[i])));
  }

  // Returns the logits of what follows a token, and of each head who was attended to.
  // A cache begins as {layers: []}, and is then extended.
  function step(token, cache, off = new Set()) {
    const maps = [];
    let x = row(table, token);
    const update = (change) => (x = x.map((value, i) => value + change[i]));
    if (positionTable) update(row(positionTable, cache.layers[0]?.length ?? 0));
    for (let layer = 0; layer < num_layers; layer += 1) {
      const own = (cache.layers[layer] ??= []);
      update(attend(layer, norm(`${layer}.norm1`, x), own, off, maps));
      update(feedForward(layer, norm(`${layer}.norm2`, x)));
    }
    return { logits: linear(output, norm("norm", x)), maps };
  }

  return step;
}

// Reads and writes texts, with all heads or without some, and remembers what it has read.
function makeWriter(data) {
  const step = writingModel(data);
  const longest = data.sizes.max_tokens;
  let whole = readerWithout([]);
  let ablated = whole;
  const losses = {};

  // A text that has become longer than the model reads goes on from its second half.
  function readerWithout(heads) {
    const off = new Set(heads);
    const tokens = [];
    const steps = [];
    let cache = { layers: [] };
    function read(token) {
      if (cache.layers[0]?.length === longest) {
        cache = { layers: [] };
        tokens.slice(-longest / 2).forEach((other) => step(other, cache, off));
      }
      tokens.push(token);
      steps.push(step(token, cache, off));
    }
    return { heads, tokens, steps, read };
  }

  // A reader that has read the beginning of this text, and no other, reads the rest.
  function readOn(reader, tokens) {
    const begins = reader.tokens.every((token, i) => token === tokens[i]);
    const same = begins ? reader : readerWithout(reader.heads);
    tokens.slice(same.tokens.length).forEach(same.read);
    return same;
  }

  // In nats a token, of a line that was not among the training texts. What stands before
  // it is read, too.
  function lossOf(heads) {
    const { context, tokens } = data.line;
    const { steps } = readOn(readerWithout(heads), [...context, ...tokens]);
    const surprises = tokens.map((token, i) => {
      const probs = softmaxOf([...steps[context.length + i - 1].logits]);
      return -Math.log(probs[token]);
    });
    return sum(surprises) / tokens.length;
  }

  // Goes on with the tokens that are given until there are `until`, by the same random
  // numbers each time. Returns them with what was likely after each from `since` on: without
  // the heads that are off, and with all.
  return ({ given, until, off, settings, since }) => {
    if (`${off}` !== `${ablated.heads}`) ablated = off.length ? readerWithout(off) : whole;
    ablated = readOn(ablated, given);
    while (ablated.tokens.length < until) {
      const probs = probabilitiesOf(ablated.steps.at(-1).logits, settings);
      ablated.read(drawFrom(probs, randomNumber(settings.seed, ablated.tokens.length)));
    }
    const tokens = ablated.tokens.slice(0, until);
    whole = off.length ? readOn(whole, tokens) : ablated;
    const steps = ablated.steps.slice(since, until).map(({ logits, maps }, i) => ({
      probs: probabilitiesOf(logits, settings),
      withAll: probabilitiesOf(whole.steps[since + i].logits, settings),
      maps,
    }));
    if (data.line) losses[off] ??= lossOf(off);
    return { tokens, steps, loss: losses[off] };
  };
}

// Temperature, then top-p: what is cut has probability 0.
function probabilitiesOf(logits, { temperature, p }) {
  const probs = softmaxOf(Array.from(logits, (logit) => logit / temperature));
  const order = count(probs.length).sort((a, b) => probs[b] - probs[a]);
  let before = 0;
  let kept = 0;
  for (const i of order) {
    if (before >= p && before > 0) probs[i] = 0;
    before += probs[i];
    kept += probs[i];
  }
  return probs.map((value) => value / kept);
}

function drawFrom(probs, left) {
  const likeliest = probs.indexOf(Math.max(...probs));
  for (let i = 0; i < probs.length; i += 1) {
    left -= probs[i];
    if (left < 0) return i;
  }
  return likeliest;
}

// A number from 0 to 1 for each position of each seed.
function randomNumber(seed, position) {
  let bits = Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(position + 1, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d);
  bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}
