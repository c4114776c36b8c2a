// The trained model: pairs of sentences computed beforehand, and where a server delivers the page, the reader's own.
import { byId, cosine, el, escapeControls, fill, formatDifference, formatFixed, table } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { ROUNDING_TOLERANCE } from "./laws.js";
import { addHeads } from "./step_heads.js";
import { permutedWords, state } from "./state.js";

const MAX_SENTENCE_CHARACTERS = 200; // characters of a sentence; the server has the same limit
const CONDITIONS = ["with positions", "without positions"];

export function trainedModelStep() {
  const { pairs } = JSON.parse(byId("orderproof-trained").textContent);
  const menu = el("select", { id: "pair", onchange: () => show(pairs[menu.value]) },
    pairs.map(({ sentences }, i) => el("option", { value: i }, sentences.join("  /  "))));
  fill(byId("pair-menu"), el("label", { for: "pair" }, byId("live") ? "or one of these pairs" : "Two sentences"), menu);
  show(pairs[0]);
  const form = byId("live");
  if (!form) return undefined;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sentences = ["live-first", "live-second"].map((id) => byId(id).value.trim().slice(0, MAX_SENTENCE_CHARACTERS));
    byId("live-go").disabled = true;
    showMessage("The model runs; the first time it is loaded, which takes a few seconds more …");
    await requestAudit(sentences);
    byId("live-go").disabled = false;
  });
  let before = "";
  return () => {
    const sentences = [state.words, permutedWords()].map((words) => words.join(" "));
    if (before === sentences.join("\n")) return; // what the reader typed here stays
    before = sentences.join("\n");
    [byId("live-first").value, byId("live-second").value] = sentences;
  };
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
  if (response.ok && Array.isArray(data.rows)) {
    byId("pair").selectedIndex = -1;
    show({ ...data, sentences });
    if (data.heads) addHeads({ sentences, tokens: data.tokens, ...data.heads });
  } else showMessage(data.error ?? `The server responds with status ${response.status}.`, true);
}

function showMessage(text, problem = false) {
  fill(byId("live-result"), el("p", { class: problem ? "problem" : "quiet" }, escapeControls(text)));
}

function show({ model, sentences, same_tokens, tokens, rows, maps }) {
  const double = CONDITIONS.map((condition) => rows.find((row) => row.condition === condition && row.dtype === "float64"));
  fill(byId("live-result"),
    el("p", { class: "shown-pair" }, sentences.map((sentence, i) => [i ? " / " : "", el("bdi", {}, escapeControls(sentence))])),
    cosineAxis(double),
    el("p", { class: "conclusion" }, explanation({ same_tokens, tokens, bare: double[1] })),
    maps.length ? [el("p", { class: "quiet" }, "Attention weights of the first head in layer 1: query rows, key columns. [CLS] and [SEP] mark the start and the end."), attentionMaps(sentences, tokens, maps)] : null,
    el("details", {}, el("summary", {}, "The numbers, in float32 and float64"),
      table({ caption: `${escapeControls(model)}: distance between the vectors of the two sentences`, head: ["condition", "dtype", "cosine", "largest difference"],
        rows: rows.map((row) => [row.condition, row.dtype, cosine(row.cosine), formatDifference(row.max_abs_difference)]), numbers: [2, 3], name: "live" })));
}

// Both cosines on an axis that ends at 1.
function cosineAxis(rows) {
  const [wide, edge] = [420, 14];
  const low = Math.min(0.9, ...rows.map(({ cosine: value }) => Math.floor(value * 10) / 10));
  const at = (value) => Number((edge + ((value - low) / (1 - low)) * (wide - 2 * edge)).toFixed(1));
  const ticks = [0, 1, 2, 3, 4, 5].map((i) => Number((low + (i * (1 - low)) / 5).toFixed(2)));
  const text = rows.map(({ condition, cosine: value }) => `${condition}: cosine ${formatFixed(value, 4)}`);
  return el("figure", { class: "chart cosines" }, el("svg", { viewBox: `0 0 ${wide} 132`, role: "img", "aria-label": text.join("; ") },
    ticks.map((tick) => el("g", {}, el("line", { class: "grid", x1: at(tick), x2: at(tick), y1: 24, y2: 106 }), el("text", { class: "tick", x: at(tick), y: 126, "text-anchor": tick === 1 ? "end" : "middle" }, String(tick)))),
    rows.map(({ condition, cosine: value }, i) => [
      el("text", { class: "tick", x: 0, y: 18 + 50 * i }, condition), el("text", { class: "tick cosine", x: wide, y: 18 + 50 * i, "text-anchor": "end" }, `cosine ${formatFixed(value, 4)}`),
      el("circle", { class: "score", cx: at(value), cy: 38 + 50 * i, r: 9 })])));
}

// The weights of one head in the first layer, for both sentences.
function attentionMaps(sentences, tokens, maps) {
  return CONDITIONS.map((condition, i) => el("div", { class: "card" }, el("h3", {}, `Attention ${condition}`), el("div", { class: "both" },
    [0, 1].map((k) => heatmap(["first sentence", "second sentence"][k], maps[2 * i + k], { rows: tokens[k], columns: tokens[k], head: false, digits: 2, label: `attention ${condition}: ${sentences[k]}` })))));
}

// The meaning of these numbers, for these two sentences only.
function explanation({ same_tokens, tokens: [first, second], bare }) {
  if (first.every((token, i) => token === second[i])) return "Both sentences give the same tokens: change the order of the words.";
  const onlyRounding = bare.max_abs_difference <= ROUNDING_TOLERANCE;
  if (same_tokens) return `The same tokens in another order: without positions ${onlyRounding ? "only rounding is left" : "they differ too"}.`;
  return `The two sentences do not have the same tokens${onlyRounding ? "" : ": they differ without positions too"}.`;
}
