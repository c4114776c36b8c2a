// The page's own weights, seeded: the same for every encoding and mask, named as in the state of torch's module.
import { HEADS, HIDDEN, LONGEST, WIDTH } from "./attention.js";
import { drawn } from "./random.js";

export const BUCKETS = 32;

function linearWeights(into, name, rows, columns, scale) {
  into[`${name}.weight`] = drawn(`${name}.weight`, rows, columns, scale / Math.sqrt(columns));
  into[`${name}.bias`] = drawn(`${name}.bias`, 1, rows, 0.1)[0];
}

function normWeights(into, name) {
  into[`${name}.gain`] = drawn(`${name}.gain`, 1, WIDTH, 0.1)[0].map((value) => 1 + value);
  into[`${name}.shift`] = drawn(`${name}.shift`, 1, WIDTH, 0.1)[0];
}

function all() {
  const made = {};
  for (const layer of [0, 1]) {
    const at = `stack.layers.${layer}`;
    // Queries and keys are drawn wider, so that attention looks somewhere and not everywhere alike.
    for (const name of ["to_query", "to_key"]) linearWeights(made, `${at}.attention.${name}`, WIDTH, WIDTH, 1.5);
    for (const name of ["to_value", "to_output"]) linearWeights(made, `${at}.attention.${name}`, WIDTH, WIDTH, 1.2);
    linearWeights(made, `${at}.feed_forward.widen`, HIDDEN, WIDTH, 1);
    linearWeights(made, `${at}.feed_forward.narrow`, WIDTH, HIDDEN, 1);
    normWeights(made, `${at}.around_attention.norm`);
    normWeights(made, `${at}.around_feed_forward.norm`);
  }
  normWeights(made, "stack.last_norm");
  made["learned.weight"] = drawn("learned.weight", LONGEST, WIDTH);
  made["t5.weight"] = drawn("t5.weight", BUCKETS, HEADS);
  return Object.freeze(made);
}

export const WEIGHTS = all();
