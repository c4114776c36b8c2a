// The trained decoders of next_token.json: probabilities of the next word, computed with the transformer of the page.
import { byId } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { softmax, transformer } from "./transformer.js";

const PREFIX = "decoder."; // of the names of the transformer's weights

const stored = () => JSON.parse(byId("orderproof-next").textContent);

export function nextTokenModels() {
  const { vocabulary, animals, verbs, models } = stored();
  const own = (weights) => Object.fromEntries(Object.entries(weights).map(([name, value]) => [name.replace(PREFIX, ""), value]));
  return { vocabulary, animals, verbs, models: models.map(({ encoding, layers, weights }) => ({ encoding, layers, weights: own(weights) })) };
}

// The probability of each word of the vocabulary after these words.
export function nextProbabilities({ encoding, layers, weights }, vocabulary, words) {
  const x = words.map((word) => weights["embedding.weight"][vocabulary.indexOf(word)]);
  const last = transformer(x, weights, { encoding: ENCODINGS[encoding], causal: true, layers }).at(-1);
  return softmax([weights["unembedding.weight"].map((row) => row.reduce((sum, value, i) => sum + value * last[i], 0))])[0];
}

export const sentenceOf = ({ first, verb, second }) => ["the", first, verb, "the", second, "so", "the", second];
