"""Runs of a law for one output: pairs of runs that the law relates, their rounding error, and how far they deviate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Self

import torch
from torch import Tensor

from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.execution import ExecutorUnavailable, LabelledInputs, SubjectExecution
from orderproof.auditing.search.replacements import Replacement
from orderproof.cast_on_use import is_large
from orderproof.diagnosis.counterexample import Executor, OutputPair, find_counterexample
from orderproof.diagnosis.rounding_noise import RoundingNoise, epsilon
from orderproof.diagnosis.tolerances import (
    CLEAR_DIFFERENCE,
    ROUNDING_FACTOR,
)
from orderproof.errors import failure_reason, is_internal
from orderproof.laws import InputChange, ProvedLaw, TokenDim
from orderproof.laws.proved.proved_law import evenly_spaced
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import relative_difference
from orderproof.tolerances import TOKEN_MIXING


class LawRuns:
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
        self.disagreeing: set[Executor] = set()  # runs in float64 that do not confirm a difference of the model

    def _runs(self, weights: str, seed: int) -> SubjectExecution:
        if weights == "low rank" and self.graph is None:
            return self.context.low_rank_execution
        if self.graph is not None:
            return SubjectExecution(self.context.subject, self.graph, run_graph=True, weights=weights, seed=seed)
        return self.context.execution if weights == "given" else self.context.random_execution(seed)

    def with_restored_state(self) -> Self:
        """The same runs, each of which starts in the same state of the module."""
        same = type(self)(self.context, self.law, self.output, self.dims, self.graph)
        same.runs = replace(same.runs, restores_state=True)
        return same

    @cached_property
    def stand_in(self) -> Self | None:
        """The same runs of a copy of a large module in which matrices have low rank, if tokens are mixed in it.

        For what is to be said of all weights, and to be repeated with the weights of the module if it does not hold.
        """
        runs, mixes = self.runs, self.law.requires_token_mixing and bool(self.dims)
        inside = runs.subject.patch_embedding_path is not None
        if inside or runs.restores_state or not is_large(runs.subject.module):
            return None
        same = type(self)(self.context, self.law, self.output, self.dims, self.graph)
        same.runs, same.weights = same._runs("low rank", 0), "low rank"
        try:
            return None if mixes and not same.mixes_tokens() else same
        except Exception as error:  # noqa: BLE001 - third-party code: a module may read its weights in any way
            self.note_internal(error)
            return None

    def agree(self, length: int, changes: Sequence[InputChange]) -> bool | None:
        """True if the runs of all changes at a length agree, False if some do not, None if none can be made."""
        try:
            found = find_counterexample([length], lambda _: changes, self, own_dtype=True)
        except SystemExit:  # raised by the model
            return None
        return False if found else True if (length, "model") in self._first else None

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
            after = self._run(self._changed_inputs(length, change, executor), executor, length)
            return self.law.expected_and_actual(before, after, self.dims, change)
        except Exception as error:  # noqa: BLE001 - third-party code: it may fail at this length in any way
            self.note_internal(error)
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

    def _changed_inputs(self, length: int, change: InputChange, executor: Executor) -> tuple[Tensor, ...]:
        tokens, others, _ = self._first[length, executor]
        return self.changed(tokens, others, change)

    def changed(self, tokens: LabelledInputs, others: LabelledInputs, change: InputChange) -> tuple[Tensor, ...]:
        """The inputs of the second run."""
        return tuple(
            x if axis is None else change.apply(x, y, axis)
            for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True)
        )

    def noise(self, length: int, change: InputChange | None, executor: Executor, size: float) -> float:
        """The relative rounding error of both runs of a change, of which the outputs differ by `size`.

        Of the first run alone if `change` is None, or if the rounding error of that run explains the difference: many
        changes of one input are compared, and each takes several runs. Of a large model also if the difference is
        beyond all doubt.
        """
        noise = self.rounding_noise(self._first[length, executor][0].inputs, executor, size)
        if change is None or size <= ROUNDING_FACTOR * noise:
            return noise
        if executor != "model" and size > CLEAR_DIFFERENCE * noise and is_large(self.runs.subject.module):
            return noise
        return max(noise, self.rounding_noise(self._changed_inputs(length, change, executor), executor, size))

    def rounding_noise(self, inputs: tuple[Tensor, ...], executor: Executor, size: float = 0.0) -> float:
        """The relative rounding error of a run, as far as a difference of this size needs it."""
        if self.runs.rounds_nowhere(inputs, executor):
            return epsilon(self.runs.known_outputs(inputs, executor)[self.output])
        noise = self.runs.known_noise(inputs, executor, self.output, lambda: self._noise_of(inputs, executor))
        # In its own dtype the noise is part of what is reported of a witness.
        return noise.of_a_difference(size if executor != "model" else 0.0)

    def _noise_of(self, inputs: tuple[Tensor, ...], executor: Executor) -> RoundingNoise:
        runs, name, in_float64 = self.runs, self.output, executor != "model"

        def output(run: Callable[[tuple[Tensor, ...], Executor], dict[str, Tensor]]) -> Tensor:
            found = run(inputs, executor)[name]
            return found.where(~found.isnan(), 0)  # a row of pads may be NaN, and is not compared

        # A recorded call shows its state, and each run starts in the same one: then the run before was the same.
        same_as_before = in_float64 and runs.captured is not None
        return RoundingNoise(
            partial(output, runs.outputs),
            torch.float64
            if in_float64
            else None,  # below every tolerance: only narrower parts of a run are of interest
            partial(runs.note_rounds_nowhere, inputs, executor),
            partial(output, runs.known_outputs) if same_as_before else None,
        )

    def disagrees(self, executor: Executor, float32: float, float64: float) -> None:
        """Note, for the first change, that a run in float64 contradicts the model itself."""
        self._note_disagreement(
            executor, f"for the same change the model differs by {float32:.2g} and the {executor} by {float64:.2g}"
        )

    def _note_disagreement(self, executor: Executor, how: str) -> None:
        if executor not in self.disagreeing:
            self.disagreeing.add(executor)
            self.note(f"a {executor} of the model computes something else than the model: {how}")

    def note_internal(self, error: Exception) -> None:
        """Leave a note in the report if an error is one of this package."""
        if is_internal(error):
            self.note(failure_reason(error))

    def note(self, text: str) -> None:
        """Leave a note about the law in the report; none about weights that are not the model's own."""
        if self.weights != "low rank":
            self.context.note(f"{self.law.code} {self.law.name}: {text}")

    def note_float64_failure(self) -> None:
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

    def repeats(self, length: int, executor: Executor = "model", noise: float = 0.0) -> bool:
        """True if two runs on the first inputs of this length agree up to rounding."""
        inputs = self.tokens(length)[0].inputs
        first, again = (
            run(inputs, executor)[self.output] for run in (self.runs.known_outputs, self.runs.repeated_outputs)
        )
        return not relative_difference(first, again) > ROUNDING_FACTOR * max(noise, epsilon(first))

    def forget_runs(self) -> None:
        """Make each run again the next time it is needed."""
        self._first = {}
        self.runs.forget_outputs()

    def mixes_tokens(self) -> bool:
        """True if the output of some token depends on another token."""
        length = self.context.token_count
        dim = self.dims[0]
        try:
            tokens, others = self.tokens(length)
            before = self.runs.known_outputs(tokens.inputs)[self.output]
            # The first and the last may be pads, or the same id by chance in both draws: then others decide.
            for token in dict.fromkeys((0, length - 1, *evenly_spaced(length))):
                inputs = []
                for x, y, axis in zip(tokens.inputs, others.inputs, self.runs.axes, strict=True):
                    changed = x.clone()
                    if isinstance(axis, int):
                        changed.select(axis, token).copy_(y.select(axis, token))
                    inputs.append(changed)
                after = self.runs.known_outputs(tuple(inputs))[self.output]
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
