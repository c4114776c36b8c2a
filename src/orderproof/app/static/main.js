// Start every panel; what the tests and curious readers may ask for stands in window.orderproof.
import { transformer } from "./attention.js";
import { ENCODINGS } from "./encodings.js";
import { head, headVectors, HEAD_WEIGHTS } from "./head.js";
import { lightRows } from "./matrix.js";
import { vectorOf } from "./random.js";
import { WEIGHTS } from "./weights.js";
import { OTHERS, PROBE, fingerprintOf, fixPanel } from "./panel_fix.js";
import { labPanel } from "./panel_lab.js";
import { livePanel } from "./panel_live.js";
import { modelPanel } from "./panel_model.js";
import { ordersPanel } from "./panel_orders.js";
import { proofPanel } from "./panel_proof.js";
import { qkvPanel } from "./panel_qkv.js";
import { swapPanel } from "./panel_swap.js";

for (const start of [swapPanel, qkvPanel, proofPanel, ordersPanel, fixPanel, modelPanel, livePanel, labPanel, lightRows]) start();

const run = (x, { encoding, causal, layers }) => transformer(x, WEIGHTS, { encoding: ENCODINGS[encoding], causal, layers });
window.orderproof = { run, head, headVectors, vectorOf, fingerprintOf, WEIGHTS, HEAD_WEIGHTS, PROBE, OTHERS };
document.documentElement.dataset.ready = "true";
