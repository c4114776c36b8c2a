"""Decide one law for one subject: prove it, find a witness, or state why neither could be done.

export -> compare with the module -> strict walk -> proved: measure the deviation of two runs as well
                                                 -> not proved: search for a witness, map where order enters,
                                                    and prove the graph without that order
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from orderproof.auditing.decide.completion import complete_entry_map
from orderproof.auditing.decide.contradiction import NOT_REPEATABLE, contradiction_reason, other_program_in_float64
from orderproof.auditing.decide.open_entry_map import with_open_entry_map
from orderproof.auditing.decide.proof import build_proof, proof_scope
from orderproof.auditing.decide.relations import combine_relations
from orderproof.auditing.decide.theorem_certificates import with_rechecked_theorems
from orderproof.auditing.decide.theorems import with_theorem
from orderproof.auditing.explain.entries import uniform_text
from orderproof.auditing.explain.findings import finding_without_result, is_met
from orderproof.auditing.explain.implied_expectation import expected_as_in_plain_call, with_implied_expectation
from orderproof.auditing.explain.notes import note_rows_that_stay, note_unchecked_mask
from orderproof.auditing.explain.remedies import with_remedy
from orderproof.auditing.explain.uniform_entries import make_entries_uniform
from orderproof.auditing.explain.violated_places import ViolatedPlaces, find_violated_places
from orderproof.auditing.record.context import AuditContext, ProvedOutput
from orderproof.auditing.record.law_walk import LawWalk, Weights, walk_graph
from orderproof.auditing.record.output_axes import token_layouts
from orderproof.auditing.search.other_calls import compare_other_calls
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.laws import ProvedLaw, TokenDim
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.recording.captured_graph import ancestors, module_path
from orderproof.records.audit import Deviation, Expectation, Finding, Scope, Verdict


@dataclass(frozen=True)
class ProofOptions:
    """How a law is proved."""

    weights: Weights = "all"
    expect: Expectation | None = None
    uniform_entries: tuple[str, ...] = ()  # entries to make uniform first, by origin or module (shell patterns)
    search_witness: bool = True
    every_length: bool = True  # also prove for every length what is proved at one

    @property
    def states_nothing(self) -> bool:
        """True if the model itself is proved, and its user states no expectation."""
        return self.expect is None and not self.uniform_entries


def prove_law(context: AuditContext, law: ProvedLaw, options: ProofOptions = ProofOptions()) -> tuple[Finding, ...]:
    """The findings of one law: one for each output in each call mode of the law."""
    if context.subject.whole_rows_reason and not law.replaces_whole_rows:
        expected = options.expect or law.expected(context.subject.model_kind)
        return (_without_result(law, "", expected, context, "not_applicable", context.subject.whole_rows_reason),)
    if law.replaces_whole_rows:
        note_rows_that_stay(context, law)
    call_modes = [m for m in law.call_modes if not isinstance(context.in_call_mode(m), str)] or law.call_modes[:1]
    results = [finding for mode in call_modes for finding in _prove_in_call_mode(context, law, mode, options)]
    if options.every_length and not options.uniform_entries:
        for mode in law.call_modes_without_theorem:
            if not _is_without_theorem(results):
                continue
            if isinstance(context.in_call_mode(mode), str):
                note_unchecked_mask(context, law, results)
            else:
                found = _prove_in_call_mode(context, law, mode, options)
                results += [expected_as_in_plain_call(f, results) for f in found] if options.states_nothing else found

        def prove_call(there: AuditContext, mode: str) -> list[Finding]:
            return _prove_in_call_mode(there, law, mode, options)

        same = options.states_nothing and law.kind == "check"
        results = [compare_other_calls(context, law, f, prove_call, expects_same=same) for f in results]
    return tuple(with_remedy(finding, law) for finding in results)


def _prove_in_call_mode(context: AuditContext, law: ProvedLaw, call_mode: str, options: ProofOptions) -> list[Finding]:
    """The findings of one law in one call mode: one for each output."""
    began = time.perf_counter()
    there, in_mode = context.in_call_mode(call_mode), law.in_call_mode(call_mode)
    # With entries made uniform it is another model, for which its kind expects nothing.
    expected = options.expect or ("any" if options.uniform_entries else law.expected(context.subject.model_kind))
    if isinstance(there, str):
        found = [_without_result(law, "", expected, context, "not_applicable", there)]
    else:
        there = there.for_law(in_mode)
        parts = [_prove_relation(there, part, expected, options) for part in in_mode.subrelations(there.batch_size)]
        found = [combine_relations(each) for each in zip(*parts, strict=True)]
    update = {
        "seconds": (time.perf_counter() - began) / len(found),
        "call_mode": "" if call_mode == DEFAULT_SETTING else call_mode,
    }
    if options.every_length and not options.uniform_entries:  # which make another model of it
        found = [with_open_entry_map(context, law, with_theorem(context, law, call_mode, f)) for f in found]
        found = [with_rechecked_theorems(context, call_mode, f) for f in found]
    return [f.model_copy(update=update) for f in found]


def _is_without_theorem(findings: Sequence[Finding]) -> bool:
    """True if a law is proved for a call without a mask, and no theorem covers those with one."""
    return any(f.verdict == "proved" and not (f.theorem and f.theorem.covers) for f in findings)


def _prove_relation(
    context: AuditContext, law: ProvedLaw, expected: Expectation, options: ProofOptions
) -> list[Finding]:
    """The findings of one relation: one for each output."""
    if context.export_failure is not None and context.subject.patch_embedding_path is not None:
        # The tokens are inside the graph: without one they cannot be changed.
        return [_without_result(law, "", expected, context, "undecided", context.export_failure)]
    if context.export_failure is not None:
        captured, strict = None, None
    else:
        captured = context.captured
        if options.uniform_entries:
            captured = make_entries_uniform(context, law, captured, options.uniform_entries)
        strict = walk_graph(context, law, captured, weights=options.weights)
    repaired: LawWalk | None = None
    results = []
    for name in context.output_dims:
        grown = context.dims_for(law, name)
        if no_meaning := _no_meaning(context, law, name):
            results.append(_without_result(law, name, expected, context, *no_meaning))
            continue
        dims, missing = grown, context.export_failure or ""
        if strict is not None:
            dims, missing = _best_token_layout(strict, name, grown, context)
            missing = strict.walk.internal_error(ancestors([strict.captured.outputs[name]])) or missing
        search = WitnessSearch(context, law, name, dims, captured if options.uniform_entries else None)
        if strict is not None and not missing and strict.captured.branches and search.search_other_branches():
            missing = f"a branch depends on the tokens: {strict.captured.branches[0].place}"
        if strict is not None and not missing:
            results.append(_proved_finding(context, strict, name, search, expected))
            continue
        if strict is not None and repaired is None and law.permutes_tokens:
            repaired = walk_graph(context, law, strict.captured, weights=options.weights, repairing=True)
        results.append(_unproved_finding(context, law, name, search, strict, repaired, missing, expected, options))
    return results


def _no_meaning(context: AuditContext, law: ProvedLaw, output: str) -> tuple[Verdict, str] | None:
    """The verdict for an output of which the law says nothing, or whose axes are not known, and why."""
    axes, dims = context.output_axes[output], context.dims_for(law, output)
    unknown = "" if law.replaces_whole_rows else axes.unknown_tokens
    if unknown := unknown or (axes.unknown_rows if law.reads_rows else ""):
        return "undecided", unknown
    rows, tokens = context.batch_size, context.token_count
    inapplicable = law.inapplicable_reason(dims)
    if inapplicable is None and not list(law.input_changes(tokens, rows)):
        inapplicable = f"there is nothing to replace in a batch of {rows} with {tokens} tokens"
    if inapplicable is None and law.reads_rows and axes.row is None:
        inapplicable = "no axis of the output runs over rows"
    if inapplicable is not None:
        return "not_applicable", inapplicable
    if any(t.prefix_length < 0 for t in dims):
        return "undecided", (
            "the output has fewer entries than there are tokens: which token each belongs to is not known"
        )
    return None


def _without_result(
    law: ProvedLaw, output: str, expected: Expectation, context: AuditContext, verdict: Verdict, reason: str
) -> Finding:
    scope = Scope(length=context.token_count)
    return finding_without_result(law, verdict, reason, expected=expected, scope=scope, output=output)


def _proved_finding(
    context: AuditContext, done: LawWalk, output: str, search: WitnessSearch, expected: Expectation
) -> Finding:
    law, reason = done.law, ""
    verdict: Verdict = "proved"
    consulted = tuple(sorted(done.walk.used_names))
    weights: Weights = "these" if any(done.constants.is_parameter(c) for c in consulted) else "all"
    deviation, contradicts = search.deviation()
    if context.graph_mismatch is not None:
        verdict, reason = "undecided", context.graph_mismatch
    elif contradicts:
        verdict, reason = "undecided", contradiction_reason(search, deviation)
    vacuous = verdict == "proved" and law.requires_token_mixing and bool(search.dims) and not search.mixes_tokens()
    if vacuous:
        reason = "vacuous: no token's output depends on another token"
    if verdict == "proved" and context.keep_walks:
        context.walks.append(ProvedOutput(output, completed=False, walk=done))
    return Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, expectation_met=is_met(verdict, expected),
        scope=proof_scope(context, done, weights),
        entries_complete=True if law.permutes_tokens else None,
        vacuous=vacuous, output=output, deviation=deviation, reason=reason,
        proof=build_proof(done, output) if verdict == "proved" else None,
    )  # fmt: skip


def _best_token_layout(
    done: LawWalk, output: str, dims: tuple[TokenDim, ...], context: AuditContext
) -> tuple[tuple[TokenDim, ...], str]:
    """The layout of an output for which the law is proved, or the first layout and what it lacks.

    Whether the entries that are no tokens precede the tokens or follow them is not known. An output that is permuted
    in one of these layouts is permuted. Which tokens an entry must not depend on differs by layout, and so does which
    entry is of the last token, so other laws must hold in both.
    """
    fact = done.walk.fact(done.captured.outputs[output])
    layouts = token_layouts(dims)
    missing = {r: done.law.missing_property(fact, r, context.token_count, context.batch_size) for r in layouts}
    proved = [layout for layout, lack in missing.items() if lack is None]
    if len(layouts) > 1:
        context.note(f"output {output!r} has more entries than tokens: taken to precede the tokens, or to follow them")
    if proved and ((done.law.permutes_tokens and not done.law.last_token_only) or len(proved) == len(missing)):
        return proved[0], ""
    return dims, missing[dims] or next(lack for lack in missing.values() if lack is not None)


def _unproved_finding(
    context: AuditContext, law: ProvedLaw, output: str, search: WitnessSearch, strict: LawWalk | None,
    repaired: LawWalk | None, missing: str, expected: Expectation, options: ProofOptions,
) -> Finding:  # fmt: skip
    places, completion = ViolatedPlaces(), None
    if strict is not None:
        places = find_violated_places(context, strict, repaired, output)
        if repaired is not None and law.maps_entries:
            completion = complete_entry_map(
                context, law, strict.captured, output, search.dims, places.breaks, strict.weights
            )
    witness, deviation = None, Deviation()
    evidence = search.search(options.weights) if options.search_witness else None
    reason = places.reason or missing
    repeatable = evidence is None or search.is_repeatable(evidence)
    if not repeatable:
        search = search.with_restored_state()
        evidence = search.search(options.weights)
        evidence = evidence if evidence is not None and search.is_repeatable(evidence) else None
    if evidence is not None and len(token_layouts(search.dims)) > 1:
        # Entries that are no tokens may precede or follow them: a witness must hold in both layouts.
        other_layout = WitnessSearch(context, law, output, token_layouts(search.dims)[-1], search.graph)
        evidence = other_layout.search(options.weights) and evidence
    if evidence is not None:
        verdict: Verdict = "refuted"
        witness, deviation = search.witness(evidence), Deviation(float32=evidence.float32, float64=evidence.float64)
        where = search.first_violating_node(repaired, places.needed) or places.first_node
        if where is not None:
            witness = witness.model_copy(update={"first_violating_module": module_path(where)})
    else:
        verdict = "undecided"
        if context.graph_mismatch is not None:
            reason = context.graph_mismatch
        elif options.search_witness and repeatable:
            reason += "; no witness was found"
            if search.disagreeing and (program := other_program_in_float64(search)):
                reason = f"{program}: {reason}"
        reason += "" if repeatable else f"; {NOT_REPEATABLE}"
    assumptions: tuple[str, ...] = ()
    if evidence is not None:
        assumptions = search.evidence_assumptions(evidence)
    if witness is not None and search.context is not context:
        twin = f"the witness was found on a tiny twin with random weights: {search.context.subject.load_summary}"
        assumptions = (twin, *assumptions)
    finding = Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, expectation_met=is_met(verdict, expected),
        scope=Scope(
            length=context.token_count, weights=options.weights, assumptions=(*assumptions, *_other_model(strict))
        ),
        entries_complete=None if completion is None else completion.verdict == "proved", output=output,
        entries=places.entries, witness=witness, deviation=deviation, completion=completion, reason=reason,
        fix_source=places.line.source, fix_line=places.line.text,
        remedy=places.remedy.text, remedy_diff=places.remedy.diff,
    )  # fmt: skip
    return (
        with_implied_expectation(finding, law, places.masks, context.subject.model_kind)
        if options.states_nothing
        else finding
    )


def _other_model(strict: LawWalk | None) -> tuple[str, ...]:
    """The assumption that constants were made uniform, if they were."""
    text = uniform_text(strict.captured, strict.constants) if strict is not None else ""
    return (f"of another model: {text}",) if text else ()
