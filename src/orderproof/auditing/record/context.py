"""The context of an audit: what several laws need to know of one subject at one length, computed once.

The recorded graph, how it differs from the module, the token dimensions of the outputs, and how to run the subject
(or its tiny twin, if the subject is on the meta device).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.auditing.record.execution import ExecutorUnavailable, SubjectExecution, named_tensors, state_as_recorded
from orderproof.auditing.record.output_axes import find_output_axes, token_dim
from orderproof.errors import CaptureError, SubjectError, first_line
from orderproof.laws import ProvedLaw, TokenAxis, TokenDim
from orderproof.models import Subject
from orderproof.models.axes import OutputAxes
from orderproof.models.row_counts import with_row_count
from orderproof.models.settings import DEFAULT_SETTING, apply_setting
from orderproof.models.vision.whole_image import with_image_input
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import execute, relative_difference
from orderproof.recording.export.capture import capture
from orderproof.recording.float64_parameters import Float64Parameters
from orderproof.seeded_random import seeded_random
from orderproof.subject_spec import TOKEN_AXIS_OPTION
from orderproof.tolerances import SAME_GRAPH

if TYPE_CHECKING:
    from orderproof.auditing.decide.proof import LawWalk

TWIN_ASSUMPTION = "the recorded branch is the one that runs: checked on a tiny twin, not at this size"


@dataclass(frozen=True)
class ProvedOutput:
    """A walk of the graph that proved a relation for one output."""

    output: str
    completed: bool  # the constants of the entry map were made uniform first
    walk: LawWalk


@dataclass
class AuditContext:
    """One subject at one length [tokens]."""

    subject: Subject
    length: int
    seed: int = 0
    notes: list[str] = field(default_factory=list)
    whole_rows_only: bool = False  # inputs are divided into rows only: no dimension of an output runs over tokens
    keep_walks: bool = False  # keep the walks that proved something, for certificates
    runs_only: bool = False  # the module is run and no graph is recorded
    walks: list[ProvedOutput] = field(default_factory=list, repr=False)
    float64_parameters: Float64Parameters = field(default_factory=Float64Parameters, repr=False)
    memo: dict[str, Any] = field(default_factory=dict, repr=False)  # values that other modules compute once
    _called: dict[str, AuditContext | str] = field(default_factory=dict, repr=False)

    def in_call_mode(self, setting: str) -> AuditContext | str:
        """The context of the same subject called in another mode, or why it cannot be called so."""
        if setting == DEFAULT_SETTING:
            return self
        if setting not in self._called:
            made = apply_setting(self.subject, setting)
            self._called[setting] = made if isinstance(made, str) else self._for_subject(made, self.length)
        return self._called[setting]

    def at_length(self, length: int) -> AuditContext:
        """The context of the same subject at another length [tokens]."""
        return self._for_subject(self.subject, length, whole_rows_only=self.whole_rows_only)

    def with_rows(self, rows: int) -> AuditContext | None:
        """The context of the same subject with another number of rows; None if its rows are not known."""
        key = f"{rows} rows"
        if key not in self._called:
            made = with_row_count(self.subject, rows)
            rest = {"whole_rows_only": self.whole_rows_only}
            self._called[key] = "" if made is None else self._for_subject(made, self.length, **rest)
        found = self._called[key]
        return None if isinstance(found, str) else found

    def runs_in_call_mode(self, setting: str) -> AuditContext | str:
        """A context for runs of the subject in another call mode, or why it cannot be called so."""
        key = f"runs {setting}"
        if key not in self._called:
            made = apply_setting(self.subject, setting)
            there = made if isinstance(made, str) else replace(self._for_subject(made, self.length), runs_only=True)
            self._called[key] = there
        return self._called[key]

    def for_law(self, law: ProvedLaw) -> AuditContext:
        """The context for this law: a law of whole rows is decided for an image model from the image on."""
        return self._from_whole_image if law.replaces_whole_rows else self

    def __post_init__(self) -> None:
        """A subject without tokens in its input has whole rows only."""
        self.whole_rows_only = self.whole_rows_only or bool(self.subject.whole_rows_reason)
        self.notes.extend(note for note in self.subject.notes if note not in self.notes)

    @cached_property
    def _from_whole_image(self) -> AuditContext:
        """The context from the image on; itself without a patch embedding, or if its rows are not the image's."""
        if (
            self.subject.patch_embedding_path is None
            or self.export_failure is not None
            or len(self.captured.inputs) != 1
        ):
            return self
        shape = self.captured.inputs[0].meta["val"].shape
        if len(shape) < 2 or shape[0] != self.batch_size or self.batch_size == 1:
            return self
        subject = with_image_input(self.subject)
        whole = self._for_subject(subject, subject.default_length, whole_rows_only=True)
        if "difference" in self.memo:  # it is that of both graphs
            whole.memo["difference"] = self.memo["difference"]
        whole.captured = replace(self.captured, start=None)
        return whole

    def _for_subject(self, subject: Subject, length: int, *, whole_rows_only: bool = False) -> AuditContext:
        return AuditContext(
            subject, length, self.seed, notes=self.notes, whole_rows_only=whole_rows_only, keep_walks=self.keep_walks,
            float64_parameters=self.float64_parameters, runs_only=self.runs_only,
        )  # fmt: skip

    @cached_property
    def batch_size(self) -> int:
        """The number of rows; 1 if rows are not the first axis."""
        if self.export_failure is None:
            shapes = [(n.meta["val"].shape, axis) for n, axis in self.input_axes.items()]
        else:
            given = self.subject.sample(self.length, self.seed).inputs
            shapes = [(x.shape, axis) for x, axis in zip(given, self.subject.token_axes, strict=True)]
        return next((int(shape[0]) for shape, axis in shapes if isinstance(axis, int) and axis > 0), 1)

    @cached_property
    def captured(self) -> CapturedGraph:
        """The graph. Raises `CaptureError` or `SubjectError`."""
        graph = self._capture()
        if self.subject.device == "meta":
            return graph
        self.memo["difference"] = self._mismatch_with_model(graph)
        if graph.read or self.memo["difference"] is None:
            return graph
        # Another branch than the one that runs: a constant whose value was not read may have decided which.
        try:
            again = self._capture(read=True)
        except CaptureError:
            return graph
        if self._mismatch_with_model(again) is not None:
            return graph
        self.memo["difference"] = None
        return again

    def _capture(self, *, read: bool = False) -> CapturedGraph:
        s = self.subject
        captured = capture(
            s.module,
            s.sample(self.length, self.seed).inputs,
            values=s.buffer_values,
            quiet=s.export_context,
            cut=s.patch_embedding_path,
            inside=s.wrapped_path,
            read=read,
        )
        captured.float64_parameters = self.float64_parameters
        return captured

    @cached_property
    def export_failure(self) -> str | None:
        """Why there is no graph, or None."""
        if self.runs_only:
            return "no graph was recorded: only runs are compared"
        try:
            _ = self.captured
        except CaptureError as error:
            return str(error)
        return None

    @cached_property
    def input_axes(self) -> dict[Node, TokenAxis]:
        """The nodes at which a walk starts, and the token axis of each."""
        if self.captured.start is not None:
            return {self.captured.start: 1}
        return dict(zip(self.captured.inputs, self.subject.token_axes, strict=True))

    @cached_property
    def token_count(self) -> int:
        """The number of tokens of the input (for vision: patches)."""
        if (
            self.export_failure is not None and self.subject.patch_embedding_path is None
        ):  # no graph, but the model can still be run
            sample = self.subject.sample(self.length, self.seed)
            sizes = [
                x.shape[d] for x, d in zip(sample.inputs, self.subject.token_axes, strict=True) if isinstance(d, int)
            ]
            if sizes:
                return int(sizes[0])
        for node, axis in self.input_axes.items() if self.export_failure is None else ():
            if isinstance(axis, int):
                return int(node.meta["val"].shape[axis])
        if self.export_failure is not None:
            return self.length
        raise SubjectError(f"{self.subject.name}: no input has a token axis; name it with {TOKEN_AXIS_OPTION}")

    @cached_property
    def runnable(self) -> AuditContext:
        """The context that can be run: this one, or that of the tiny twin if there are no weights."""
        if self.subject.device != "meta":
            return self
        if self.subject.build_tiny_twin is None:
            raise SubjectError(f"{self.subject.name}: on the meta device, without a tiny twin that can be run")
        twin = self.subject.build_tiny_twin()
        return self._for_subject(twin, twin.default_length, whole_rows_only=self.whole_rows_only)

    @cached_property
    def execution(self) -> SubjectExecution:
        """How to run the subject with its own weights."""
        shared = self.float64_parameters
        if self.export_failure is not None:
            return SubjectExecution(self.subject, None, float64_parameters=shared)
        failure = self.graph_mismatch
        if failure is None and self.captured.branches:
            failure = f"it is that of one branch: {self.captured.branches[0].place}"
        return SubjectExecution(self.subject, self.captured, graph_failure=failure, float64_parameters=shared)

    def free_float64_copies(self) -> None:
        """Free the float64 copies of the model, which are twice as large as the model; a later run makes them again."""
        self.float64_parameters.clear()
        for context in (self, vars(self).get("_from_whole_image", self)):
            vars(context).pop("execution", None)
        for context in self._called.values():
            if isinstance(context, AuditContext):
                context.free_float64_copies()

    def random_execution(self, seed: int) -> SubjectExecution:
        """How to run the subject with random weights: a copy of the module, or its graph if it cannot be copied."""
        runs = replace(self.execution, weights="random", seed=seed, float64_parameters=Float64Parameters())
        if not runs.runs_graph:
            try:
                runs.copied_module("model")
            except ExecutorUnavailable:
                runs.run_graph = runs.captured is not None and runs.graph_failure is None
        return runs

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each output."""
        if self.export_failure is None:
            return {k: tuple(int(s) for s in n.meta["val"].shape) for k, n in self.captured.outputs.items()}
        return {
            k: tuple(v.shape)
            for k, v in self.execution.outputs(self.execution.sample_tokens(self.length, self.seed).inputs).items()
        }

    @cached_property
    def output_axes(self) -> dict[str, OutputAxes]:
        """The axes of each output: as the subject states them, or derived from calls with other numbers of tokens."""
        return find_output_axes(self)

    @property
    def axes_text(self) -> dict[str, str]:
        """The axes of each input and output in one line, as far as they are known by now."""
        if self.subject.axes_text:
            return dict(self.subject.axes_text)
        found: dict[str, OutputAxes] = vars(self).get("output_axes", {})
        return {name: axes.text for name, axes in found.items()}

    @cached_property
    def output_dims(self) -> dict[str, tuple[TokenDim, ...]]:
        """The dimensions of each output that run over tokens, as far as they are known."""
        return {name: tuple(token_dim(token) for token in axes.tokens) for name, axes in self.output_axes.items()}

    def dims_for(self, law: ProvedLaw, output: str) -> tuple[TokenDim, ...]:
        """The token dimensions as a law reads them: a row of attention weights [token, token] is one whole."""
        dims = self.output_dims[output]
        return () if law.replaces_whole_rows and len(dims) > 1 else dims

    def note(self, text: str) -> None:
        """Leave a note in the report: a guess that narrows what is decided, or an error that costs no verdict."""
        if text not in self.notes:
            self.notes.append(text)

    @cached_property
    def graph_mismatch(self) -> str | None:
        """How the outputs of the recorded graph differ from the module's on the same inputs; None if they agree."""
        if self.export_failure is not None:
            return self.export_failure if self.runnable is self else self.runnable.graph_mismatch
        if self.runnable is not self:
            if self.runnable.export_failure is None and self.runnable.captured.read and not self.captured.read:
                return "captured a different branch: constants decide it, which have no values on the meta device"
            return self.runnable.graph_mismatch
        difference: str | None = self.memo["difference"]
        return difference

    def _mismatch_with_model(self, captured: CapturedGraph) -> str | None:
        # With branches on the tokens, only inputs that take the recorded one: those of the recording.
        sample = self.subject.sample(self.length, self.seed if captured.branches else self.seed + 1)
        with torch.no_grad(), seeded_random(0), state_as_recorded(self.subject.module, captured):
            real = named_tensors(self.subject.module(*[x.clone() for x in sample.inputs]))
        try:
            with seeded_random(0):
                recorded = execute(captured, tuple(x.clone() for x in sample.inputs))
        except Exception as error:  # noqa: BLE001 - a graph may hold operators that only the exporter can run
            return f"the recorded graph could not be run: {first_line(error)}"
        return _compare(real, recorded)


def _compare(real: dict[str, Tensor], recorded: dict[str, Tensor]) -> str | None:
    for name, found in recorded.items():
        expected = real.get(name)
        if expected is None or expected.shape != found.shape:
            return f"captured a different branch: the graph has an output {name!r} the model does not return"
        if not bool(torch.isfinite(expected).all()):
            return f"the model's output {name!r} is not finite (NaN or infinity) on random input"
        gap = relative_difference(expected, found)
        if not math.isfinite(gap) or gap > SAME_GRAPH:
            return (
                f"captured a different branch: output {name!r} of the graph differs from the model's by {gap:.2g} "
                f"on the same input (model {float(expected.flatten()[0]):.6g}, graph {float(found.flatten()[0]):.6g})"
            )
    return None
