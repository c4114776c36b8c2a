"""One law on one subject: prove it, or find a witness, or say why neither could be done.

    capture -> check fidelity -> strict walk -> proved?   measure the deviation beside the proof
                                             -> otherwise search a witness; map where order enters;
                                                prove the graph with that order taken out
"""

from __future__ import annotations

import fnmatch
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor
from torch.fx import Node

from orderproof.audit.entries import group, origin_of, source_of
from orderproof.audit.examine import Examination
from orderproof.audit.leaks import leaks
from orderproof.audit.runs import Runs, Tokens
from orderproof.errors import UsageError
from orderproof.laws import Change, Law, TokenDim
from orderproof.prover.capture import Captured, module_path
from orderproof.prover.certificate import fingerprint, graph_steps, make
from orderproof.prover.constants import Constants
from orderproof.prover.interpret import Walk, interpret
from orderproof.prover.nodecheck import check_nodes
from orderproof.prover.refute import REAL, Evidence, Pair, search
from orderproof.prover.rewrite import can_be_uniform, make_uniform
from orderproof.prover.rule import Break
from orderproof.prover.run import difference
from orderproof.record import Completion, Deviation, Entry, Expectation, Finding, Proof, Scope, Step, Verdict, Witness

Weights = Literal["all", "these"]
REALS = "over the real numbers, for finite activations, at the exported shape"
ROUNDS = 3  # how often the map may be completed: a repaired constant can bring another to light


@dataclass(frozen=True)
class Options:
    """What a caller may ask for."""

    weights: Weights = "all"
    expect: Expectation | None = None
    uniform: tuple[str, ...] = ()  # entries to make uniform before proving, by origin or module (shell patterns)
    refute: bool = True


@dataclass
class Attempt:
    """A graph walked for one law."""

    law: Law
    captured: Captured
    constants: Constants
    walk: Walk


def attempt(exam: Examination, law: Law, captured: Captured, *, weights: Weights = "all", repairing: bool = False) -> Attempt:
    """Walk a graph for a law."""
    constants = Constants(
        captured.graph,
        captured.state,
        captured.values,
        parameters=captured.parameters,
        trust_parameters=weights == "these",
    )
    starts = {captured.start: 1} if captured.start is not None else dict(zip(captured.inputs, exam.subject.token_axes, strict=True))
    facts = {n: law.input_fact(tuple(int(s) for s in n.meta["val"].shape), axis) for n, axis in starts.items()}
    return Attempt(law, captured, constants, interpret(captured.graph, constants, facts, repairing=repairing))


def prove_law(exam: Examination, law: Law, options: Options = Options()) -> tuple[Finding, ...]:
    """The findings of one law: one for each output."""
    began = time.perf_counter()
    expected = options.expect or law.expected(exam.subject.kind)
    if exam.failure is not None:
        captured, strict = None, None
    else:
        captured = exam.captured
        if options.uniform:
            captured = _made_uniform(exam, law, captured, options.uniform)
        strict = attempt(exam, law, captured, weights=options.weights)
    repaired: Attempt | None = None
    results = []
    for name, dims in exam.output_dims.items():
        if law.family == "influence" and not dims:
            results.append(_blank(law, name, expected, exam, "not_applicable", "the output has no token dimension"))
            continue
        trial = _Trial(exam, law, name, dims, captured if options.uniform else None)
        if strict is not None and captured is not None:
            missing = law.shortfall(strict.walk.fact(captured.outputs[name]), dims, exam.tokens)
            if missing is None:
                results.append(_proved(exam, strict, name, trial, expected, options))
                continue
            if repaired is None and law.family == "permutation":
                repaired = attempt(exam, law, captured, weights=options.weights, repairing=True)
        else:
            missing = exam.failure or ""
        results.append(_unproved(exam, law, name, trial, strict, repaired, missing, expected, options))
    seconds = time.perf_counter() - began
    return tuple(f.model_copy(update={"seconds": seconds / len(results)}) for f in results)


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


