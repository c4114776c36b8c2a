// Seeded weights, the same for every encoding and mask, with the names of the torch module's state.
import { HEADS, FEED_FORWARD_WIDTH, MAX_WORDS, WIDTH } from "./transformer.js";
import { seededMatrix } from "./seeded_random.js";

export const T5_BUCKETS = 32;

function linearWeights(into, name, rows, columns, scale) {
  into[`${name}.weight`] = seededMatrix(`${name}.weight`, rows, columns, scale / Math.sqrt(columns));
  into[`${name}.bias`] = seededMatrix(`${name}.bias`, 1, rows, 0.1)[0];
}

function normWeights(into, name) {
  into[`${name}.gain`] = seededMatrix(`${name}.gain`, 1, WIDTH, 0.1)[0].map((value) => 1 + value);
  into[`${name}.shift`] = seededMatrix(`${name}.shift`, 1, WIDTH, 0.1)[0];
}

function buildWeights() {
  const made = {};
  for (const layer of [0, 1]) {
    const at = `stack.layers.${layer}`;
    // Queries and keys have a larger scale, so that attention is not uniform.
    for (const name of ["to_query", "to_key"]) linearWeights(made, `${at}.attention.${name}`, WIDTH, WIDTH, 1.5);
    for (const name of ["to_value", "to_output"]) linearWeights(made, `${at}.attention.${name}`, WIDTH, WIDTH, 1.2);
    linearWeights(made, `${at}.feed_forward.widen`, FEED_FORWARD_WIDTH, WIDTH, 1);
    linearWeights(made, `${at}.feed_forward.narrow`, WIDTH, FEED_FORWARD_WIDTH, 1);
    normWeights(made, `${at}.around_attention.norm`);
    normWeights(made, `${at}.around_feed_forward.norm`);
  }
  normWeights(made, "stack.last_norm");
  made["learned.weight"] = seededMatrix("learned.weight", MAX_WORDS, WIDTH);
  made["t5.weight"] = seededMatrix("t5.weight", T5_BUCKETS, HEADS);
  return Object.freeze(made);
}

export const WEIGHTS = buildWeights();
