"""Runs that try a law on one output: the deviation beside a proof, the search for a witness, the first place."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.auditing.attempt import Attempt, Weights, attempt
from orderproof.auditing.examine import Examination
from orderproof.auditing.runs import Runs, Tokens
from orderproof.laws import Change, Law, TokenDim
from orderproof.prover.capture import Captured
from orderproof.prover.nodecheck import check_nodes
from orderproof.prover.refute import Evidence, Pair, search
from orderproof.prover.run import difference
from orderproof.record import Deviation, Witness

LONGEST = 14  # every length below this is tried for a witness; past it only the one that was asked for


class Trial:
    """Runs that try a law on one output."""

    def __init__(
        self, exam: Examination, law: Law, output: str, dims: tuple[TokenDim, ...], graph: Captured | None
    ) -> None:
        self.law, self.output, self.dims = law, output, dims
        self.exam = exam if graph is not None else exam.numbers
        self.graph = graph
        self.weights = "given"
        self.padded = False  # whether what is replaced becomes the pad token itself
        self.runs = self._runs("given", 0)
        self._first: dict[tuple[int, bool], tuple[Tokens, Tokens, Tensor]] = {}

    def _runs(self, weights: str, seed: int) -> Runs:
        if self.graph is not None:
            return Runs(self.exam.subject, self.graph, by_graph=True, weights=weights, seed=seed)
        return self.exam.runs if weights == "given" else self.exam.random_runs(seed)

    def tokens(self, length: int) -> tuple[Tokens, Tokens]:
        """Tokens to start from, and others to replace them with."""
        # A cut subject has its tokens behind the cut: `length` then counts them, and only one length exists.
        asked = self.exam.length if self.runs.one_length else length
        tokens, others = self.runs.draw(asked, self.exam.seed + 1), self.runs.draw(asked, self.exam.seed + 2)
        if self.padded:  # its number, or the vector of zeros that tables hold for it
            first = others.inputs[0]
            pad = 0 if first.is_floating_point() else self.exam.subject.padding or 0
            others = Tokens((torch.full_like(first, pad),), ("<pad>",) * len(others.labels))
        return tokens, others

    def pair(self, length: int, change: Change, *, double: bool) -> Pair | None:
        """What the law asks of the second run, and what came."""
        try:
            if (length, double) not in self._first:
                tokens, others = self.tokens(length)
                self._first[length, double] = (
                    tokens,
                    others,
                    self.runs.outputs(tokens.inputs, double=double)[self.output],
                )
            tokens, others, before = self._first[length, double]
            changed = tuple(
                x if axis is None else change.apply(x, y, axis)
                for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True)
            )
            after = self.runs.outputs(changed, double=double)[self.output]
            return self.law.compare(before, after, self.dims, change)
        except Exception:  # noqa: BLE001 - the model is not ours: it does not run at this length, for any reason
            return None

    def deviation(self) -> Deviation:
        """The largest difference over the law's generators or cases, in both precisions."""
        worst: dict[bool, float | None] = {False: None, True: None}
        for change, _, _ in self.law.cases(self.exam.tokens, self.exam.rows):
            for double in (False, True):
                made = self.pair(self.exam.tokens, change, double=double)
                if made is not None:
                    worst[double] = max(worst[double] or 0.0, difference(*made))
        return Deviation(float32=worst[False], float64=worst[True])

    def lengths(self) -> list[int]:
        """Lengths to try, shortest first."""
        tokens = self.exam.tokens
        return [tokens] if self.runs.one_length else [*range(2, min(tokens, LONGEST)), tokens]

    def search(self, weights: Weights) -> Evidence | None:
        """A witness with the weights given; failing that, and if the law is claimed for all, with others."""
        found = search(self.lengths(), self._changes, self.pair)
        if found is None and self._may_pad():
            self.padded, self._first = True, {}
            found = search(self.lengths(), self._changes, self.pair)
            self.padded = found is not None
        seeds = (0, 1) if weights == "all" else ()
        for seed in seeds:
            if found is not None:
                break
            self.runs, self.weights, self._first = self._runs("random", seed), "random", {}
            found = search([self.exam.tokens], self._changes, self.pair)
        return found

    def _may_pad(self) -> bool:
        """Whether pads are asked about, and there is a pad token to put there, which is drawn for no other slot."""
        subject = self.exam.subject
        if self.law.name != "padding" or len(self.runs.axes) != 1:
            return False
        return subject.padding is not None or self.tokens(self.exam.tokens)[0].inputs[0].is_floating_point()

    def _changes(self, length: int) -> Iterator[Change]:
        return self.law.changes(length, self.exam.rows)

    def witness(self, evidence: Evidence) -> Witness:
        """The record of a witness."""
        tokens, others, _ = self._first[evidence.length, True]
        change: Change = evidence.change
        fresh = tuple(f"{y}'" if x == y else y for x, y in zip(tokens.labels, others.labels, strict=True))
        return Witness(
            before=tokens.labels,
            after=change.labels(tokens.labels, fresh),
            change=change.text,
            permutation=None if change.permutation is None else tuple(int(i) for i in change.permutation),
            output_index=self.law.place(evidence.index, self.dims, len(tokens.labels), self._shape(evidence)),
            expected=evidence.expected,
            found=evidence.found,
            difference=evidence.float64,
            weights="random" if self.weights == "random" else "given",
            seed=self.exam.seed,
        )

    def _shape(self, evidence: Evidence) -> tuple[int, ...]:
        before = self._first[evidence.length, True][2]
        return tuple(before.shape)

    def first_place(self, repaired: Attempt | None, needed: set[Node]) -> Node | None:
        """The first node whose value, in real runs, is not what the repairing walk claims."""
        if repaired is None or self.runs.weights != "given":
            return None
        if repaired.captured is not (self.graph or self.exam.captured):
            return None  # a graph without weights: the witness was found on its tiny twin
        try:
            tokens, others = self.tokens(self.exam.tokens)
            for change, generator, case in self.law.cases(self.exam.tokens, self.exam.rows):
                for violation in self.violations(repaired, tokens, others, change, generator, case):
                    if violation in needed:
                        return violation
        except (RuntimeError, ValueError):
            return None
        return None

    def violations(
        self, repaired: Attempt, tokens: Tokens, others: Tokens, change: Change, generator: int, case: int
    ) -> Iterator[Node]:
        """The nodes whose value, in these two runs, is not what the walk claims."""
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
            tokens, others = self.tokens(length)
            before = self.runs.outputs(tokens.inputs)[self.output]
            for place in (0, length - 1):
                inputs = []
                for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True):
                    changed = x.clone()
                    if isinstance(axis, int):
                        changed.select(axis, place).copy_(y.select(axis, place))
                    inputs.append(changed)
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
    there = exam.asked(law).numbers
    done = attempt(there, law, there.captured)
    output, dims = next(iter(there.output_dims.items()))
    trial = Trial(there, law, output, dims, None)
    tokens, others = trial.tokens(there.tokens)
    runs, bad = 0, []
    for change, generator, case in law.cases(there.tokens, there.rows):
        runs += 1
        bad += [node.name for node in trial.violations(done, tokens, others, change, generator, case)]
    if bad:
        return f"node check: {len(bad)} facts contradicted, first at {bad[0]}: an error in the prover; please report it"
    return f"node check: the facts of {len(done.walk.facts)} nodes hold in {runs} pairs of float64 runs"
