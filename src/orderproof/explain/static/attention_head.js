// One attention head for the panels that show every number: width 4, without norm, residual and bias vectors.
//
//   Q = X Wq    K = X Wk    V = X Wv    S = Q K^T / sqrt(4)    A = softmax(S)    Z = A V
//
// An encoding acts as on the first of eight heads: the slope of ALiBi is 1/2.
import { MAX_WORDS, meanOfRows, multiply, scores, softmax } from "./transformer.js";
import { ENCODINGS } from "./encodings.js";
import { seededMatrix, wordVector } from "./seeded_random.js";
import { T5_BUCKETS } from "./model_weights.js";

const HEAD_WIDTH = 4;
const BIAS_HEADS = 8; // heads, of which this is the first

export const HEAD_WEIGHTS = {
  query: seededMatrix("head query", HEAD_WIDTH, HEAD_WIDTH, 0.6),
  key: seededMatrix("head key", HEAD_WIDTH, HEAD_WIDTH, 0.6),
  value: seededMatrix("head value 46", HEAD_WIDTH, HEAD_WIDTH, 0.6), // the arrows of the examples are not parallel
  "learned.weight": seededMatrix("head learned", MAX_WORDS, HEAD_WIDTH),
  "t5.weight": seededMatrix("head t5", T5_BUCKETS, 1),
};

export const headVectors = (words) => words.map((word) => wordVector(word, HEAD_WIDTH));

// The bias added to the score of query m and key n; undefined where the encoding adds none.
export function scoreBias(encoding, causal) {
  const { bias } = ENCODINGS[encoding];
  return bias && bias({ head: 0, heads: BIAS_HEADS, causal, weights: HEAD_WEIGHTS });
}

export function attentionHead(x, { encoding = "none", causal = false } = {}) {
  const { embed, rotate } = ENCODINGS[encoding];
  const placed = embed ? embed(x, HEAD_WEIGHTS) : x;
  const [q, k, v] = ["query", "key", "value"].map((name) => multiply(placed, HEAD_WEIGHTS[name]));
  const options = { causal, bias: scoreBias(encoding, causal) };
  const compared = rotate ? { q: rotate(q), k: rotate(k) } : { q, k }; // what a score compares
  const s = scores(compared.q, compared.k, options);
  const a = softmax(s);
  const z = multiply(a, v);
  return { x: placed, q, k, v, compared, s, a, z, pooled: meanOfRows(z) };
}
