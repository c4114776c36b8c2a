// The laws of order as numbers: run the model twice and take the largest difference between the two sides.
//
//   order_blind    f(P X) = P f(X)                     for every permutation P; tried are a transposition and a cycle,
//                                                      which make all where both hold for every X
//   prompt_blind   f(P X)[last] = f(X)[last]           for every P that leaves the last token where it is
//   mirror_blind   f(R X) = R f(X)                     R the reversal
//   causal         f(X)[i] = f(X')[i] for i < j        X' has other tokens from j on; every j
//
// Measured on the tokens given, in float64: at rounding a law is said to hold there, for what was tried. The proof for
// every input is another matter, and orderproof's prover makes it.
import { largestDifference } from "./attention.js";

// Outputs are normalised to about 1 and go through some hundred operations; 1e-12 is far above what rounding leaves
// (a few 1e-15) and far below what any encoding does (1e-3 and more).
export const ROUNDING = 1e-12;

export const LAWS = {
  order_blind: "Permute the tokens: the outputs are permuted alike.",
  prompt_blind: "Permute all tokens but the last: the output at the last is unchanged.",
  mirror_blind: "Reverse the tokens: the outputs are reversed.",
  causal: "Replace the tokens from j on: the outputs before j are unchanged.",
};

// order[m] is the row of X that stands at place m: (P X)[m] = X[order[m]].
export function permuted(x, order) {
  return order.map((place) => x[place]);
}

export function matrixOf(order) {
  return order.map((place) => order.map((_, j) => (j === place ? 1 : 0)));
}

function generators(size, movable = size) {
  const rest = Array.from({ length: size }, (_, i) => i);
  const swap = [1, 0, ...rest.slice(2)];
  const cycle = [movable - 1, ...rest.slice(0, movable - 1), ...rest.slice(movable)];
  return movable < 3 ? [swap] : [swap, cycle];
}

export const reversal = (size) => Array.from({ length: size }, (_, i) => size - 1 - i);

export function fingerprint(model, x, others) {
  const first = model(x);
  const last = x.length - 1;
  const moved = (order) => largestDifference(model(permuted(x, order)), permuted(first, order));
  const prompt = (order) => largestDifference([model(permuted(x, order))[last]], [first[last]]);
  const replaced = (j) => {
    const second = model(x.map((row, i) => (i < j ? row : others[i])));
    return largestDifference(second.slice(0, j), first.slice(0, j));
  };
  const cuts = Array.from({ length: last }, (_, i) => i + 1);
  return {
    order_blind: Math.max(...generators(x.length).map(moved)),
    prompt_blind: Math.max(...generators(x.length, last).map(prompt)),
    mirror_blind: moved(reversal(x.length)),
    causal: Math.max(...cuts.map(replaced)),
  };
}

// Every different order of the items, equal items being told apart by nothing: n! / (a! b! ...) of them.
export function* orders(items) {
  const kinds = [...new Set(items)];
  const pools = new Map(kinds.map((kind) => [kind, items.flatMap((item, i) => (item === kind ? [i] : []))]));
  const used = new Map(kinds.map((kind) => [kind, 0]));
  const order = [];
  function* extend() {
    if (order.length === items.length) {
      yield order.slice();
      return;
    }
    for (const kind of kinds) {
      const at = used.get(kind);
      if (at === pools.get(kind).length) continue;
      used.set(kind, at + 1);
      order.push(pools.get(kind)[at]);
      yield* extend();
      order.pop();
      used.set(kind, at);
    }
  }
  yield* extend();
}

export function countOrders(items) {
  const factorial = (n) => (n < 2 ? 1 : n * factorial(n - 1));
  return [...new Set(items)].reduce(
    (left, kind) => left / factorial(items.filter((item) => item === kind).length),
    factorial(items.length),
  );
}

// How many different vectors there are, those within rounding of each other being one.
export function countDifferent(vectors) {
  const sorted = vectors.slice().sort((a, b) => a[0] - b[0]);
  const kept = [];
  for (const vector of sorted) {
    let known = false;
    for (let i = kept.length - 1; i >= 0 && vector[0] - kept[i][0] <= ROUNDING && !known; i--) {
      known = largestDifference([vector], [kept[i]]) <= ROUNDING;
    }
    if (!known) kept.push(vector);
  }
  return kept.length;
}
