"""Runs of a law for one output: the deviation of a proved relation, the search for a witness, and where it starts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.execution import ExecutorUnavailable, LabelledInputs, SubjectExecution
from orderproof.auditing.record.law_walk import LawWalk, Weights, walk_graph
from orderproof.auditing.search.replacements import (
    Replacement,
    compared_values,
    pad_tokens,
    rare_values,
    values_of_branches,
)
from orderproof.diagnosis.counterexample import (
    FLOAT64_EXECUTORS,
    Counterexample,
    Executor,
    OutputPair,
    find_counterexample,
)
from orderproof.diagnosis.node_check import check_nodes
from orderproof.diagnosis.rounding_noise import epsilon, rounding_noise
from orderproof.diagnosis.tolerances import FLOAT32_DIFFERENCE, FLOAT64_DIFFERENCE, ROUNDING_FACTOR
from orderproof.errors import failure_reason, is_internal
from orderproof.laws import InputChange, ProvedLaw, TokenDim
from orderproof.laws.proved.proved_law import evenly_spaced
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import relative_difference
from orderproof.recording.restored_state import changes_state
from orderproof.records.audit import Deviation, Witness
from orderproof.tolerances import TOKEN_MIXING

COMPARED_CHANGES = 4  # at a length at which nothing is proved
FEWER_CHANGES = 2  # at a length at which a theorem holds, and at a long one: the first and the last change
LONG = 100  # [tokens]
MAX_SEARCH_LENGTH = 14  # [tokens] all shorter lengths are tried for a witness, and the length of the audit


class WitnessSearch:
    """Runs of a law for one output, on the module or on a rewritten graph."""

    def __init__(
        self,
        context: AuditContext,
        law: ProvedLaw,
        output: str,
        dims: tuple[TokenDim, ...],
        graph: CapturedGraph | None,
    ) -> None:
        self.law, self.output, self.dims = law, output, dims
        self.context = context if graph is not None else context.runnable
        self.graph = graph
        self.weights = "given"
        self.replacement: Replacement | None = None  # None: all tokens are random
        self.runs = self._runs("given", 0)
        self._first: dict[tuple[int, Executor], tuple[LabelledInputs, LabelledInputs, Tensor]] = {}
        self._noise: dict[tuple[int, Executor], float] = {}
        self.disagreeing: set[Executor] = set()  # runs in float64 that do not confirm a difference of the model

    def _runs(self, weights: str, seed: int) -> SubjectExecution:
        if self.graph is not None:
            return SubjectExecution(self.context.subject, self.graph, run_graph=True, weights=weights, seed=seed)
        return self.context.execution if weights == "given" else self.context.random_execution(seed)

    def with_restored_state(self) -> WitnessSearch:
        """The same runs, each of which starts in the same state of the module."""
        search = WitnessSearch(self.context, self.law, self.output, self.dims, self.graph)
        search.runs = replace(search.runs, restores_state=True)
        return search

    def tokens(self, length: int) -> tuple[LabelledInputs, LabelledInputs]:
        """The tokens of the first run, and others that replace them."""
        # With tokens inside the graph `length` counts those, and only one length exists.
        sample_length = self.context.length if self.runs.has_fixed_length else length
        tokens, others = (
            self.runs.sample_tokens(sample_length, self.context.seed + 1),
            self.runs.sample_tokens(sample_length, self.context.seed + 2),
        )
        if self.replacement is not None:
            tokens, others = self.replacement.applied(tokens, others)
        return tokens, others

    def pair(self, length: int, change: InputChange, executor: Executor) -> OutputPair | None:
        """The expected and the actual output of the second run; None if it cannot be run so."""
        try:
            if (length, executor) not in self._first:
                tokens, others = self.tokens(length)
                before = self._run(tokens.inputs, executor, length)
                self._first[length, executor] = (tokens, others, before)
            before = self._first[length, executor][2]
            after = self._run(self._changed(length, change, executor), executor, length)
            return self.law.expected_and_actual(before, after, self.dims, change)
        except Exception as error:  # noqa: BLE001 - third-party code: it may fail at this length in any way
            if is_internal(error):
                self.context.note(f"{self.law.code} {self.law.name}: {failure_reason(error)}")
            return None

    def _run(self, inputs: tuple[Tensor, ...], executor: Executor, length: int) -> Tensor:
        """The output of a run. Raises `ExecutorUnavailable` if it has none, or one of another shape in float64."""
        found = self.runs.known_outputs(inputs, executor).get(self.output)
        _, _, own = self._first.get((length, "model"), (None, None, found))
        if found is None or own is None or (executor != "model" and found.shape != own.shape):
            if executor != "model":
                self._note_disagreement(executor, f"it returns no output {self.output!r} of this shape")
            raise ExecutorUnavailable(f"the call returns no output {self.output!r} of this shape")
        return found

    def _changed(self, length: int, change: InputChange, executor: Executor) -> tuple[Tensor, ...]:
        tokens, others, _ = self._first[length, executor]
        return tuple(
            x if axis is None else change.apply(x, y, axis)
            for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True)
        )

    def noise(self, length: int, change: InputChange | None, executor: Executor, size: float) -> float:
        """The relative rounding error of both runs of a change, of which the outputs differ by `size`.

        Of the first run alone if `change` is None, or if the rounding error of that run explains the difference: many
        changes of one input are compared, and each takes several runs.
        """
        if (length, executor) not in self._noise:
            tokens = self._first[length, executor][0]
            self._noise[length, executor] = self.rounding_noise(tokens.inputs, executor)
        noise = self._noise[length, executor]
        if change is None or size <= ROUNDING_FACTOR * noise:
            return noise
        return max(noise, self.rounding_noise(self._changed(length, change, executor), executor))

    def rounding_noise(self, inputs: tuple[Tensor, ...], executor: Executor) -> float:
        """The relative rounding error of a run."""
        # Rounding in float64 is below every tolerance: only narrower parts of a float64 run are of interest.
        exact = None if executor == "model" else torch.float64

        def output() -> Tensor:
            found = self.runs.outputs(inputs, executor)[self.output]
            return found.where(~found.isnan(), 0)  # a row of pads may be NaN, and is not compared

        if self.runs.rounds_nowhere(inputs, executor):
            return epsilon(self.runs.known_outputs(inputs, executor)[self.output])
        known = partial(self.runs.note_rounds_nowhere, inputs, executor)
        return rounding_noise(output, exact=exact, if_exact=known)

    def disagrees(self, executor: Executor, float32: float, float64: float) -> None:
        """Note, for the first change, that a run in float64 contradicts the model itself."""
        self._note_disagreement(
            executor, f"for the same change the model differs by {float32:.2g} and the {executor} by {float64:.2g}"
        )

    def _note_disagreement(self, executor: Executor, how: str) -> None:
        if executor not in self.disagreeing:
            self.disagreeing.add(executor)
            self.context.note(
                f"{self.law.code} {self.law.name}: a {executor} of the model computes something else than the model: "
                f"{how}"
            )

    def deviation(self) -> tuple[Deviation, bool]:
        """The largest difference over the generators or cases of the law, and whether it is more than rounding."""
        length = self.context.token_count
        float32: float | None = None
        float64: float | None = None
        contradicts = False
        for change, _, _ in self.law.proof_cases(length, self.context.batch_size):
            pair = self.pair(length, change, "model")
            if pair is not None:
                float32 = max(float32 or 0.0, relative_difference(*pair))
            wide = self._float64_deviation(length, change)
            if wide is not None:
                float64 = max(float64 or 0.0, wide)
            # A copy has a state of its own: of a module that keeps state, its own runs count too.
            own_runs_count = wide is None or changes_state(self.runs.captured)
            if own_runs_count and pair is not None and (size := relative_difference(*pair)) > FLOAT32_DIFFERENCE:
                contradicts = contradicts or size > ROUNDING_FACTOR * self.noise(length, change, "model", size)
        contradicts = contradicts or (float64 is not None and float64 > FLOAT64_DIFFERENCE)
        self._note_float64_failure()
        return Deviation(float32=float32, float64=float64), contradicts

    def _float64_deviation(self, length: int, change: InputChange) -> float | None:
        """The difference of a change in float64; None if nothing runs in it throughout."""
        for executor in FLOAT64_EXECUTORS:
            pair = self.pair(length, change, executor)
            if pair is not None:
                size = relative_difference(*pair)
                if size <= FLOAT64_DIFFERENCE or size > ROUNDING_FACTOR * self.noise(length, change, executor, size):
                    return size
        return None

    def _note_float64_failure(self) -> None:
        """Note why the module has no float64 copy, and which numbers are used instead."""
        runs = self.runs
        failure = runs.copy_failure or runs.float64_failure
        instead = "differences are compared with the model's own rounding error instead"
        if runs.graph_float64_failure:
            failure += f", and its recorded graph fails in float64: {runs.graph_float64_failure}" if failure else ""
        elif runs.captured is not None and runs.graph_failure is None:
            instead = "its recorded graph is run in float64 instead"
        if failure:
            self.context.note(f"{failure}; {instead}")

    def lengths(self) -> list[int]:
        """The lengths to try, shortest first."""
        tokens = self.context.token_count
        has_one = self.runs.has_fixed_length or self.context.whole_rows_only
        return [tokens] if has_one else [*range(2, min(tokens, MAX_SEARCH_LENGTH)), tokens]

    def search(self, weights: Weights) -> Counterexample | None:
        """A counterexample with the given weights; for `all` weights, else one with random weights."""
        found = (
            self._search(self.lengths())
            or self._search_with_replacements(self._pad_tokens(), self.lengths())
            or self.search_other_branches()
            or self._search_with_replacements(self._rare_values(), self.lengths())
        )
        seeds = (0, 1) if weights == "all" else ()
        for seed in seeds:
            if found is not None:
                break
            self._note_float64_failure()
            self.runs, self.weights = self._runs("random", seed), "random"
            self.forget_runs()
            found = self._search([self.context.token_count])
        self._note_float64_failure()
        return found

    def is_repeatable(self, evidence: Counterexample) -> bool:
        """True if two runs on the unchanged inputs of a counterexample agree: no state or chance makes it differ."""
        return self.graph is not None or self.repeats(evidence.length, evidence.executor, evidence.noise)

    def repeats(self, length: int, executor: Executor = "model", noise: float = 0.0) -> bool:
        """True if two runs on the first inputs of this length agree up to rounding."""
        inputs = self.tokens(length)[0].inputs
        first, again = (
            run(inputs, executor)[self.output] for run in (self.runs.known_outputs, self.runs.repeated_outputs)
        )
        return not relative_difference(first, again) > ROUNDING_FACTOR * max(noise, epsilon(first))

    def search_other_branches(self) -> Counterexample | None:
        """A counterexample in which the runs take different branches, if the recording took one.

        Each run starts in the same state: a path that was not recorded may leave another one.
        """
        before, self.runs = self.runs, replace(self.runs, restores_state=True)
        found = self._search_with_replacements(self._values_of_branches(), [self.context.token_count])
        if found is None:
            self.runs = before
        return found

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

    def compare_at(self, length: int, count: int) -> bool | None:
        """True if the runs of `count` changes at a length agree, False if some do not, None if none can be made."""
        changes = list(self._changes(length))
        few = [changes[k] for k in evenly_spaced(len(changes), count)] if changes else []
        try:
            found = find_counterexample([length], lambda _: few, self, own_dtype=True)
        except SystemExit:  # raised by the model
            return None
        return False if found else True if (length, "model") in self._first else None

    def _search(self, lengths: list[int]) -> Counterexample | None:
        """A counterexample in float64, else one in the dtype of a model that does not run in float64."""
        found = find_counterexample(lengths, self._changes, self)
        if found is None and (self.runs.copy_failure or self.runs.float64_failure):
            found = find_counterexample(lengths, self._changes, self, own_dtype=True)
        return found

    def forget_runs(self) -> None:
        """Make each run again the next time it is needed."""
        self._first, self._noise = {}, {}
        self.runs.forget_outputs()

    def _pad_tokens(self) -> Iterator[Replacement]:
        """The pad token, if the law tries it and there is one."""
        if self.law.can_replace_with_pad and len(self.runs.axes) == 1:
            tokens = self.tokens(self.context.token_count)[0].inputs[0]
            yield from pad_tokens(tokens, self.context.subject.pad_token_id)

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

    def _changes(self, length: int) -> Iterator[InputChange]:
        return self.law.input_changes(length, self.context.batch_size)

    def witness(self, evidence: Counterexample) -> Witness:
        """The record of a counterexample."""
        tokens, others, _ = self._first[evidence.length, evidence.executor]
        change: InputChange = evidence.change
        changed = tuple(f"{y}'" if x == y else y for x, y in zip(tokens.labels, others.labels, strict=True))
        return Witness(
            tokens_before=tokens.labels,
            tokens_after=change.labels(tokens.labels, changed),
            change=change.description,
            permutation=None if change.permutation is None else tuple(int(i) for i in change.permutation),
            output_index=self.law.output_index(evidence.index, self.dims, len(tokens.labels), self._shape(evidence)),
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

    def _shape(self, evidence: Counterexample) -> tuple[int, ...]:
        before = self._first[evidence.length, evidence.executor][2]
        return tuple(before.shape)

    def first_violating_node(self, repaired: LawWalk | None, needed: set[Node]) -> Node | None:
        """The first node whose value in real runs contradicts the facts of the repairing walk."""
        if repaired is None or self.runs.weights != "given":
            return None
        if repaired.captured is not (self.graph or self.context.captured):
            return None  # a graph without weights: the witness is of its tiny twin
        try:
            tokens, others = self.tokens(self.context.token_count)
            for change, generator, case in self.law.proof_cases(self.context.token_count, self.context.batch_size):
                for violation in self.violating_nodes(repaired, tokens, others, change, generator, case):
                    if violation in needed:
                        return violation
        except Exception as error:  # noqa: BLE001 - an operator of the graph may refuse float64 in any way
            if is_internal(error):
                self.context.note(f"{self.law.code} {self.law.name}: {failure_reason(error)}")
        return None

    def violating_nodes(
        self,
        repaired: LawWalk,
        tokens: LabelledInputs,
        others: LabelledInputs,
        change: InputChange,
        generator: int,
        case: int,
    ) -> Iterator[Node]:
        """The nodes whose values in these two runs contradict the facts of the walk."""
        second = tuple(
            x if axis is None else change.apply(x, y, axis)
            for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True)
        )
        base = self.runs.graph_inputs
        if self.context.subject.patch_embedding_path:
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

    def mixes_tokens(self) -> bool:
        """True if the output of some token depends on another token."""
        length = self.context.token_count
        dim = self.dims[0]
        try:
            tokens, others = self.tokens(length)
            before = self.runs.outputs(tokens.inputs)[self.output]
            # The first and the last may be pads, or the same id by chance in both draws: then others decide.
            for token in dict.fromkeys((0, length - 1, *evenly_spaced(length))):
                inputs = []
                for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True):
                    changed = x.clone()
                    if isinstance(axis, int):
                        changed.select(axis, token).copy_(y.select(axis, token))
                    inputs.append(changed)
                after = self.runs.outputs(tuple(inputs))[self.output]
                indices = [dim.prefix_length + i for i in range(length) if i != token]
                index = torch.tensor(indices, device=before.device)
                if (
                    relative_difference(before.index_select(dim.dim, index), after.index_select(dim.dim, index))
                    > TOKEN_MIXING
                ):
                    return True
        except (RuntimeError, ValueError):
            return True
        return False


def check_node_facts(context: AuditContext, law: ProvedLaw) -> str:
    """Check every fact at every node against real runs; the result in one line."""
    there = context.for_law(law).runnable
    done = walk_graph(there, law, there.captured)
    output, dims = next(iter(there.output_dims.items()))
    search = WitnessSearch(there, law, output, dims, None)
    tokens, others = search.tokens(there.token_count)
    runs, bad = 0, []
    for change, generator, case in law.proof_cases(there.token_count, there.batch_size):
        runs += 1
        bad += [node.name for node in search.violating_nodes(done, tokens, others, change, generator, case)]
    if bad:
        return f"node check: {len(bad)} facts contradicted, first at {bad[0]}: an error in the prover; please report it"
    return f"node check: the facts of {len(done.walk.facts)} nodes hold in {runs} pairs of float64 runs"
