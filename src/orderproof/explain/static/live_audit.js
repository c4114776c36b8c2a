// The live part of panel 6: two sentences through the bundled model, where a server delivers the page.
import { byId, cosine, el, fill, formatDifference, table, escapeControls } from "./dom.js";
import { ROUNDING_TOLERANCE } from "./laws.js";

const MAX_SENTENCE_CHARACTERS = 200; // characters of a sentence; the server has the same limit

export function liveAudit() {
  const form = byId("live");
  if (!form) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sentences = ["live-first", "live-second"].map((id) => byId(id).value.trim().slice(0, MAX_SENTENCE_CHARACTERS));
    byId("live-go").disabled = true;
    showMessage("The model runs; the first time it is loaded, which takes a few seconds more …");
    await requestAudit(sentences);
    byId("live-go").disabled = false;
  });
}

// No response, a response that is not JSON and an error response are three cases.
async function requestAudit(sentences) {
  let response;
  try {
    response = await fetch("audit", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ sentences }) });
  } catch {
    showMessage("The server does not respond: is orderproof explain still running?", true);
    return;
  }
  const data = (await response.json().catch(() => null)) ?? {};
  if (response.ok && Array.isArray(data.rows)) show(data);
  else showMessage(data.error ?? `The server responds with status ${response.status}.`, true);
}

function showMessage(text, problem = false) {
  fill(byId("live-result"), el("p", { class: problem ? "problem" : "quiet" }, escapeControls(text)));
}

function show({ model, same_tokens, tokens, rows, seconds }) {
  const cells = rows.map((row) => [row.condition, row.dtype, cosine(row.cosine), formatDifference(row.max_abs_difference)]);
  fill(byId("live-result"),
    table({ caption: `${escapeControls(model)}: distance between the outputs for the two sentences`, head: ["condition", "dtype", "cosine", "largest difference"], rows: cells, numbers: [2, 3], name: "live" }),
    el("p", {}, explanation({ same_tokens, tokens, rows })), el("p", { class: "quiet" }, `${seconds.toFixed(1)} s`));
}

// The meaning of these numbers, for these two sentences only.
function explanation({ same_tokens, tokens: [first, second], rows }) {
  if (first.every((token, i) => token === second[i])) return "Both sentences give the same tokens: change the order of the words.";
  const bare = rows.find((row) => row.condition === "without positions" && row.dtype === "float64");
  const onlyRounding = bare.max_abs_difference <= ROUNDING_TOLERANCE;
  if (same_tokens) return `The same tokens in another order: without positions ${onlyRounding ? "only rounding is left" : "they differ too"}.`;
  return `The two sentences do not have the same tokens${onlyRounding ? "" : ": they differ without positions too"}.`;
}
