// The question: two sentences with the same words through a transformer without positions. The reader predicts, then sees.
import { byId, el, escapeControls, fill } from "./dom.js";
import { strip } from "./heatmap.js";
import { ROUNDING_TOLERANCE } from "./laws.js";
import { recordPrediction } from "./prediction.js";
import { isUnchanged, moveWords, runBoth, state, swapOuter } from "./state.js";
import { largestDifference } from "./transformer.js";
import { comparison, unchangedNote } from "./verdict.js";

export function sentencesStep() {
  let predicted = null; // the answer of the reader to the question below

  function predict(answer) {
    predicted = answer;
    moveWords(swapOuter(state.words));
    const { means: [first, second] } = runBoth();
    recordPrediction("sentences", { predicted, right: largestDifference([first], [second]) <= ROUNDING_TOLERANCE ? "stay" : "change", texts: { stay: "the vector stays the same", change: "the vector changes" } });
    byId("next").focus({ preventScroll: true }); // the button that was pressed is gone
  }

  // The swap that `predict` makes, in words.
  function question() {
    const [one, other] = swapOuter(state.words).flatMap((place, m) => (place === m ? [] : [`“${escapeControls(state.words[m])}”`]));
    return el("div", { class: "prediction" },
      el("p", {}, `Now both sentences are the same, and so are their vectors. Swap ${one} and ${other} in the second sentence: what will its vector do? Your prediction makes the swap.`),
      el("div", { class: "buttons" }, [["change", "It will change"], ["stay", "It will stay the same"]].map(([answer, text]) =>
        el("button", { type: "button", class: "play", "data-answer": answer, onclick: () => predict(answer) }, text))));
  }

  function verdict(means) {
    const note = predicted && el("p", { class: "quiet" }, `Your prediction: it will ${predicted === "stay" ? "stay the same" : "change"}.`);
    return [comparison([means[0]], [means[1]]), note];
  }

  return () => {
    const { means } = runBoth();
    const [same, canSwap] = [isUnchanged(), !isUnchanged(swapOuter(state.words))];
    fill(byId("sentence-first"), strip(means[0], { id: "first-mean", label: "vector of the first sentence" }));
    fill(byId("sentence-second"), strip(means[1], { id: "second-mean", label: "vector of the second sentence" }));
    if (same) predicted = null;
    fill(byId("sentence-result"), !same ? verdict(means) : canSwap ? question() : unchangedNote());
    byId("sentence-conclusion").hidden = same;
  };
}
