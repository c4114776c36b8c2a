"""One law on one subject: prove it, or find a witness, or say why neither could be done.

capture -> check fidelity -> strict walk -> proved?   measure the deviation beside the proof
                                         -> otherwise search a witness; map where order enters;
                                            prove the graph with that order taken out
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch.fx import Node

from orderproof.auditing.attempt import Attempt, Weights, ancestors, attempt, proof_of, scope
from orderproof.auditing.completion import complete_map, made_uniform
from orderproof.auditing.entries import group, source_of
from orderproof.auditing.examine import Examination
from orderproof.auditing.leaks import leaks
from orderproof.auditing.lengths import every_length
from orderproof.auditing.trials import Trial
from orderproof.laws import Law, TokenDim
from orderproof.prover.capture import module_path
from orderproof.prover.refute import REAL, SINGLE
from orderproof.prover.rule import Break
from orderproof.record import Completion, Deviation, Entry, Expectation, Finding, Scope, Verdict
from orderproof.subjects.settings import PLAIN


@dataclass(frozen=True)
class Options:
    """What a caller may ask for."""

    weights: Weights = "all"
    expect: Expectation | None = None
    uniform: tuple[str, ...] = ()  # entries to make uniform before proving, by origin or module (shell patterns)
    refute: bool = True


def prove_law(exam: Examination, law: Law, options: Options = Options()) -> tuple[Finding, ...]:
    """The findings of one law: one for each output, in each way of calling the subject that the law asks about."""
    if exam.subject.rows_only and not law.whole_rows:
        expected = options.expect or law.expected(exam.subject.kind)
        return (_blank(law, "", expected, exam, "not_applicable", exam.subject.rows_only),)
    results: list[Finding] = []
    settings = [s for s in law.settings if not isinstance(exam.called(s), str)] or law.settings[:1]
    for setting in settings:
        began = time.perf_counter()
        there = exam.called(setting)
        # With entries made uniform it is no longer the model whose kind says what to expect.
        expected = options.expect or ("any" if options.uniform else law.expected(exam.subject.kind))
        if isinstance(there, str):
            found = [_blank(law, "", expected, exam, "not_applicable", there)]
        else:
            there = there.asked(law)
            parts = [_prove_part(there, part, expected, options) for part in law.relations(there.rows)]
            found = [_joined(each) for each in zip(*parts, strict=True)]
        update = {"seconds": (time.perf_counter() - began) / len(found), "setting": "" if setting == PLAIN else setting}
        results += [_remedied(f.model_copy(update=update), law) for f in found]
    return tuple(results)


def _remedied(finding: Finding, law: Law) -> Finding:
    """The finding with what to do, where it is decided and not what is expected."""
    remedy = None if finding.met or finding.verdict == "undecided" else law.remedies.get(finding.expected)
    return finding if remedy is None else finding.model_copy(update={"fix": remedy.text, "diff": remedy.diff})


def _joined(findings: Sequence[Finding]) -> Finding:
    """The finding of a law of several relations: proved if each is, else the worst of them."""
    worst = min(findings, key=lambda f: ("refuted", "undecided", "not_applicable", "proved").index(f.verdict))
    if len(findings) == 1 or worst.verdict != "proved":
        return worst
    reason = worst.reason or f"{len(findings)} relations, a walk for each"
    deviation = Deviation(
        float32=_largest(f.deviation.float32 for f in findings), float64=_largest(f.deviation.float64 for f in findings)
    )
    return worst.model_copy(update={"reason": reason, "deviation": deviation, "scope": _joint(findings)})


def _largest(sizes: Iterable[float | None]) -> float | None:
    return max((size for size in sizes if size is not None), default=None)


def _joint(findings: Sequence[Finding]) -> Scope:
    """What all of the proofs cover: everything that any of them rests on."""
    scopes = [f.scope for f in findings]
    every = all(s.lengths == "every" for s in scopes)
    # "At every length" is said of the whole only where it is said of each.
    least = next(s for s in scopes if every or s.lengths == "this")
    others = (text for s in scopes for text in s.assumptions[1:])
    return least.model_copy(
        update={
            "weights": "these" if any(s.weights == "these" for s in scopes) else "all",
            "consulted": tuple(sorted({name for s in scopes for name in s.consulted})),
            "assumptions": tuple(dict.fromkeys((*least.assumptions, *others))),
        }
    )


def _prove_part(exam: Examination, law: Law, expected: Expectation, options: Options) -> list[Finding]:
    """The findings of one relation: one for each output."""
    if exam.failure is not None and exam.subject.cut is not None:
        # Tokens are made in the middle of the graph: without one there is nothing to change.
        return [_blank(law, "", expected, exam, "undecided", exam.failure)]
    if exam.failure is not None:
        captured, strict = None, None
    else:
        captured = exam.captured
        if options.uniform:
            captured = made_uniform(exam, law, captured, options.uniform)
        strict = attempt(exam, law, captured, weights=options.weights)
    repaired: Attempt | None = None
    results = []
    for name, grown in exam.output_dims.items():
        not_asked = law.not_asked(grown)
        if not_asked is None and not list(law.changes(exam.tokens, exam.rows)):
            not_asked = f"there is nothing to replace in a batch of {exam.rows} with {exam.tokens} tokens"
        if not_asked is not None:
            results.append(_blank(law, name, expected, exam, "not_applicable", not_asked))
            continue
        if any(t.offset < 0 for t in grown):
            why = "the output has fewer entries than there are tokens: which token each belongs to is not known"
            results.append(_blank(law, name, expected, exam, "undecided", why))
            continue
        dims, missing = grown, exam.failure or ""
        if strict is not None:
            dims, missing = _best_reading(strict, name, grown, exam)
        trial = Trial(exam, law, name, dims, captured if options.uniform else None)
        if strict is not None and not missing:
            results.append(_proved(exam, strict, name, trial, expected))
            continue
        if strict is not None and repaired is None and law.family == "permutation":
            repaired = attempt(exam, law, strict.captured, weights=options.weights, repairing=True)
        results.append(_unproved(exam, law, name, trial, strict, repaired, missing, expected, options))
    return results


def _blank(law: Law, output: str, expected: Expectation, exam: Examination, verdict: Verdict, reason: str) -> Finding:
    return Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, met=is_met(verdict, expected),
        scope=Scope(length=exam.tokens), output=output, reason=reason,
    )  # fmt: skip


def is_met(verdict: Verdict, expected: Expectation) -> bool:
    """Whether a verdict is what was expected."""
    if expected == "any" or verdict == "not_applicable":
        return True
    return verdict in (("proved", "held") if expected == "holds" else ("refuted",))


def _proved(exam: Examination, done: Attempt, output: str, trial: Trial, expected: Expectation) -> Finding:
    law, reason = done.law, ""
    verdict: Verdict = "proved"
    consulted = tuple(sorted(done.walk.consulted))
    weights: Weights = "these" if any(done.constants.is_parameter(c) for c in consulted) else "all"
    deviation = trial.deviation()
    if exam.infidelity is not None:
        verdict, reason = "undecided", exam.infidelity
    elif contradicted(deviation):
        verdict = "undecided"
        seen = deviation.float64 if deviation.float64 is not None else deviation.float32
        reason = (
            f"a proof was found, but two runs differ by {seen:.2g}: this is an error in the prover; please report it"
        )
    every = verdict == "proved" and every_length(exam, done, output)
    vacuous = verdict == "proved" and law.needs_mixing and bool(trial.dims) and not trial.mixes()
    if vacuous:
        reason = "vacuous: no token's output depends on another token"
    return Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, met=is_met(verdict, expected),
        scope=scope(exam, done.walk, weights, every=every),
        entries_complete=True if law.family == "permutation" else None,
        vacuous=vacuous, output=output, deviation=deviation, reason=reason,
        proof=proof_of(done, output) if verdict == "proved" else None,
    )  # fmt: skip


def _best_reading(
    done: Attempt, output: str, dims: tuple[TokenDim, ...], exam: Examination
) -> tuple[tuple[TokenDim, ...], str]:
    """The reading of an output under which the law is proved, or else the first one and what it lacks.

    Whether entries beside the tokens stand before them or behind is not known. That an output is permuted in one
    of these ways is a fact, whichever it is; that an entry does not see what it must not depends on which token it
    belongs to, and must hold for both.
    """
    fact = done.walk.fact(done.captured.outputs[output])
    missing = {r: done.law.shortfall(fact, r, exam.tokens, exam.rows) for r in placements(dims)}
    held = [reading for reading, lack in missing.items() if lack is None]
    if held and (done.law.family == "permutation" or len(held) == len(missing)):
        return held[0], ""
    return dims, missing[dims] or next(lack for lack in missing.values() if lack is not None)


def placements(dims: tuple[TokenDim, ...]) -> list[tuple[TokenDim, ...]]:
    """The readings of an output longer than its tokens: the other entries before them, or behind."""
    return list(dict.fromkeys([dims, tuple(TokenDim(t.dim) for t in dims)]))


def contradicted(deviation: Deviation) -> bool:
    """Whether the runs beside a proof differ by more than arithmetic allows."""
    if deviation.float64 is not None:
        return deviation.float64 > REAL
    return deviation.float32 is not None and deviation.float32 > SINGLE


def _unproved(
    exam: Examination, law: Law, output: str, trial: Trial, strict: Attempt | None, repaired: Attempt | None,
    missing: str, expected: Expectation, options: Options,
) -> Finding:  # fmt: skip
    entries: tuple[Entry, ...] = ()
    complete: bool | None = None
    completion: Completion | None = None
    breaks: list[Break] = []
    needed: set[Node] = set()
    if strict is not None:
        needed = ancestors(strict.captured.outputs[output])
        if repaired is not None:
            breaks = [b for b in repaired.walk.breaks if b.node in needed]
            entries = group(breaks, repaired.constants)
            if law.name == "order_blind":
                completion = complete_map(exam, law, strict.captured, output, trial.dims, breaks, options.weights)
                complete = completion.verdict == "proved"
        else:
            breaks = leaks(strict, needed, exam)
            entries = group(breaks, strict.constants)
    witness, deviation = None, Deviation()
    evidence = trial.search(options.weights) if options.refute else None
    reason = _why(missing, breaks, strict)
    if evidence is not None and any(t.offset for t in trial.dims):
        # Entries beside the tokens may stand before or behind them; only a witness under both readings is one.
        behind = Trial(exam, law, output, placements(trial.dims)[-1], trial.graph)
        evidence = behind.search(options.weights) and evidence
    if evidence is not None:
        verdict: Verdict = "refuted"
        witness, deviation = trial.witness(evidence), Deviation(float32=evidence.float32, float64=evidence.float64)
        where = trial.first_place(repaired, needed) or (breaks[0].node if breaks else None)
        if where is not None:
            witness = witness.model_copy(update={"module": module_path(where)})
    else:
        verdict = "undecided"
        if exam.infidelity is not None:
            reason = exam.infidelity
        elif options.refute:
            reason += "; no witness was found"
    assumptions: tuple[str, ...] = ()
    if witness is not None and trial.exam is not exam:
        assumptions = (f"the witness was found on a tiny twin with random weights: {trial.exam.subject.detail}",)
    return Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, met=is_met(verdict, expected),
        scope=Scope(length=exam.tokens, weights=options.weights, assumptions=assumptions),
        entries_complete=complete, output=output,
        entries=entries, witness=witness, deviation=deviation, completion=completion, reason=reason,
    )  # fmt: skip


def _why(missing: str, breaks: list[Break], strict: Attempt | None) -> str:
    if strict is None or not breaks:
        return missing
    first = breaks[0]
    source, _ = source_of(first.node)
    place = ", ".join(x for x in (module_path(first.node), source) if x)
    return f"{first.node.target} ({place}): {first.reason}"
