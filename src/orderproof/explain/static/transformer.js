// A transformer in float64: the same function as orderproof.blocks.Transformer, with the same names of weights.
//
//   Q = X Wq^T + bq      K = X Wk^T + bk      V = X Wv^T + bv            one row for each token
//   out[m] = sum_n softmax_n(Q[m] . K[n] / sqrt(d) + bias(m, n)) V[n]    in each head, over the n that m may see
//   x = x + out Wo^T + bo,   x = x + feedForward(x)                      each of a normalised x ("pre-norm")
//
// A matrix is an array of rows. The tests compare this file with torch.
// Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.

export const WIDTH = 8;
export const HEADS = 4;
export const FEED_FORWARD_WIDTH = 16;
export const MAX_WORDS = 8;

export function multiply(a, b) {
  return a.map((row) => {
    const out = new Array(b[0].length).fill(0);
    for (let i = 0; i < row.length; i++) for (let j = 0; j < out.length; j++) out[j] += row[i] * b[i][j];
    return out;
  });
}

export function transpose(a) {
  return a[0].map((_, j) => a.map((row) => row[j]));
}

export function add(a, b) {
  return a.map((row, i) => row.map((value, j) => value + b[i][j]));
}

// Loops for speed: all orders of eight words call this forty thousand times.
function inner(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

// Rows of x times the transpose of a weight [out, in], as torch stores it.
function linear(x, weight, bias) {
  return x.map((row) => weight.map((w, o) => inner(w, row) + bias[o]));
}

export function softmax(scores) {
  return scores.map((row) => {
    const most = Math.max(...row);
    const grown = row.map((score) => Math.exp(score - most));
    const total = grown.reduce((sum, value) => sum + value, 0);
    return grown.map((value) => value / total);
  });
}

export function meanOfRows(x) {
  return x[0].map((_, j) => x.reduce((sum, row) => sum + row[j], 0) / x.length);
}

function layerNorm(x, gain, shift) {
  return x.map((row) => {
    const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    return row.map((value, i) => (gain[i] * (value - mean)) / Math.sqrt(variance + 1e-5) + shift[i]);
  });
}

// The error function to the last digits: a series of terms of one sign near 0, a continued fraction far out.
// Source: Abramowitz and Stegun 1964, 7.1.6 and 7.1.14.
function erf(x) {
  const t = Math.abs(x);
  if (t > 6) return Math.sign(x);
  if (t < 3) {
    const square = 2 * t * t;
    let term = t, sum = t;
    for (let k = 3; term > sum * 1e-17; k += 2) sum += term *= square / k;
    return (Math.sign(x) * 2 * Math.exp(-t * t) * sum) / Math.sqrt(Math.PI);
  }
  let fraction = t;
  for (let k = 60; k >= 1; k--) fraction = t + k / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-t * t) / fraction / Math.sqrt(Math.PI));
}

function gelu(x) {
  return (x * (1 + erf(x / Math.SQRT2))) / 2;
}

// The score of each query for each key before the softmax; -Infinity where the mask hides the key.
export function scores(q, k, { causal, bias }) {
  const scale = 1 / Math.sqrt(q[0].length);
  return q.map((query, m) =>
    k.map((key, n) => {
      if (causal && n > m) return -Infinity;
      return inner(query, key) * scale + (bias ? bias(m, n) : 0);
    }),
  );
}

function selfAttention(x, weights, at, encoding, causal) {
  const of = (name) => linear(x, weights[`${at}.${name}.weight`], weights[`${at}.${name}.bias`]);
  const [q, k, v] = ["to_query", "to_key", "to_value"].map(of);
  const size = q[0].length / HEADS;
  const joined = x.map(() => []);
  for (let head = 0; head < HEADS; head++) {
    const own = (rows) => rows.map((row) => row.slice(head * size, (head + 1) * size));
    const rotated = (rows) => (encoding.rotate ? encoding.rotate(own(rows)) : own(rows));
    const bias = encoding.bias && encoding.bias({ head, heads: HEADS, causal, weights });
    const mixed = multiply(softmax(scores(rotated(q), rotated(k), { causal, bias })), own(v));
    mixed.forEach((row, m) => joined[m].push(...row));
  }
  return linear(joined, weights[`${at}.to_output.weight`], weights[`${at}.to_output.bias`]);
}

function feedForward(x, weights, at) {
  const wide = linear(x, weights[`${at}.widen.weight`], weights[`${at}.widen.bias`]);
  return linear(wide.map((row) => row.map(gelu)), weights[`${at}.narrow.weight`], weights[`${at}.narrow.bias`]);
}

// The parts of one layer, each a function from rows to rows.
export function layerParts(weights, layer, { encoding, causal }) {
  const at = `stack.layers.${layer}`;
  const norm = (name) => (x) => layerNorm(x, weights[`${at}.${name}.norm.gain`], weights[`${at}.${name}.norm.shift`]);
  return {
    attention: (x) => selfAttention(x, weights, `${at}.attention`, encoding, causal),
    feedForward: (x) => feedForward(x, weights, `${at}.feed_forward`),
    normBeforeAttention: norm("around_attention"),
    normBeforeFeedForward: norm("around_feed_forward"),
  };
}

// One output row for each token.
export function transformer(x, weights, { encoding, causal, layers }) {
  if (encoding.embed) x = encoding.embed(x, weights);
  for (let layer = 0; layer < layers; layer++) {
    const { attention, feedForward: wide, normBeforeAttention, normBeforeFeedForward } = layerParts(weights, layer, { encoding, causal });
    x = add(x, attention(normBeforeAttention(x)));
    x = add(x, wide(normBeforeFeedForward(x)));
  }
  return layerNorm(x, weights["stack.last_norm.gain"], weights["stack.last_norm.shift"]);
}

export function largestDifference(a, b) {
  return a.reduce((most, row, i) => row.reduce((found, value, j) => Math.max(found, absoluteDifference(value, b[i][j])), most), 0);
}

function absoluteDifference(one, other) {
  return one === other ? 0 : Math.abs(one - other); // two entries of -Infinity are equal
}
