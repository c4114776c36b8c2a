// A question at each turn of the story: the reader predicts first, and the answer then moves into view.
//
// While a step asks, its class is `asking` and the style hides its parts of the class `after`, and what its introduction says
// too early, of the class `then`.
import { byId, el, fill, formula } from "./dom.js";
import { state, subscribe } from "./state.js";

const given = new Map(); // by step: {asked, predicted, right, texts}; without `predicted` if the reader did not answer
let asksFirst = true;

export const predictionsGiven = () => new Map(given);

export const recordPrediction = (step, answer) => given.set(step, answer);

// questions: by the id of a step {ask, answers: [[key, text]], right, why, act}. `ask`, `answers` and `right` are functions
// of the reader's sentences; `act` shows the answer in motion.
export function askPredictions(questions) {
  const redraw = () => Object.entries(questions).forEach(([id, question]) => draw(id, question, redraw));
  const box = byId("ask-first");
  box.addEventListener("change", () => {
    asksFirst = box.checked;
    redraw();
  });
  let words = null, order = null;
  subscribe(() => {
    if (words !== state.words || order !== state.order) redraw();
    ({ words, order } = state);
  });
}

// The card of a step, before the first part that it hides.
function cardOf(id) {
  const known = byId(`ask-${id}`);
  if (known) return known;
  const made = el("div", { class: "prediction", id: `ask-${id}` });
  byId(id).querySelector(".after").before(made);
  return made;
}

function draw(id, question, redraw) {
  const card = cardOf(id), asks = asksFirst && !given.has(id);
  byId(id).classList.toggle("asking", asks);
  card.hidden = !asksFirst;
  if (!asks) {
    fill(card, ...answered(given.get(id)));
    return;
  }
  const answers = question.answers(), asked = question.ask();
  const answer = (key) => {
    const right = question.right();
    given.set(id, { asked, predicted: key, right, texts: Object.fromEntries(answers), why: question.why });
    redraw();
    byId("next").focus({ preventScroll: true }); // the button that was pressed is gone
    byId("announcement").textContent = card.lastChild.textContent;
    if (key !== null) question.act?.();
  };
  const button = ([key, text], kind = "play") => el("button", { type: "button", class: kind, "data-answer": key ?? "skip", onclick: () => answer(key) }, text);
  fill(card, el("p", {}, el("b", {}, "Predict. "), formula(asked)),
    el("div", { class: "buttons" }, answers.map((each) => button(each)), button([null, "Show me"], "plain")));
}

// The question stays above its answer.
function answered(one) {
  if (!one) return [];
  const { asked, predicted, right, texts, why } = one;
  const agrees = predicted === right;
  return [
    el("p", { class: "quiet" }, formula(asked)),
    el("p", { class: `predicted ${agrees ? "agrees" : ""}` }, el("b", {}, `${predicted === null ? "The answer" : agrees ? "As you predicted" : "Not as you predicted"}: ${texts[right]}.`), " ", formula(why)),
  ];
}
