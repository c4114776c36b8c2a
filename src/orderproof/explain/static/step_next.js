// What comes next: three trained decoders read a sentence word by word, with positions and without.
import { byId, el, fill, formatDifference, formatFixed } from "./dom.js";
import { ROUNDING_TOLERANCE } from "./laws.js";
import { nextProbabilities, nextTokenModels, sentenceOf } from "./next_token.js";
import { timeline } from "./timeline.js";
import { largestDifference } from "./transformer.js";

const QUESTION = 7; // words read before the answer depends on who chased whom
const titleOf = ({ encoding, layers }) => `${encoding === "none" ? "Without positions" : "With positions"}, ${layers === 1 ? "one layer" : "two layers"}`;

export function nextStep() {
  const { vocabulary, animals, verbs, models } = nextTokenModels();
  const chosen = { first: animals[0], verb: verbs[0], second: animals[1] };
  const shown = [...animals, ...vocabulary.filter((word) => !animals.includes(word))];
  let read = QUESTION;

  const menu = (key, label, options) => el("label", {}, `${label} `, el("select", { id: `next-${key}`, onchange: ({ target }) => choose(key, target.value) }, options.map((word) => el("option", { value: word }, word))));
  fill(byId("next-controls"), el("button", { type: "button", class: "play", id: "next-swap", onclick: () => choose("first", chosen.second) }, "Swap the animals"),
    menu("first", "the", animals), menu("verb", "", verbs), menu("second", "the", animals));
  byId("next-verb").setAttribute("aria-label", "verb");

  // Two animals are different: the one that is taken from the other gives its own in return.
  function choose(key, word) {
    const other = { first: "second", second: "first" }[key];
    if (other && chosen[other] === word) chosen[other] = chosen[key];
    chosen[key] = word;
    draw();
  }

  const cards = models.map((model, i) => {
    const bars = shown.map((word) => ({ word, bar: el("span", { class: "bar" }), share: el("span", { class: "share" }) }));
    const answer = el("p", { class: "next-answer" });
    return { model, bars, answer, element: el("div", { class: "card", id: `next-model-${i}` }, el("h3", {}, titleOf(model)), answer,
      el("ul", { class: "probabilities" }, bars.map(({ word, bar, share }) => el("li", { "data-word": word }, el("span", {}, word), el("span", { class: "track" }, bar), share)))) };
  });
  fill(byId("next-cards"), cards.map(({ element }) => element));
  const stages = Array.from({ length: sentenceOf(chosen).length }, (_, i) => `${i + 1} of ${sentenceOf(chosen).length} words read`);
  const scene = timeline({ id: "next-time", label: "Words read", stages, step: 1, start: read - 1, paint: (t) => {
    read = Math.floor(t) + 1;
    draw();
  } });
  fill(byId("next-timeline"), scene.element);

  function draw() {
    for (const key of ["first", "verb", "second"]) byId(`next-${key}`).value = chosen[key];
    const words = sentenceOf(chosen);
    fill(byId("next-prompt"), words.map((word, i) => el("li", {}, el("span", { class: `chip ${i < read ? "" : "unread"}` }, word))), el("li", {}, el("span", { class: "chip asked" }, "?")));
    for (const { model, bars, answer } of cards) {
      const probabilities = nextProbabilities(model, vocabulary, words.slice(0, read));
      for (const { word, bar, share } of bars) {
        const value = probabilities[vocabulary.indexOf(word)];
        bar.style.setProperty("--v", value);
        share.textContent = formatFixed(value);
      }
      fill(answer, bestOf(vocabulary, probabilities));
    }
    fill(byId("next-swapped"), swapNote());
  }

  // How far the probabilities move when the animals change places.
  function swapNote() {
    const other = { ...chosen, first: chosen.second, second: chosen.first };
    const [one, two] = [chosen, other].map((each) => sentenceOf(each).slice(0, QUESTION));
    return ["Swapped animals change a probability after “so the” by at most ", models.map((model, i) => {
      const gap = largestDifference([nextProbabilities(model, vocabulary, one)], [nextProbabilities(model, vocabulary, two)]);
      return [i ? "; " : "", el("b", { class: "gap-size" }, formatDifference(gap)), gap > 0 && gap <= ROUNDING_TOLERANCE ? " (rounding) " : " ", titleOf(model).toLowerCase()];
    }), "."];
  }
  scene.show(read - 1);
  return draw;
}

// The words that are most probable, those that share a place together.
function bestOf(vocabulary, probabilities) {
  const most = Math.max(...probabilities);
  const best = vocabulary.filter((_, i) => probabilities[i] > 0.9 * most);
  return ["next: ", el("b", {}, best.length > 2 ? `one of ${best.length} words` : best.join(" or "))];
}

// What the decoder without positions and with one layer gives: a word, or a half to each animal.
export function bareAnswer() {
  const { vocabulary, animals, verbs, models } = nextTokenModels();
  const words = sentenceOf({ first: animals[0], verb: verbs[0], second: animals[1] }).slice(0, QUESTION);
  const probabilities = nextProbabilities(models.find(({ encoding, layers }) => encoding === "none" && layers === 1), vocabulary, words);
  const [first, second] = animals.map((word) => probabilities[vocabulary.indexOf(word)]);
  return Math.abs(first - second) < 0.1 ? "half" : first > second ? "first" : "second";
}
