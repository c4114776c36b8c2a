// The live part of panel 6: two sentences through the bundled model, where the page has its server behind it.
import { byId, cosine, el, fill, size, table, visible } from "./dom.js";
import { ROUNDING } from "./laws.js";

const LONGEST = 200; // characters of a sentence, as the server asks

export function livePanel() {
  const form = byId("live");
  if (!form) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sentences = ["live-first", "live-second"].map((id) => byId(id).value.trim().slice(0, LONGEST));
    byId("live-go").disabled = true;
    say("The model is asked; the first time it is loaded, which takes a few seconds more …");
    await ask(sentences);
    byId("live-go").disabled = false;
  });
}

// No answer, an answer that is no JSON and one that refuses are three things.
async function ask(sentences) {
  let answer;
  try {
    answer = await fetch("audit", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ sentences }) });
  } catch {
    say("The server does not answer: is orderproof explain still running?", true);
    return;
  }
  const told = (await answer.json().catch(() => null)) ?? {};
  if (answer.ok && Array.isArray(told.rows)) show(told);
  else say(told.error ?? `The server answers ${answer.status}.`, true);
}

function say(text, problem = false) {
  fill(byId("live-result"), el("p", { class: problem ? "problem" : "quiet" }, visible(text)));
}

function show({ model, same_tokens, tokens, rows, seconds }) {
  const cells = rows.map((row) => [row.condition, row.dtype, cosine(row.cosine), size(row.largest_difference)]);
  fill(byId("live-result"),
    table({ caption: `${visible(model)}: how far apart it puts the two sentences`, head: ["condition", "dtype", "cosine", "largest difference"], rows: cells, numbers: [2, 3], name: "live" }),
    el("p", {}, moral({ same_tokens, tokens, rows })), el("p", { class: "quiet" }, `${seconds.toFixed(1)} s`));
}

// What these numbers say; nothing of other sentences.
function moral({ same_tokens, tokens: [first, second], rows }) {
  if (first.every((token, i) => token === second[i])) return "Both sentences are the same to the model: change the order of the words.";
  const bare = rows.find((row) => row.condition === "without positions" && row.dtype === "float64");
  const alike = bare.largest_difference <= ROUNDING;
  if (same_tokens) return `The same tokens in another order: without positions ${alike ? "only rounding is left" : "they differ too"}.`;
  return `The two sentences do not hold the same tokens${alike ? "" : ": they differ without positions too"}.`;
}
