// Start every panel; window.orderproof has functions for tests and the console.
import { transformer } from "./transformer.js";
import { ENCODINGS } from "./encodings.js";
import { attentionHead, headVectors, HEAD_WEIGHTS } from "./attention_head.js";
import { highlightRows } from "./matrix_table.js";
import { wordVector } from "./seeded_random.js";
import { WEIGHTS } from "./model_weights.js";
import { REPLACEMENT_TOKENS, PROBE_TOKENS, differencesOf, encodingsPanel } from "./panel_encodings.js";
import { studyPanel } from "./panel_study.js";
import { liveAudit } from "./live_audit.js";
import { reportPanel } from "./panel_report.js";
import { ordersPanel } from "./panel_orders.js";
import { proofPanel } from "./panel_proof.js";
import { qkvPanel } from "./panel_qkv.js";
import { swapPanel } from "./panel_swap.js";

for (const start of [swapPanel, qkvPanel, proofPanel, ordersPanel, encodingsPanel, reportPanel, liveAudit, studyPanel, highlightRows]) start();

const run = (x, { encoding, causal, layers }) => transformer(x, WEIGHTS, { encoding: ENCODINGS[encoding], causal, layers });
window.orderproof = { run, attentionHead, headVectors, wordVector, differencesOf, WEIGHTS, HEAD_WEIGHTS, PROBE_TOKENS, REPLACEMENT_TOKENS };
document.documentElement.dataset.ready = "true";
