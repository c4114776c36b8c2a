// The laws of order as numbers: run the model twice and take the largest difference between the two sides.
//
//   permutation          f(P X) = P f(X)             for every permutation P (permutation equivariance); tested on a
//                                                    transposition and a cycle, which generate all permutations
//   prompt_permutation   f(P X)[last] = f(X)[last]   for every P that fixes the last token
//   reversal             f(R X) = R f(X)             R the reversal
//   causal               f(X)[i] = f(X')[i], i < j   X' has other tokens from j on; every j
//
// Measured on given tokens in float64: a difference at rounding means that the law holds for these tokens and the
// permutations tested. The prover of orderproof proves laws for every input.
import { largestDifference } from "./transformer.js";

// Outputs are of order 1 after some hundred operations: rounding is a few 1e-15, the effect of an encoding 1e-3 and more.
export const ROUNDING_TOLERANCE = 1e-12;

// order[m] is the row of X at position m: (P X)[m] = X[order[m]].
export function permuted(x, order) {
  return order.map((place) => x[place]);
}

export function permutationMatrix(order) {
  return order.map((place) => order.map((_, j) => (j === place ? 1 : 0)));
}

function generators(size, movable = size) {
  const rest = Array.from({ length: size }, (_, i) => i);
  const swap = [1, 0, ...rest.slice(2)];
  const cycle = [movable - 1, ...rest.slice(0, movable - 1), ...rest.slice(movable)];
  return movable < 3 ? [swap] : [swap, cycle];
}

export const reversal = (size) => Array.from({ length: size }, (_, i) => size - 1 - i);

export function lawDifferences(model, x, others) {
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
    permutation: Math.max(...generators(x.length).map(moved)),
    prompt_permutation: Math.max(...generators(x.length, last).map(prompt)),
    reversal: moved(reversal(x.length)),
    causal: Math.max(...cuts.map(replaced)),
  };
}

// Every distinct order of the items; with equal items there are n! / (a! b! ...) of them.
export function* distinctOrders(items) {
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

// The number of different vectors; vectors within rounding of each other count as one.
export function countDifferent(vectors) {
  const sorted = vectors.slice().sort((a, b) => a[0] - b[0]);
  const kept = [];
  for (const vector of sorted) {
    let known = false;
    for (let i = kept.length - 1; i >= 0 && vector[0] - kept[i][0] <= ROUNDING_TOLERANCE && !known; i--) {
      known = largestDifference([vector], [kept[i]]) <= ROUNDING_TOLERANCE;
    }
    if (!known) kept.push(vector);
  }
  return kept.length;
}
