// The question: two sentences with the same words through a transformer without positions.
import { byId, fill } from "./dom.js";
import { strip } from "./heatmap.js";
import { runBoth } from "./state.js";
import { comparison, unchangedNote } from "./verdict.js";

export function sentencesStep() {
  return () => {
    const { means } = runBoth();
    fill(byId("sentence-first"), strip(means[0], { id: "first-mean", label: "vector of the first sentence" }));
    fill(byId("sentence-second"), strip(means[1], { id: "second-mean", label: "vector of the second sentence" }));
    fill(byId("sentence-result"), unchangedNote() ?? comparison([means[0]], [means[1]]));
  };
}
