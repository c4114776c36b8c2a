"""Is an entry map complete? The graph with its constants made uniform, proved and run; and certificates."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Any

from orderproof.auditing.attempt import Weights, ancestors, attempt, proof_of, scope, starts_of
from orderproof.auditing.entries import origin_of, source_of
from orderproof.auditing.examine import Examination
from orderproof.auditing.trials import Trial
from orderproof.errors import UsageError
from orderproof.laws import Law, TokenDim
from orderproof.prover.capture import Captured, module_path
from orderproof.prover.certificate import make
from orderproof.prover.refute import REAL
from orderproof.prover.rewrite import can_be_uniform, make_uniform
from orderproof.prover.rule import Break
from orderproof.record import Completion, Deviation, Scope

ROUNDS = 3  # how often the map may be completed: a repaired constant can bring another to light


def complete_map(
    exam: Examination,
    law: Law,
    captured: Captured,
    output: str,
    dims: tuple[TokenDim, ...],
    breaks: list[Break],
    weights: Weights,
) -> Completion:
    """Prove the graph with the constants at these breaks made uniform, and run it."""
    total = 0
    blank = Scope(length=exam.tokens, weights=weights)
    current = breaks
    for _ in range(ROUNDS):
        stuck = [b for b in current if not can_be_uniform(b)]
        if stuck or not current:
            source, _text = source_of(stuck[0].node) if stuck else ("", "")
            reason = (
                f"order enters through an operator, {stuck[0].node.target} ({source}): {stuck[0].reason}"
                if stuck
                else "nothing left to make uniform, and the law is still not proved"
            )
            return Completion(verdict="undecided", uniform=total, scope=blank, reason=reason)
        captured, count = make_uniform(captured, current)
        total += count
        strict = attempt(exam, law, captured, weights=weights)
        missing = law.shortfall(strict.walk.fact(captured.outputs[output]), dims, exam.tokens)
        if missing is None:
            consulted = strict.walk.consulted
            covers: Weights = "these" if any(strict.constants.is_parameter(c) for c in consulted) else "all"
            deviation = Deviation()
            if exam.numbers is exam:
                deviation = Trial(exam, law, output, dims, captured).deviation()
            fine = deviation.float64 is None or deviation.float64 <= REAL
            return Completion(
                verdict="proved" if fine else "undecided", uniform=total, scope=scope(exam, strict.walk, covers),
                proof=proof_of(strict, output), deviation=deviation,
                reason="" if fine else "two runs contradict the proof: an error in the prover; please report it",
            )  # fmt: skip
        again = attempt(exam, law, captured, weights=weights, repairing=True)
        needed = ancestors(captured.outputs[output])
        current = [b for b in again.walk.breaks if b.node in needed]
    return Completion(
        verdict="undecided", uniform=total, scope=blank, reason="the map was not complete after three rounds"
    )


def made_uniform(exam: Examination, law: Law, captured: Captured, patterns: Iterable[str]) -> Captured:
    """The graph with the entries that match a pattern made uniform."""
    found = attempt(exam, law, captured, repairing=True)
    wanted = list(patterns)
    names = {
        b: (origin_of(b.operand, found.constants) if b.operand is not None else "is_causal", module_path(b.node))
        for b in found.walk.breaks
        if can_be_uniform(b)
    }
    chosen = [b for b, both in names.items() if any(fnmatch.fnmatch(x, f"*{p}*") for p in wanted for x in both)]
    if not chosen:
        have = "; ".join(sorted({f"{o} in {m or 'the top module'}" for o, m in names.values()})) or "none"
        raise UsageError(
            f"expected --uniform to match an entry of {exam.subject.name}; entries are: {have}; got {', '.join(wanted)}"
        )
    return make_uniform(captured, chosen)[0]


def certificate(
    exam: Examination,
    law: Law,
    output: str,
    *,
    weights: Weights = "all",
    uniform: tuple[str, ...] = (),
    completed: bool = False,
) -> dict[str, Any] | None:
    """The certificate of a proved law about one output; None where it is not proved.

    `completed`: of the graph with the constants of the entry map made uniform.
    """
    captured = exam.captured
    if uniform:
        captured = made_uniform(exam, law, captured, uniform)
    for _ in range(ROUNDS if completed else 0):
        again = attempt(exam, law, captured, weights=weights, repairing=True)
        needed = ancestors(captured.outputs[output])
        breaks = [b for b in again.walk.breaks if b.node in needed]
        if not breaks:
            break
        captured, _count = make_uniform(captured, breaks)
    done = attempt(exam, law, captured, weights=weights)
    dims = exam.output_dims[output]
    if law.shortfall(done.walk.fact(captured.outputs[output]), dims, exam.tokens, exam.rows) is not None:
        return None
    return make(
        captured, done.walk, law=law.name, code=law.code, family=law.family,
        relation=law.relation(exam.tokens, exam.rows), output=output, dims=[(t.dim, t.offset) for t in dims],
        inputs=starts_of(exam, captured), subject=exam.subject.name,
        weights=weights, needed=ancestors(captured.outputs[output]),
    )  # fmt: skip
