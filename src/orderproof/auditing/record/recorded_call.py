"""One call of a subject: its graph, how the graph differs from the module, and the sizes of both."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.auditing.record.execution import SubjectExecution, named_tensors, state_as_recorded
from orderproof.cast_on_use import is_large
from orderproof.diagnosis.index_parts import UNKNOWN, Dims
from orderproof.diagnosis.index_paths import follow_indices
from orderproof.errors import CaptureError, SubjectError, first_line
from orderproof.laws import TokenAxis
from orderproof.models import Subject
from orderproof.models.axes import ROWS, TOKENS
from orderproof.recording.capture import capture
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import execute, relative_difference
from orderproof.recording.float64_parameters import Float64Parameters
from orderproof.recording.low_rank import low_rank_weights, with_replacements
from orderproof.seeded_random import seeded_random
from orderproof.subject_spec import TOKEN_AXIS_OPTION
from orderproof.tolerances import SAME_GRAPH


@dataclass(frozen=True)
class Recording:
    """A graph, how its outputs differ from the module's on the same inputs (None if they agree), and that call."""

    graph: CapturedGraph
    mismatch: str | None
    compared: tuple[tuple[Tensor, ...], dict[str, Tensor]] | None = None  # inputs, and outputs of the module


@dataclass
class RecordedCall:
    """One subject at one length [tokens]."""

    subject: Subject
    length: int
    seed: int = 0
    notes: list[str] = field(default_factory=list)
    whole_rows_only: bool = False  # inputs are divided into rows only: no dimension of an output runs over tokens
    runs_only: bool = False  # the module is run and no graph is recorded
    float64_parameters: Float64Parameters = field(default_factory=Float64Parameters, repr=False)

    def note(self, text: str) -> None:
        """Leave a note in the report: a guess that narrows what is decided, or an error that costs no verdict."""
        if text not in self.notes:
            self.notes.append(text)

    @cached_property
    def recording(self) -> Recording:
        """The graph, compared with the module if that has weights. Raises `CaptureError` or `SubjectError`."""
        graph = self._capture()
        if self.subject.device == "meta":
            return Recording(graph, None)
        if graph.eager is not None and not graph.patched_because:
            others = self.subject.sample(self.length, self.seed).inputs
            if self._agrees_with_low_rank(graph, others, graph.eager[1]):
                return Recording(graph, None, graph.eager)
        compared = self._compared_call(graph)
        mismatch = None if self._agrees_with_low_rank(graph, *compared) else _mismatch(graph, *compared)
        return Recording(graph, mismatch, compared)

    def _agrees_with_low_rank(
        self, captured: CapturedGraph, inputs: tuple[Tensor, ...], real: dict[str, Tensor]
    ) -> bool:  # fmt: skip
        """True if the graph and the module agree with matrices of low rank in a large module, as with any weights."""
        module = self.subject.module
        if not self._is_large or captured.branches or _compare(real, real) is not None:
            return False
        try:
            with torch.no_grad(), low_rank_weights(module) as replaced, state_as_recorded(module, captured):
                state = with_replacements(captured.values, replaced)
                with seeded_random(0):
                    called = named_tensors(module(*[x.clone() for x in inputs]))
                with seeded_random(0):
                    recorded = execute(captured, tuple(x.clone() for x in inputs), state=state)
        except Exception:  # noqa: BLE001 - a graph may hold operators that only the exporter can run
            return False
        return _compare(called, recorded) is None

    @cached_property
    def _is_large(self) -> bool:
        return is_large(self.subject.module)

    @property
    def _recorded_seed(self) -> int:
        """The seed of the inputs of the recording; of a large module those of a run that laws compare with others."""
        return self.seed + self._is_large

    def _capture(self) -> CapturedGraph:
        s = self.subject
        captured = capture(
            s.module, s.sample(self.length, self._recorded_seed).inputs, values=s.buffer_values, quiet=s.export_context,
            cut=s.patch_embedding_path, inside=s.wrapped_path,
        )  # fmt: skip
        captured.float64_parameters = self.float64_parameters
        return captured

    def _compared_call(self, captured: CapturedGraph) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        # With branches on the tokens, only inputs that take the recorded one: those of the recording.
        recorded, other = self._recorded_seed, self.seed + (not self._is_large)
        sample = self.subject.sample(self.length, recorded if captured.branches else other)
        with torch.no_grad(), seeded_random(0), state_as_recorded(self.subject.module, captured):
            return sample.inputs, named_tensors(self.subject.module(*[x.clone() for x in sample.inputs]))

    @property
    def captured(self) -> CapturedGraph:
        """The graph. Raises `CaptureError` or `SubjectError`."""
        return self.recording.graph

    @cached_property
    def export_failure(self) -> str | None:
        """Why there is no graph, or None."""
        if self.runs_only:
            return "no graph was recorded: only runs are compared"
        try:
            _ = self.recording
        except CaptureError as error:
            return str(error)
        return None

    @property
    def input_axes(self) -> dict[Node, TokenAxis]:
        """The nodes at which a walk of the graph starts, and the token axis of each."""
        return self.input_axes_of(self.captured)

    def input_axes_of(self, captured: CapturedGraph) -> dict[Node, TokenAxis]:
        """The same for a graph that may be rewritten."""
        if captured.start is not None:
            return {captured.start: 1}
        return dict(zip(captured.inputs, self.subject.token_axes, strict=True))

    @cached_property
    def _input_shapes(self) -> list[tuple[torch.Size, TokenAxis]]:
        """The shape and the token axis of each input, of the graph if there is one."""
        if self.export_failure is None:
            return [(n.meta["val"].shape, axis) for n, axis in self.input_axes.items()]
        given = self.subject.sample(self.length, self.seed).inputs
        return [(x.shape, axis) for x, axis in zip(given, self.subject.token_axes, strict=True)]

    @cached_property
    def batch_size(self) -> int:
        """The number of rows; 1 if rows are not the first axis."""
        return next((int(shape[0]) for shape, axis in self._input_shapes if isinstance(axis, int) and axis > 0), 1)

    @cached_property
    def token_count(self) -> int:
        """The number of tokens of the input (for vision: patches)."""
        failed = self.export_failure is not None
        if not (failed and self.subject.patch_embedding_path is not None):  # without its graph there are no patches
            sizes = (int(shape[axis]) for shape, axis in self._input_shapes if isinstance(axis, int))
            if (size := next(sizes, None)) is not None:
                return size
        if failed:
            return self.length
        raise SubjectError(f"{self.subject.name}: no input has a token axis; name it with {TOKEN_AXIS_OPTION}")

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each output."""
        if self.export_failure is None:
            return {k: tuple(int(s) for s in n.meta["val"].shape) for k, n in self.captured.outputs.items()}
        runs = SubjectExecution(self.subject, None, float64_parameters=self.float64_parameters)
        outputs = runs.outputs(runs.sample_tokens(self.length, self.seed).inputs)
        return {name: tuple(x.shape) for name, x in outputs.items()}

    @cached_property
    def index_paths(self) -> dict[Node, Dims]:
        """The axes of each node whose index is that of a row or a token on every path from the inputs."""
        return follow_indices(self.captured.graph, self._named_input_axes())

    def _named_input_axes(self) -> dict[Node, dict[int, str]]:
        """The names of the axes of each input; an axis that may be another one by its size has no name."""
        sizes, found = {self.token_count, self.batch_size}, {}
        for node, axis in self.input_axes.items():
            shape = tuple(int(size) for size in node.meta["val"].shape)
            if isinstance(axis, int):
                found[node] = {axis: TOKENS, **({0: ROWS} if axis else {})}
            else:
                found[node] = {d: UNKNOWN for d, size in enumerate(shape) if size in sizes}
        return found


def _mismatch(captured: CapturedGraph, inputs: tuple[Tensor, ...], real: dict[str, Tensor]) -> str | None:
    try:
        with seeded_random(0):
            recorded = execute(captured, tuple(x.clone() for x in inputs))
    except Exception as error:  # noqa: BLE001 - a graph may hold operators that only the exporter can run
        return f"the recorded graph could not be run: {first_line(error)}"
    return _compare(real, recorded)


def _is_finite(output: Tensor) -> bool:
    """True of a finite output; some elements may be -inf, as logits of words that are never taken are."""
    return bool(output.isfinite().any()) and not bool((output.isnan() | (output == math.inf)).any())


def _compare(real: dict[str, Tensor], recorded: dict[str, Tensor]) -> str | None:
    for name, found in recorded.items():
        expected = real.get(name)
        if expected is None or expected.shape != found.shape:
            return f"captured a different branch: the graph has an output {name!r} the model does not return"
        if expected.numel() and not _is_finite(expected):
            return f"the model's output {name!r} is not finite (NaN or infinity) on random input"
        gap = relative_difference(expected, found)
        if not math.isfinite(gap) or gap > SAME_GRAPH:
            return (
                f"captured a different branch: output {name!r} of the graph differs from the model's by {gap:.2g} "
                f"on the same input (model {float(expected.flatten()[0]):.6g}, graph {float(found.flatten()[0]):.6g})"
            )
    return None
