// All rows at once: the chain without positions, and the same chain with an encoding or a mask.
import { chain } from "./chain.js";
import { choice } from "./choice.js";
import { byId, el, fill } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { heatmap } from "./heatmap.js";
import { permutationMatrix } from "./laws.js";
import { slideCells } from "./motion.js";
import { state } from "./state.js";

export function rowsStep() {
  const picture = el("div", { class: "both" });
  const play = el("button", { type: "button", class: "play motion-only", onclick: () => {
    for (const side of document.querySelectorAll("#rows-chain figure[id^=rows-right]")) {
      const both = /-(s|a)$/.test(side.id), pooled = side.id.endsWith("pooled");
      if (!pooled) slideCells(side.querySelector("table"), state.order, both ? state.order : null);
    }
  } }, "Apply P");
  fill(byId("rows-controls"), picture, play);
  return () => {
    const { items, text } = chain({ id: "rows" });
    showChain("rows-chain", items);
    fill(picture, heatmap("", permutationMatrix(state.order), { rows: state.order, columns: state.words.map((_, i) => i), head: false, digits: 0, id: "rows-p", label: "P, a row for each word of the second sentence and a column for each of the first" }),
      el("p", {}, el("b", {}, "P"), ": one row for each word of the second sentence; its 1 (blue) is in the column of this word in the first sentence."));
    byId("rows-end").textContent = text;
  };
}

function showChain(id, items) {
  byId(id).classList.toggle("many", state.words.length > 5); // smaller cells, so that both sides stay in one line
  fill(byId(id), items);
}

export function breakStep() {
  let [encoding, causal] = ["rotary", false];
  const options = Object.entries(ENCODINGS).map(([value, { label }]) => [value, label]);
  fill(byId("break-controls"),
    choice({ name: "break-encoding", legend: "Encoding", options, value: encoding, change: (value) => { encoding = value; draw(); } }),
    choice({ name: "break-causal", legend: "A word sees", options: [[false, "all words"], [true, "no later word (causal)"]], value: causal, change: (value) => { causal = value; draw(); } }));
  function draw() {
    const { items, text, broken, bare } = chain({ encoding, causal, id: "break" });
    showChain("break-chain", items);
    const end = byId("break-end");
    end.classList.toggle("code-0", broken !== null);
    end.textContent = bare ? `${text} Choose an encoding.` : text;
  }
  return draw;
}
