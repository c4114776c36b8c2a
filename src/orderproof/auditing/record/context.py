"""The context of an audit: a recorded call, the other calls of its subject, and how to run it.

Several laws share it. Without weights (on the meta device) the tiny twin of the subject is run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from orderproof.auditing.record.execution import ExecutorUnavailable, SubjectExecution
from orderproof.auditing.record.open_calls import OpenCalls
from orderproof.auditing.record.output_axes import find_output_axes, token_dim
from orderproof.auditing.record.recorded_call import RecordedCall, Recording
from orderproof.cast_on_use import is_large
from orderproof.errors import SubjectError
from orderproof.laws import ProvedLaw, TokenDim
from orderproof.models import Subject
from orderproof.models.axes import OutputAxes
from orderproof.models.row_counts import with_row_count
from orderproof.models.settings import DEFAULT_SETTING, apply_setting
from orderproof.models.vision.whole_image import with_image_input
from orderproof.recording.float64_parameters import Float64Parameters
from orderproof.recording.owned_state import OwnedState, owned_state


@dataclass
class AuditContext(RecordedCall):
    """The call in which laws are decided, and other calls of the same subject."""

    with_own_weights: set[str] = field(default_factory=set, repr=False)  # the laws of which a run was compared
    _modes: dict[str, AuditContext | str] = field(default_factory=dict, repr=False)
    _runs: dict[str, AuditContext | str] = field(default_factory=dict, repr=False)
    _with_rows: dict[int, AuditContext | None] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """A subject without tokens in its input has whole rows only; a large one has no place for a second copy."""
        self.float64_parameters.on_use = is_large(self.subject.module)
        self.whole_rows_only = self.whole_rows_only or bool(self.subject.whole_rows_reason)
        self.notes.extend(note for note in self.subject.notes if note not in self.notes)

    def in_call_mode(self, setting: str) -> AuditContext | str:
        """The context of the same subject called in another mode, or why it cannot be called so."""
        if setting == DEFAULT_SETTING:
            return self
        if setting not in self._modes:
            self._modes[setting] = self._in_setting(setting)
        return self._modes[setting]

    @property
    def padded_mode(self) -> str:
        """The call mode with pads on each side or, where the subject takes them on the right only, with these."""
        right = isinstance(self.in_call_mode("padded"), str) and not isinstance(self.in_call_mode("padded right"), str)
        return "padded right" if right else "padded"

    def runs_in_call_mode(self, setting: str) -> AuditContext | str:
        """A context for runs of the subject in another call mode, or why it cannot be called so."""
        if setting not in self._runs:
            made = self._in_setting(setting)
            self._runs[setting] = made if isinstance(made, str) else replace(made, runs_only=True)
        return self._runs[setting]

    def _in_setting(self, setting: str) -> AuditContext | str:
        made = apply_setting(self.subject, setting)
        return made if isinstance(made, str) else self._for_subject(made, self.length)

    def with_rows(self, rows: int) -> AuditContext | None:
        """The context of the same subject with another number of rows; None if its rows are not known."""
        if rows not in self._with_rows:
            made = with_row_count(self.subject, rows)
            rest = {"whole_rows_only": self.whole_rows_only}
            self._with_rows[rows] = None if made is None else self._for_subject(made, self.length, **rest)
        return self._with_rows[rows]

    @cached_property
    def other_sequences(self) -> dict[str, AuditContext]:
        """The contexts of further sequences with padding masks of their own, by their names."""
        others = self.subject.other_sequences.items()
        return {name: self._for_subject(other, other.default_length) for name, other in others}

    def at_length(self, length: int) -> AuditContext:
        """The context of the same subject at another length [tokens]."""
        return self._for_subject(self.subject, length, whole_rows_only=self.whole_rows_only)

    def for_law(self, law: ProvedLaw) -> AuditContext:
        """The context for this law: a law of whole rows is decided for an image model from the image on."""
        return self._from_whole_image if law.replaces_whole_rows else self

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
        whole.recording = Recording(replace(self.captured, start=None), self.recording.mismatch)
        return whole

    @cached_property
    def runnable(self) -> AuditContext:
        """The context that can be run: this one, or that of the tiny twin if there are no weights."""
        if self.subject.device != "meta":
            return self
        if self.subject.build_tiny_twin is None:
            raise SubjectError(f"{self.subject.name}: on the meta device, without a tiny twin that can be run")
        twin = self.subject.build_tiny_twin()
        return self._for_subject(twin, twin.default_length, whole_rows_only=self.whole_rows_only)

    def _for_subject(self, subject: Subject, length: int, *, whole_rows_only: bool = False) -> AuditContext:
        return AuditContext(
            subject, length, self.seed, notes=self.notes, whole_rows_only=whole_rows_only,
            float64_parameters=self.float64_parameters, runs_only=self.runs_only,
            with_own_weights=self.with_own_weights,
        )  # fmt: skip

    @cached_property
    def graph_mismatch(self) -> str | None:
        """How the outputs of the recorded graph differ from the module's on the same inputs; None if they agree."""
        if self.runnable is self:
            return self.recording.mismatch if self.export_failure is None else self.export_failure
        twin = self.runnable
        if self.export_failure is None and twin.export_failure is None:
            if twin.captured.read and not self.captured.read:
                return "captured a different branch: constants decide it, which have no values on the meta device"
        return twin.graph_mismatch

    @cached_property
    def execution(self) -> SubjectExecution:
        """How to run the subject with its own weights."""
        shared = self.float64_parameters
        if self.export_failure is not None:
            return SubjectExecution(self.subject, None, float64_parameters=shared)
        failure = self.graph_mismatch
        if failure is None and self.captured.branches:
            failure = f"it is that of one branch: {self.captured.branches[0].place}"
        runs = SubjectExecution(self.subject, self.captured, graph_failure=failure, float64_parameters=shared)
        if self.recording.compared is not None:
            runs.remember(*self.recording.compared)
        return runs

    @cached_property
    def low_rank_execution(self) -> SubjectExecution:
        """How to run a copy of the module in which large matrices have low rank: calls of it take a short time."""
        failure = "the graph has the weights of the module"
        return replace(
            self.execution, weights="low rank", graph_failure=failure, float64_parameters=Float64Parameters()
        )

    def random_execution(self, seed: int) -> SubjectExecution:
        """How to run the subject with random weights: a copy of the module, or its graph if it cannot be copied."""
        wide = Float64Parameters(on_use=self.float64_parameters.on_use)
        runs = replace(self.execution, weights="random", seed=seed, float64_parameters=wide)
        if not runs.runs_graph:
            try:
                runs.copied_module("model")
            except ExecutorUnavailable:
                runs.run_graph = runs.captured is not None and runs.graph_failure is None
        return runs

    def free_float64_copies(self) -> None:
        """Free the float64 copies of the model, which are twice as large as the model; a later run makes them again."""
        self.float64_parameters.clear()
        for context in (self, vars(self).get("_from_whole_image", self)):
            for name in ("execution", "low_rank_execution"):
                vars(context).pop(name, None)
        for context in (*self._modes.values(), *self._runs.values(), *self._with_rows.values()):
            if isinstance(context, AuditContext):
                context.free_float64_copies()

    @cached_property
    def first_state(self) -> OwnedState:
        """The state of the module that is run, at the time when it is first asked for."""
        return owned_state(self.runnable.subject.module)

    @cached_property
    def open_calls(self) -> OpenCalls:
        """The recordings of the subject with open numbers of rows and tokens."""
        return OpenCalls(self.subject)

    @cached_property
    def open_rows(self) -> OpenCalls:
        """The recordings of the subject with an open number of rows, at the length of this call."""
        return OpenCalls(self.subject, self.length)

    def open_calls_of(self, open_length: bool) -> OpenCalls:  # noqa: FBT001 - the one thing in which they differ
        """The recordings with an open length, or those without."""
        return self.open_calls if open_length else self.open_rows

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
        """The token dimensions as a law reads them: to laws of whole rows, attention weights and windows are one."""
        dims = self.output_dims[output]
        return () if law.replaces_whole_rows and (len(dims) > 1 or any(dim.prefix_length < 0 for dim in dims)) else dims