def _proved(
    exam: Examination, done: Attempt, output: str, trial: _Trial, expected: Expectation, options: Options
) -> Finding:
    law, verdict, reason = done.law, "proved", ""
    consulted = tuple(sorted(done.walk.consulted))
    weights: Weights = "these" if any(done.constants.is_parameter(c) for c in consulted) else "all"
    deviation = trial.deviation()
    if exam.infidelity is not None:
        verdict, reason = "undecided", exam.infidelity
    elif deviation.float64 is not None and deviation.float64 > REAL:
        verdict = "undecided"
        reason = (
            f"a proof was found, but two runs differ by {deviation.float64:.2g} in float64: "
            "this is an error in the prover; please report it"
        )
    vacuous = verdict == "proved" and bool(trial.dims) and not trial.mixes()
    if vacuous:
        reason = "vacuous: no token's output depends on another token"
    return Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, met=is_met(verdict, expected),
        scope=scope(exam, done.walk, weights), entries_complete=True if law.family == "permutation" else None,
        vacuous=vacuous, output=output, deviation=deviation, reason=reason,
        proof=proof_of(done, output) if verdict == "proved" else None,
    )  # fmt: skip


def scope(exam: Examination, walk: Walk, weights: Weights) -> Scope:
    """What a proof covers."""
    assumptions = [REALS, *walk.assumptions]
    if exam.numbers is not exam:
        assumptions.append("the recorded branch is the one that runs: checked on a tiny twin, not at this size")
    return Scope(
        length=exam.tokens, weights=weights, consulted=tuple(sorted(walk.consulted)), assumptions=tuple(assumptions)
    )


def proof_of(done: Attempt, output: str) -> Proof:
    """The steps the output rests on."""
    needed = ancestors(done.captured.outputs[output])
    lines = []
    for node in done.captured.graph.nodes:
        lemma = done.walk.lemmas.get(node, "")
        if node not in needed or node.op != "call_function" or lemma in ("", "same_in_both_runs", "part_of_a_tuple"):
            continue
        fact = done.walk.facts[node]
        text = "; ".join(f.describe() for f in fact) if isinstance(fact, tuple) else fact.describe()
        lines.append(
            Step(
                node=node.name, operator=str(node.target), lemma=lemma, fact=text,
                module=module_path(node), source=source_of(node)[0],
            )  # fmt: skip
        )
    counts = Counter(line.lemma for line in lines)
    return Proof(
        steps=len(lines), lemmas=dict(counts.most_common()), lines=tuple(lines),
        fingerprint=fingerprint(graph_steps(done.captured, needed)),
    )  # fmt: skip


def ancestors(node: Node) -> set[Node]:
    """A node and everything it is computed from."""
    found, queue = {node}, [node]
    while queue:
        for n in queue.pop().all_input_nodes:
            if n not in found:
                found.add(n)
                queue.append(n)
    return found


def _unproved(
    exam: Examination, law: Law, output: str, trial: _Trial, strict: Attempt | None, repaired: Attempt | None,
    missing: str, expected: Expectation, options: Options,
) -> Finding:  # fmt: skip
    entries: tuple[Entry, ...] = ()
    complete: bool | None = None
    completion: Completion | None = None
    breaks: list[Break] = []
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
    if evidence is not None:
        verdict: Verdict = "refuted"
        witness, deviation = trial.witness(evidence), Deviation(float32=evidence.float32, float64=evidence.float64)
        where = trial.first_place(repaired, needed if strict is not None else set()) or (breaks[0].node if breaks else None)
        if where is not None:
            witness = witness.model_copy(update={"module": module_path(where)})
    else:
        verdict = "undecided"
        if exam.infidelity is not None:
            reason = exam.infidelity
        elif options.refute:
            reason += "; no witness was found"
    return Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, met=is_met(verdict, expected),
        scope=Scope(length=exam.tokens, weights=options.weights), entries_complete=complete, output=output,
        entries=entries, witness=witness, deviation=deviation, completion=completion, reason=reason,
    )  # fmt: skip


def _why(missing: str, breaks: list[Break], strict: Attempt | None) -> str:
    if strict is None or not breaks:
        return missing
    first = breaks[0]
    source, _ = source_of(first.node)
    place = ", ".join(x for x in (module_path(first.node), source) if x)
    return f"{first.node.target} ({place}): {first.reason}"


