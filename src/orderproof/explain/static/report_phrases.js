// The sentences of a report, as orderproof.report.phrases writes them; the tests compare the two.
import { formatDifference, pluralize } from "./dom.js";

export const LEAK_TITLES = {
  causal: "Where outputs depend on later tokens",
  padding: "Where outputs depend on pad tokens",
  packing: "Where outputs depend on other documents",
  batch: "Where outputs depend on other rows",
};
const NAMED_CALL_MODES = ["packed", "blocked"];

const withCallMode = (f, text) => (NAMED_CALL_MODES.includes(f.call_mode) ? `${text} (${f.call_mode})` : text);
export const lawName = (f) => withCallMode(f, f.law);
export const lawTitle = (f) => (f.code ? `${f.code} ${lawName(f)}` : lawName(f));
export const propertyName = (f) => withCallMode(f, f.trait || f.law);

// "arch:gpt2: sees token order; order enters at 2 places, first modeling_gpt2.py:575; 19 checks passed, none failed."
export function summarySentence({ subject, findings, interrupted }) {
  const first = findings.find((f) => f.kind === "property" && f.outcome !== "not_applicable");
  const clauses = first ? [traitClause(first), entryClause(first)] : [];
  clauses.push(checkClause(findings));
  if (interrupted) clauses.push(`interrupted after ${pluralize(findings.length, "finding")}`);
  return `${subject.name}: ${clauses.filter(Boolean).join("; ") || "no law was checked"}.`;
}

function traitClause(f) {
  const [verb, ...words] = propertyName(f).split(" ");
  const rest = words.join(" ");
  if (f.outcome === "no") return verb === "is" ? `is not ${rest}` : `does not ${verb.replace(/s$/, "")} ${rest}`;
  const text = `${verb} ${rest}`.trim();
  return f.outcome === "yes" ? text : `whether it ${text} is undecided`;
}

function entryClause(f) {
  const places = [...new Set((f.entries ?? []).map((entry) => entry.source || entry.module).filter(Boolean))];
  if (!places.length || LEAK_TITLES[f.law]) return "";
  if (places.length > 1) return `order enters at ${places.length.toLocaleString("en")} places, first ${places[0]}`;
  return f.entries_complete === false ? `order enters at ${places[0]} and perhaps elsewhere` : `order enters at one place, ${places[0]}`;
}

function checkClause(findings) {
  const [passed, failed, open] = ["pass", "fail", "undecided"].map((outcome) => findings.filter((f) => f.kind === "check" && f.outcome === outcome));
  if (!passed.length && !failed.length && !open.length) return "";
  const names = [...new Set(failed.map(lawTitle))].join(", ");
  return [
    passed.length ? `${pluralize(passed.length, "check")} passed` : "no check passed",
    failed.length ? `${failed.length.toLocaleString("en")} failed (${names})` : "none failed",
    ...(open.length ? [`${open.length.toLocaleString("en")} undecided`] : []),
  ].join(", ");
}

// How an outcome is known: "proved: 85 steps", "measured: 3 comparisons, largest difference 9.4e-07", "witness: ...".
export function evidenceText(f) {
  const evidence = [evidenceKind(f), clause(f)].filter(Boolean).join(": ");
  if (f.kind !== "check" || f.expected !== "fails" || !evidenceKind(f)) return evidence;
  return `${f.outcome === "pass" ? "does not hold, as expected" : "holds, and should not"}; ${evidence}`;
}

function evidenceKind({ verdict, measurement }) {
  if (verdict === "undecided" || verdict === "not_applicable") return "";
  if (verdict === "proved") return "proved";
  return verdict === "held" || measurement ? "measured" : "witness";
}

function clause(f) {
  if (f.vacuous) return "vacuous: no token can see another, so the law says nothing about mixing";
  if (f.witness) return `${f.witness.change}: differs by ${formatDifference(f.witness.relative_difference)}`;
  if (f.verdict === "held" && f.measurement) return comparisonSummary(f.measurement);
  if (f.reason) return f.reason;
  return f.proof ? `${pluralize(f.proof.step_count, "step")}, ${valuesUsed(f.scope.tensors_read)}` : "";
}

function valuesUsed([first, ...rest]) {
  if (first === undefined) return "no parameter's values were used";
  return `values used: ${first}${rest.length ? ` and ${rest.length.toLocaleString("en")} more` : ""}`;
}

function comparisonSummary({ comparisons, control_difference: control }) {
  const completed = comparisons.filter(({ float32 }) => float32 !== null);
  const parts = [pluralize(completed.length, "comparison")];
  if (completed.length) {
    const most = completed.reduce((a, b) => (b.float32 > a.float32 ? b : a));
    const float64 = most.float64 === null ? "" : ` (${formatDifference(most.float64)} in float64)`;
    parts[0] += most.float32 ? `, largest difference ${formatDifference(most.float32)}${float64}` : ", no difference";
  }
  if (control !== null) parts.push(`positive control ${formatDifference(control)}`);
  if (completed.length < comparisons.length) parts.push(`${(comparisons.length - completed.length).toLocaleString("en")} more could not be run`);
  return parts.join("; ");
}
