// The conclusion: the reader's two sentences with each encoding, and the predictions that were given.
import { byId, el, fill, formatDifference } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { ROUNDING_TOLERANCE } from "./laws.js";
import { predictionsGiven } from "./prediction.js";
import { runBoth, state } from "./state.js";
import { largestDifference } from "./transformer.js";
import { unchangedNote } from "./verdict.js";

export function endStep() {
  return () => {
    const rows = Object.entries(ENCODINGS).map(([encoding, { label }]) => {
      const { means: [first, second] } = runBoth({ encoding });
      const gap = largestDifference([first], [second]), same = gap <= ROUNDING_TOLERANCE;
      return el("tr", { "data-encoding": encoding }, el("th", { scope: "row" }, label), el("td", { class: same ? "cannot" : "can" }, same ? "the same vector" : "different vectors"),
        el("td", { class: "gap-size" }, formatDifference(gap)));
    });
    const sentence = (order) => el("bdi", {}, order.map((place) => state.words[place]).join(" "));
    fill(byId("end-sentences"), unchangedNote() ?? el("div", { class: "scroll" }, el("table", { class: "abilities" },
      el("caption", {}, "“", sentence(state.words.map((_, i) => i)), "” and “", sentence(state.order), "”, in an encoder of one layer"),
      el("thead", {}, el("tr", {}, ["positions", "your two sentences get", "largest difference"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, rows))));
    fill(byId("end-predictions"), tally([...predictionsGiven()].filter(([, { predicted }]) => predicted !== null)));
  };
}

function tally(given) {
  if (!given.length) return el("p", { class: "quiet" }, "You gave no predictions. Each step asks for one: go back to the first.");
  const right = given.filter(([, { predicted, right: wanted }]) => predicted === wanted).length;
  const line = ([step, { predicted, right: wanted, texts }]) => el("li", { class: predicted === wanted ? "can" : "cannot" },
    el("a", { href: `#${step}` }, byId(step).querySelector("h2").textContent), predicted === wanted ? "" : `: ${texts[wanted]}`);
  return [el("p", {}, el("b", {}, `${right} of ${given.length}`), " of your predictions were right."), el("ul", { class: "tally" }, given.map(line))];
}