def complete_map(
    exam: Examination, law: Law, captured: Captured, output: str, dims: tuple[TokenDim, ...], breaks: list[Break], weights: Weights
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
                deviation = _Trial(exam, law, output, dims, captured).deviation()
            fine = deviation.float64 is None or deviation.float64 <= REAL
            return Completion(
                verdict="proved" if fine else "undecided", uniform=total, scope=scope(exam, strict.walk, covers),
                proof=proof_of(strict, output), deviation=deviation,
                reason="" if fine else "two runs contradict the proof: an error in the prover; please report it",
            )  # fmt: skip
        again = attempt(exam, law, captured, weights=weights, repairing=True)
        needed = ancestors(captured.outputs[output])
        current = [b for b in again.walk.breaks if b.node in needed]
    return Completion(verdict="undecided", uniform=total, scope=blank, reason="the map was not complete after three rounds")


def _made_uniform(exam: Examination, law: Law, captured: Captured, patterns: Iterable[str]) -> Captured:
    """The graph with the entries that match a pattern made uniform."""
    found = attempt(exam, law, captured, repairing=True)
    wanted = list(patterns)
    names = {b: (origin_of(b.operand, found.constants) if b.operand is not None else "is_causal", module_path(b.node)) for b in found.walk.breaks if can_be_uniform(b)}
    chosen = [b for b, both in names.items() if any(fnmatch.fnmatch(x, f"*{p}*") for p in wanted for x in both)]
    if not chosen:
        have = "; ".join(sorted({f"{o} in {m or 'the top module'}" for o, m in names.values()})) or "none"
        raise UsageError(f"expected --uniform to match an entry of {exam.subject.name}; entries are: {have}; got {', '.join(wanted)}")
    return make_uniform(captured, chosen)[0]


class _Trial:
    """Runs that try a law on one output."""

    def __init__(self, exam: Examination, law: Law, output: str, dims: tuple[TokenDim, ...], graph: Captured | None) -> None:
        self.law, self.output, self.dims = law, output, dims
        self.exam = exam if graph is not None else exam.numbers
        self.graph = graph
        self.weights = "given"
        self.runs = self._runs("given", 0)
        self._first: dict[tuple[int, bool], tuple[Tokens, Tokens, Tensor]] = {}

    def _runs(self, weights: str, seed: int) -> Runs:
        if self.graph is not None:
            return Runs(self.exam.subject, self.graph, by_graph=True, weights=weights, seed=seed)
        return self.exam.runs if weights == "given" else self.exam.random_runs(seed)

    def _tokens(self, length: int) -> tuple[Tokens, Tokens]:
        # A cut subject has its tokens behind the cut: `length` then counts them, and only one length exists.
        asked = self.exam.length if self.runs.one_length else length
        return self.runs.draw(asked, self.exam.seed + 1), self.runs.draw(asked, self.exam.seed + 2)

    def pair(self, length: int, change: Change, double: bool) -> Pair | None:
        """What the law asks of the second run, and what came."""
        try:
            if (length, double) not in self._first:
                tokens, others = self._tokens(length)
                self._first[length, double] = (tokens, others, self.runs.outputs(tokens.inputs, double=double)[self.output])
            tokens, others, before = self._first[length, double]
            changed = tuple(
                x if axis is None else change.apply(x, y, axis)
                for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True)
            )
            after = self.runs.outputs(changed, double=double)[self.output]
            return self.law.compare(before, after, self.dims, change)
        except (RuntimeError, ValueError, IndexError, TypeError, KeyError, AssertionError):
            return None
        except Exception as error:
            if type(error).__module__.startswith("orderproof"):
                return None
            raise

    def deviation(self) -> Deviation:
        """The largest difference over the law's generators or cases, in both precisions."""
        worst: dict[bool, float | None] = {False: None, True: None}
        for change, _, _ in self.law.cases(self.exam.tokens):
            for double in (False, True):
                made = self.pair(self.exam.tokens, change, double)
                if made is not None:
                    worst[double] = max(worst[double] or 0.0, difference(*made))
        return Deviation(float32=worst[False], float64=worst[True])

    def lengths(self) -> list[int]:
        """Lengths to try, shortest first."""
        return [self.exam.tokens] if self.runs.one_length else list(range(2, self.exam.tokens + 1))

    def search(self, weights: Weights) -> Evidence | None:
        """A witness with the weights given; failing that, and if the law is claimed for all, with others."""
        found = search(self.lengths(), self.law.changes, self.pair)
        seeds = (0, 1) if weights == "all" else ()
        for seed in seeds:
            if found is not None:
                break
            self.runs, self.weights, self._first = self._runs("random", seed), "random", {}
            found = search([self.exam.tokens], self.law.changes, self.pair)
        return found

    def witness(self, evidence: Evidence) -> Witness:
        """The record of a witness."""
        tokens, others, _ = self._first[evidence.length, True]
        change: Change = evidence.change
        return Witness(
            before=tokens.labels,
            after=change.labels(tokens.labels, tuple(f"{x}'" if x == y else y for x, y in zip(tokens.labels, others.labels, strict=True))),
            change=change.text,
            permutation=None if change.permutation is None else tuple(int(i) for i in change.permutation),
            output_index=evidence.index, expected=evidence.expected, found=evidence.found,
            difference=evidence.float64, weights="random" if self.weights == "random" else "given", seed=self.exam.seed,
        )  # fmt: skip

    def first_place(self, repaired: Attempt | None, needed: set[Node]) -> Node | None:
        """The first node whose value, in real runs, is not what the repairing walk claims."""
        if repaired is None or self.exam.numbers is not self.exam or self.runs.weights != "given":
            return None
        try:
            tokens, others = self._tokens(self.exam.tokens)
            for change, generator, case in self.law.cases(self.exam.tokens):
                for violation in self._violations(repaired, tokens, others, change, generator, case):
                    if violation in needed:
                        return violation
        except (RuntimeError, ValueError):
            return None
        return None

    def _violations(self, repaired: Attempt, tokens: Tokens, others: Tokens, change: Change, generator: int, case: int) -> Iterator[Node]:
        second = tuple(
            x if axis is None else change.apply(x, y, axis)
            for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True)
        )
        base = self.runs._base
        if self.exam.subject.cut:
            found = check_nodes(
                repaired.captured, repaired.walk.facts, base, base, generator=generator, case=case,
                starts=(tokens.inputs[0], second[0]),
            )  # fmt: skip
        else:
            found = check_nodes(
                repaired.captured, repaired.walk.facts, tokens.inputs, second, generator=generator, case=case
            )
        for violation in found:
            yield violation.node

    def mixes(self) -> bool:
        """Whether some token's output depends on another token."""
        length = self.exam.tokens
        dim = self.dims[0]
        try:
            tokens, others = self._tokens(length)
            before = self.runs.outputs(tokens.inputs)[self.output]
            for place in (0, length - 1):
                inputs = []
                for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True):
                    x = x.clone()
                    if axis is not None:
                        x.select(axis, place).copy_(y.select(axis, place))
                    inputs.append(x)
                after = self.runs.outputs(tuple(inputs))[self.output]
                kept = [dim.offset + i for i in range(length) if i != place]
                index = before.new_tensor(kept).long()
                if difference(before.index_select(dim.dim, index), after.index_select(dim.dim, index)) > 1e-7:
                    return True
        except (RuntimeError, ValueError):
            return True
        return False


