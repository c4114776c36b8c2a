"""The search for a witness: two runs whose outputs violate a law for one output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from orderproof.auditing.record.law_walk import Weights
from orderproof.auditing.search.call_variants import weight_count
from orderproof.auditing.search.law_runs import LawRuns
from orderproof.auditing.search.replacements import (
    Replacement,
    compared_values,
    large_numbers,
    pad_tokens,
    rare_values,
    values_of_branches,
)
from orderproof.auditing.search.row_runs import differing_changes
from orderproof.diagnosis.counterexample import Counterexample, find_counterexample
from orderproof.diagnosis.tolerances import ROUNDING_FACTOR
from orderproof.laws import InputChange
from orderproof.laws.proved.proved_law import evenly_spaced
from orderproof.laws.proved.replacement_law import ReplacementLaw
from orderproof.records.audit import Witness

COMPARED_CHANGES = 4  # at a length at which nothing is proved
FEWER_CHANGES = 2  # at a length at which a theorem holds, and at a long one: the first and the last change
LONG = 100  # [tokens]
MIN_CHANGES = 16  # of all changes at a length, however much work they are
MOST_WORK = 5e8  # tokens times weights in matrices, of all changes at a length; every cut of a tiny model at 64 tokens
MOST_RUNS = 64  # where rows cannot be added
MOST_REPEATED = 4  # changes that differ in one call, each repeated as a pair of runs
MAX_SEARCH_LENGTH = 14  # [tokens] all shorter lengths are tried for a witness, and the length of the audit
MANY_TIMES, MAX_LONGER = 4, 64  # [tokens]
Changes = Callable[[int], Iterable[InputChange]]


class WitnessSearch(LawRuns):
    """Runs in which a law may be violated, the smallest first."""

    def lengths(self) -> list[int]:
        """The lengths to try, shortest first."""
        tokens = self.context.token_count
        has_one = self.runs.has_fixed_length or self.context.whole_rows_only
        return [tokens] if has_one else [*range(2, min(tokens, MAX_SEARCH_LENGTH)), tokens]

    def _longer(self) -> list[int]:
        """A length at which what is rare with few tokens happens, as that an expert has more than it takes."""
        longer = MANY_TIMES * self.context.token_count
        fixed = self.runs.has_fixed_length or self.context.whole_rows_only
        return [] if fixed or longer > MAX_LONGER else [longer]

    def search(self, weights: Weights) -> Counterexample | None:
        """A counterexample with the given weights; for `all` weights, else one with random weights."""
        found = (
            self._search(self.lengths())
            or self._search_every_change()
            or self._search_with_replacements(self._pad_tokens(), self.lengths())
            or self.search_other_branches()
            or self._search_with_replacements(self._rare_values(), self.lengths())
            or self._search_with_replacements(self._large_numbers(), [self.context.token_count])
            or self._search(self._longer())
        )
        seeds = (0, 1) if weights == "all" else ()
        for seed in seeds:
            if found is not None:
                break
            self.note_float64_failure()
            self.runs, self.weights = self._runs("random", seed), "random"
            self.forget_runs()
            found = self._search([self.context.token_count])
        self.note_float64_failure()
        return found

    def _search(self, lengths: list[int], changes: Changes | None = None) -> Counterexample | None:
        """A counterexample in float64, else one in the dtype of a model that does not run in float64."""
        found = find_counterexample(lengths, changes or self._changes, self)
        if found is None and (self.runs.copy_failure or self.runs.float64_failure):
            found = find_counterexample(lengths, changes or self._changes, self, own_dtype=True)
        return found

    def _search_every_change(self) -> Counterexample | None:
        """A counterexample at the length of the audit among all changes, if `_changes` leaves some out."""
        length = self.context.token_count
        more = self._differing_changes(length, tried=len(list(self._changes(length))))
        return self._search([length], lambda _: more) if more else None

    def _differing_changes(self, length: int, tried: int) -> list[InputChange]:
        """The changes that differ most in calls with many of them; none if no more than `tried` are to be made."""
        every = list(self.law.every_change(length, self.context.batch_size))
        if len(every) <= tried:
            return []
        most = max(MIN_CHANGES, int(MOST_WORK / (length * weight_count(self.runs.subject))))
        some = [every[k] for k in evenly_spaced(len(every), most)]
        found = differing_changes(self, length, some)
        # Without rows each change is a run of its own.
        return [some[k] for k in evenly_spaced(len(some), MOST_RUNS)] if found is None else found[:MOST_REPEATED]

    def _search_with_replacements(
        self, replacements: Iterable[Replacement], lengths: list[int]
    ) -> Counterexample | None:
        for replacement in replacements:
            self.replacement = replacement
            self.forget_runs()
            if (found := self._search(lengths)) is not None:
                return found
        self.replacement = None
        return None

    def search_other_branches(self) -> Counterexample | None:
        """A counterexample in which the runs take different branches, if the recording took one.

        Each run starts in the same state: a path that was not recorded may leave another one.
        """
        before, self.runs = self.runs, replace(self.runs, restores_state=True)
        found = self._search_with_replacements(self._values_of_branches(), [self.context.token_count])
        if found is None:
            self.runs = before
        return found

    def _pad_tokens(self) -> Iterator[Replacement]:
        """The pad token, if the law tries it and there is one."""
        if self.law.can_replace_with_pad and len(self.runs.axes) == 1:
            tokens = self.tokens(self.context.token_count)[0].inputs[0]
            yield from pad_tokens(tokens, self.context.subject.pad_token_id)

    def _large_numbers(self) -> Iterator[Replacement]:
        """Large numbers, if the law replaces tokens that are vectors."""
        if isinstance(self.law, ReplacementLaw) and len(self.runs.axes) == 1:
            yield from large_numbers(self.tokens(self.context.token_count)[0].inputs[0])

    def _values_of_branches(self) -> Iterator[Replacement]:
        """Values that decide the branches of the recording; none if it took none."""
        captured = self.context.captured if self.context.export_failure is None else None
        if captured is not None and captured.branch_values:
            sample = self.runs.sample_tokens(self.context.token_count, self.context.seed + 1).inputs
            yield from values_of_branches(captured.branch_values, sample, self.runs.axes)

    def _rare_values(self) -> Iterator[Replacement]:
        """Values that the recording compares tokens with; none if it has no such comparison."""
        captured = self.context.captured if self.context.export_failure is None else None
        if captured is not None and (values := compared_values(captured)):
            tokens, others = self.tokens(self.context.token_count)
            yield from rare_values(values, tokens.inputs, others.inputs, self.runs.axes)

    def compare_at(self, length: int, count: int, *, every: bool = False) -> bool | None:
        """True if the runs of `count` changes at a length agree, False if some do not, None if none can be made.

        ``every``: also of those that differ among all changes.
        """
        changes = list(self._changes(length))
        few = [changes[k] for k in evenly_spaced(len(changes), count)] if changes else []
        few += self._differing_changes(length, tried=count) if every else []
        return self.agree(length, few)

    def is_repeatable(self, evidence: Counterexample) -> bool:
        """True if two runs on the unchanged inputs of a counterexample agree: no state or chance makes it differ.

        A copy of a large model in float64 is run with matrices of low rank: chance does not depend on the weights.
        """
        of_copy = evidence.executor == "float64 copy" and self.weights == "given"
        ways = ([self.stand_in] if of_copy and self.stand_in is not None else []) + [self]
        return self.graph is not None or any(
            way.repeats(evidence.length, evidence.executor, evidence.noise) for way in ways
        )

    def _changes(self, length: int) -> Iterator[InputChange]:
        return self.law.input_changes(length, self.context.batch_size)

    def witness(self, evidence: Counterexample) -> Witness:
        """The record of a counterexample."""
        tokens, others, before = self._first[evidence.length, evidence.executor]
        change: InputChange = evidence.change
        changed = tuple(f"{y}'" if x == y else y for x, y in zip(tokens.labels, others.labels, strict=True))
        return Witness(
            tokens_before=tokens.labels,
            tokens_after=change.labels(tokens.labels, changed),
            change=change.description,
            permutation=None if change.permutation is None else tuple(int(i) for i in change.permutation),
            output_index=self.law.output_index(evidence.index, self.dims, len(tokens.labels), tuple(before.shape)),
            expected_value=evidence.expected,
            actual_value=evidence.found,
            relative_difference=evidence.float32 if evidence.float64 is None else evidence.float64,
            weights="random" if self.weights == "random" else "given",
            seed=self.context.seed,
        )

    def evidence_assumptions(self, evidence: Counterexample) -> tuple[str, ...]:
        """The runs that a witness is of, if these are not of a float64 copy of the module."""
        own = self.weights == "random" and self.runs.run_graph and self.graph is None
        if own:
            return ("the witness is of the recorded graph with random weights: the module cannot be copied",)
        if evidence.executor == "model":
            times = math.floor(evidence.float32 / evidence.noise)
            return (f"the witness is in the model's own dtype: it differs by {times:,} times its rounding error",)
        if evidence.executor == "float64 copy" or self.runs.runs_graph:
            return ()
        noise = self.noise(evidence.length, evidence.change, "model", evidence.float32)
        if evidence.float32 > ROUNDING_FACTOR * noise:
            times = math.floor(evidence.float32 / noise)
            confirmed = f"the module itself differs by {times:,} times its rounding error"
        else:
            confirmed = f"the module itself differs by {evidence.float32:.1g}, which its rounding error could explain"
        return (f"the witness is of the recorded graph in float64; {confirmed}",)
