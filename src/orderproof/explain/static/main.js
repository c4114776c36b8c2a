// Start the story; window.orderproof has functions for tests and the console.
import { attentionHead, headVectors, HEAD_WEIGHTS } from "./attention_head.js";
import { asksStep } from "./step_asks.js";
import { attentionStep } from "./step_attention.js";
import { breakStep, rowsStep } from "./step_rows.js";
import { headsStep } from "./step_heads.js";
import { endStep } from "./step_end.js";
import { equationStep } from "./step_equation.js";
import { t5Bucket } from "./encodings.js";
import { showNumbers } from "./heatmap.js";
import { studyPanel } from "./lab.js";
import { maskStep } from "./step_mask.js";
import { meanStep } from "./step_mean.js";
import { byId } from "./dom.js";
import { askPredictions } from "./prediction.js";
import { questionsOf } from "./questions.js";
import { KIND_WEIGHTS, kindHead, kindRows } from "./kind_head.js";
import { WEIGHTS } from "./model_weights.js";
import { nextProbabilities, nextTokenModels } from "./next_token.js";
import { nextStep } from "./step_next.js";
import { normStep, shownParts } from "./step_norm.js";
import { encodingStep, positionsStep } from "./step_positions.js";
import { qkvStep } from "./step_qkv.js";
import { reportPanel } from "./report.js";
import { reverseStep } from "./step_reverse.js";
import { ROPE_KEY, ROPE_QUERY, ropeScore } from "./rope_picture.js";
import { wordVector } from "./seeded_random.js";
import { sentencesStep } from "./step_sentences.js";
import { model, swapIfUntouched } from "./state.js";
import { startStory, startsLater } from "./steps.js";
import { tokensStep } from "./step_tokens.js";
import { trainedModelStep } from "./trained_model.js";
import { differencesOf, PROBE_TOKENS, REPLACEMENT_TOKENS } from "./verdict.js";
import { wordBar } from "./word_bar.js";

if (startsLater()) swapIfUntouched(); // before the words are drawn: they do not slide when the page opens
wordBar();
reportPanel();
studyPanel();
showNumbers();
const equation = equationStep();
startStory({
  sentences: sentencesStep(), tokens: tokensStep(), asks: asksStep(), equation: equation.draw, qkv: qkvStep(), attention: attentionStep(), rows: rowsStep(), norm: normStep(), mean: meanStep(),
  positions: positionsStep(), sinusoidal: encodingStep("sinusoidal"), learned: encodingStep("learned"), rope: encodingStep("rotary"),
  alibi: encodingStep("alibi"), t5: encodingStep("t5"), break: breakStep(), reverse: reverseStep(), mask: maskStep(), "next-word": nextStep(), minilm: trainedModelStep(), heads: headsStep(), end: endStep(),
});
askPredictions(questionsOf({ playEquation: equation.play, ...JSON.parse(byId("orderproof-trained").textContent) }));

const run = (x, options) => model(options)(x);
const parts = (x) => Object.fromEntries(shownParts().map(({ key, rows }) => [key, rows(x)]));
window.orderproof = { run, parts, attentionHead, headVectors, kindHead, kindRows, nextProbabilities, nextTokenModels, KIND_WEIGHTS, wordVector, differencesOf, t5Bucket, ropeScore, ROPE_QUERY, ROPE_KEY, WEIGHTS, HEAD_WEIGHTS, PROBE_TOKENS, REPLACEMENT_TOKENS };
document.documentElement.dataset.ready = "true";