def checked_nodes(exam: Examination, law: Law) -> str:
    """Hold every fact at every node against real runs, and say what came of it in one line."""
    there = exam.numbers
    done = attempt(there, law, there.captured)
    output, dims = next(iter(there.output_dims.items()))
    trial = _Trial(there, law, output, dims, None)
    tokens, others = trial._tokens(there.tokens)
    runs, bad = 0, []
    for change, generator, case in law.cases(there.tokens):
        runs += 1
        bad += [node.name for node in trial._violations(done, tokens, others, change, generator, case)]
    if bad:
        return f"node check: {len(bad)} facts contradicted, first at {bad[0]}: an error in the prover; please report it"
    return f"node check: the facts of {len(done.walk.facts)} nodes hold in {runs} pairs of float64 runs"


def certificate(exam: Examination, law: Law, output: str, *, weights: Weights = "all", uniform: tuple[str, ...] = (), completed: bool = False) -> dict[str, Any] | None:
    """The certificate of a proved law about one output; None where it is not proved.

    `completed`: of the graph with the constants of the entry map made uniform.
    """
    captured = exam.captured
    if uniform:
        captured = _made_uniform(exam, law, captured, uniform)
    for _ in range(ROUNDS if completed else 0):
        again = attempt(exam, law, captured, weights=weights, repairing=True)
        needed = ancestors(captured.outputs[output])
        breaks = [b for b in again.walk.breaks if b.node in needed]
        if not breaks:
            break
        captured, _count = make_uniform(captured, breaks)
    done = attempt(exam, law, captured, weights=weights)
    dims = exam.output_dims[output]
    if law.shortfall(done.walk.fact(captured.outputs[output]), dims, exam.tokens) is not None:
        return None
    starts = {captured.start: 1} if captured.start is not None else dict(zip(captured.inputs, exam.subject.token_axes, strict=True))
    return make(
        captured, done.walk, law=law.name, code=law.code, family=law.family, relation=law.relation(exam.tokens),
        output=output, dims=[(t.dim, t.offset) for t in dims], inputs=starts, subject=exam.subject.name,
        weights=weights, needed=ancestors(captured.outputs[output]),
    )  # fmt: skip
