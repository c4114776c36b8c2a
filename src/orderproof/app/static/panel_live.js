// The live part of panel 6: two sentences through the bundled model, where the page has its server behind it.
import { byId, cosine, el, fill, size, table, visible } from "./dom.js";

const LONGEST = 200; // characters of a sentence, as the server asks

export function livePanel() {
  const form = byId("live");
  if (!form) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sentences = ["live-first", "live-second"].map((id) => byId(id).value.trim().slice(0, LONGEST));
    byId("live-go").disabled = true;
    say("The model is asked; the first time it is loaded, which takes a few seconds more …");
    try {
      const answer = await fetch("audit", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ sentences }) });
      const told = await answer.json();
      if (answer.ok) show(told);
      else say(told.error ?? `The server answers ${answer.status}.`, true);
    } catch {
      say("The server does not answer: is orderproof explain still running?", true);
    }
    byId("live-go").disabled = false;
  });
}

function say(text, problem = false) {
  fill(byId("live-result"), el("p", { class: problem ? "problem" : "quiet" }, visible(text)));
}

function show({ model, same_tokens, rows, seconds }) {
  const cells = rows.map((row) => [row.condition, row.dtype, cosine(row.cosine), size(row.largest_difference)]);
  const moral = same_tokens
    ? "The same tokens in another order: without positions only rounding is left."
    : "The two sentences do not hold the same tokens: they differ without positions too.";
  fill(byId("live-result"),
    table({ caption: `${visible(model)}: how far apart it puts the two sentences`, head: ["condition", "dtype", "cosine", "largest difference"], rows: cells, numbers: [2, 3], name: "live" }),
    el("p", {}, moral), el("p", { class: "quiet" }, `${seconds.toFixed(1)} s`));
}
