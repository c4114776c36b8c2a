"""Runs of a subject: its outputs by name, in its own dtype and in float64, on tokens of any length.

A subject whose input is inside its graph (vision: the patch embeddings) is run by its graph from there; every other
subject is run as a module. In float64 a copy of the module is run, or the recorded graph at its own length.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.cast_on_use import cast_tensor
from orderproof.diagnosis.counterexample import Executor
from orderproof.diagnosis.rounding_noise import RoundingNoise
from orderproof.errors import CaptureError, failure_reason
from orderproof.library_messages import suppress_warnings
from orderproof.models import Subject
from orderproof.models.subject import Axis
from orderproof.recording.captured_graph import CapturedGraph, leaves_by_name
from orderproof.recording.execution import execute, execute_nodes
from orderproof.recording.float64_parameters import Float64Parameters
from orderproof.recording.low_rank import low_rank_copy, low_rank_weights, with_replacements
from orderproof.recording.owned_state import OwnedState, owned_state
from orderproof.recording.restored_state import changes_state, restored_state
from orderproof.recording.source import source_of_error
from orderproof.seeded_random import seeded_random

MOST_KNOWN_NUMBERS = 4_000_000  # in the outputs of runs that are remembered


@dataclass
class LabelledInputs:
    """The inputs of one run, and a name for each token."""

    inputs: tuple[Tensor, ...]
    labels: tuple[str, ...]


class ExecutorUnavailable(CaptureError):
    """A subject cannot be run so: it has no copy, or no recorded graph for inputs of this shape."""


@dataclass
class SubjectExecution:
    """How to run one subject; `captured` is needed if its input is inside the graph."""

    subject: Subject
    captured: CapturedGraph | None
    run_graph: bool = False  # run the captured graph (which may have been rewritten), not the module
    weights: str = "given"  # "random": every parameter with noise added; "low rank": large matrices have low rank
    seed: int = 0
    graph_failure: str | None = None  # how the outputs of the graph differ from the module's
    restores_state: bool = False  # each run starts in the same state, whether or not the recorded call changes it
    float64_parameters: Float64Parameters = field(default_factory=Float64Parameters, repr=False)
    copy_failure: str = field(default="", init=False)  # why the module could not be copied
    float64_failure: str = field(default="", init=False)  # why its copy could not be run in float64
    graph_float64_failure: str = field(default="", init=False)  # why its graph could not be run in float64
    _copies: dict[Executor, nn.Module] = field(default_factory=dict, init=False, repr=False)
    _reached: dict[nn.Module, OwnedState] = field(default_factory=dict, init=False, repr=False)
    _known: dict[Hashable, dict[str, Tensor]] = field(default_factory=dict, init=False, repr=False)
    _repeated: dict[Hashable, dict[str, Tensor]] = field(default_factory=dict, init=False, repr=False)
    _noises: dict[Hashable, RoundingNoise] = field(default_factory=dict, init=False, repr=False)
    _exact: set[Hashable] = field(default_factory=set, init=False, repr=False)  # runs in float64 throughout
    graph_inputs: tuple[Tensor, ...] = field(default=(), repr=False)

    @property
    def runs_graph(self) -> bool:
        """True if the graph is run, not the module."""
        return self.run_graph or self.subject.patch_embedding_path is not None

    @property
    def has_fixed_length(self) -> bool:
        """True if only the captured length can be run."""
        return self.runs_graph

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The token axis of each tensor of a sample."""
        return (1,) if self.subject.patch_embedding_path else self.subject.token_axes

    def sample_tokens(self, length: int, seed: int) -> LabelledInputs:
        """Random tokens."""
        sample = self.subject.sample(length, seed)
        if not self.subject.patch_embedding_path:
            return LabelledInputs(sample.inputs, sample.labels)
        assert self.captured is not None
        self.graph_inputs = sample.inputs
        with torch.no_grad():
            start = next(v for n, v in execute_nodes(self.captured, sample.inputs) if n is self.captured.start)
        return LabelledInputs((start,), tuple(f"patch {i}" for i in range(start.shape[1])))

    def outputs(self, inputs: tuple[Tensor, ...], executor: Executor = "model") -> dict[str, Tensor]:
        """The outputs by name; a model that draws random numbers draws the same in every run.

        Raises `ExecutorUnavailable`, and what the model raises.
        """
        with seeded_random(0):
            if self.runs_graph:
                return self._outputs_of_graph(inputs, executor)
            if executor == "float64 graph":
                if self.captured is None or self.graph_failure is not None or not self._fits(inputs):
                    raise ExecutorUnavailable("no recorded graph for these inputs")
                try:
                    return execute(self.captured, inputs, float64=True, state=self._state(float64=True))
                except Exception as error:
                    self.graph_float64_failure = failure_reason(error)
                    raise
            return self._outputs_of_module(inputs, executor)

    def known_outputs(self, inputs: tuple[Tensor, ...], executor: Executor = "model") -> dict[str, Tensor]:
        """The same, from memory if the model was run on equal inputs shortly before.

        Laws and outputs of one call start from the same tokens, and each output compares the same two runs.
        """
        return self._remembered(self._known, inputs, executor)

    def remember(self, inputs: tuple[Tensor, ...], outputs: dict[str, Tensor]) -> None:
        """Take these outputs of the module as known."""
        if not self.runs_graph and self.weights == "given":
            self._known[_key(inputs, "model")] = outputs

    def repeated_outputs(self, inputs: tuple[Tensor, ...], executor: Executor = "model") -> dict[str, Tensor]:
        """The outputs of a second run on the same inputs, from memory if it was made shortly before."""
        return self._remembered(self._repeated, inputs, executor)

    def _remembered(
        self, memory: dict[Hashable, dict[str, Tensor]], inputs: tuple[Tensor, ...], executor: Executor
    ) -> dict[str, Tensor]:
        key = _key(inputs, executor)
        if key not in memory:
            found = self.outputs(inputs, executor)
            if sum(x.numel() for outputs in (*memory.values(), found) for x in outputs.values()) > MOST_KNOWN_NUMBERS:
                memory.clear()
            memory[key] = found
        return memory[key]

    def known_noise(
        self, inputs: tuple[Tensor, ...], executor: Executor, output: str, make: Callable[[], RoundingNoise]
    ) -> RoundingNoise:
        """The rounding error of one output of a run, from memory if it was asked for before."""
        key = (output, _key(inputs, executor))
        if key not in self._noises:
            self._noises[key] = make()
        return self._noises[key]

    def forget_outputs(self) -> None:
        """Run the model again on inputs on which it was run before."""
        self._known.clear()
        self._noises.clear()
        self._repeated.clear()
        self._exact.clear()

    def note_rounds_nowhere(
        self,
        inputs: tuple[Tensor, ...],
        executor: Executor,
        by_operators: bool,  # noqa: FBT001 - as it is called back
    ) -> None:
        """Note that a run in float64 has no part in a narrower dtype, which is so for each of its outputs.

        If that follows from the operators of the run, it is so for all inputs of these shapes: none decides which
        operators run.
        """
        self._exact.add(_key(inputs, executor))
        captured = self.captured
        if by_operators and captured is not None and not (captured.branches or captured.nested):
            self._exact.add(_key_of_shapes(inputs, executor))

    def rounds_nowhere(self, inputs: tuple[Tensor, ...], executor: Executor) -> bool:
        """True if this was noted of an equal run."""
        return not self._exact.isdisjoint((_key_of_shapes(inputs, executor), _key(inputs, executor)))

    def _outputs_of_graph(self, inputs: tuple[Tensor, ...], executor: Executor) -> dict[str, Tensor]:
        if executor == "float64 copy":
            raise ExecutorUnavailable("the graph is run, not the module")
        assert self.captured is not None
        start, given = (inputs[0], self.graph_inputs) if self.subject.patch_embedding_path else (None, inputs)
        wide = executor != "model"
        return execute(self.captured, given, start=start, float64=wide, state=self._state(float64=wide))

    def _outputs_of_module(self, inputs: tuple[Tensor, ...], executor: Executor) -> dict[str, Tensor]:
        as_given = executor == "model" and self.weights == "given"
        module = self.subject.module if as_given else self.copied_module(executor)
        if executor != "model":
            inputs = tuple(x.double() if x.is_floating_point() else x for x in inputs)
        try:
            restores = self.restores_state or changes_state(self.captured)
            with torch.no_grad(), restored_state(module, self._state_of(module)) if restores else nullcontext():
                return named_tensors(module(*[x.clone() for x in inputs]))
        except Exception as error:
            if executor != "model":  # a module that names float32 in its code does not run in float64
                where = source_of_error(error)
                self.float64_failure = f"a float64 copy of the model fails: {failure_reason(error)}{where}"
            raise

    def _state_of(self, module: nn.Module) -> OwnedState:
        """The state of a module. Each run leaves it as it was, and a walk may take longer than a run."""
        if module not in self._reached:
            self._reached[module] = owned_state(module)
        return self._reached[module]

    def _fits(self, inputs: tuple[Tensor, ...]) -> bool:
        assert self.captured is not None
        shapes = [tuple(int(s) for s in n.meta["val"].shape) for n in self.captured.inputs]
        return shapes == [tuple(x.shape) for x in inputs]

    def copied_module(self, executor: Executor) -> nn.Module:
        """The copy that this executor runs. Raises `ExecutorUnavailable` if the module cannot be copied."""
        if executor not in self._copies and not self.copy_failure:
            try:
                with suppress_warnings():  # the copy of a program of torch.export warns of its own classes
                    self._copies[executor] = self._copy(executor)
            except Exception as error:  # noqa: BLE001 - third-party code: copying may fail in any way
                where = _uncopied_attribute(self.subject)
                self.copy_failure = f"the model cannot be copied: {failure_reason(error)}{where}"
        if executor not in self._copies:
            raise ExecutorUnavailable(self.copy_failure)
        return self._copies[executor]

    def _copy(self, executor: Executor) -> nn.Module:
        if self.weights == "low rank":
            return low_rank_copy(self.subject.module, torch.float64 if executor == "float64 copy" else None)
        if executor == "float64 copy":
            own = self.copied_module("model") if self.weights == "random" else self.subject.module
            return self.float64_parameters.convert_module(own)
        module = copy.deepcopy(self.subject.module)
        return perturb_parameters(module, self.seed) if self.weights == "random" else module

    def _state(self, *, float64: bool) -> dict[str, Tensor] | None:
        """The graph's parameters with noise added, or with matrices of low rank; None for its own."""
        if self.weights == "low rank" and self.captured is not None:
            with low_rank_weights(self.subject.module) as replaced:
                found = with_replacements(self.captured.values, replaced)
            return {name: _widened(x) for name, x in found.items()} if float64 else found
        if self.weights != "random" or self.captured is None:
            return None
        generator = torch.Generator().manual_seed(self.seed)
        return {
            name: _perturbed(value, generator) if name in self.captured.parameters else value
            for name, value in self.captured.values.items()
        }


def _widened(x: Tensor) -> Tensor:
    return cast_tensor(x, torch.float64) if x.is_floating_point() else x


def state_as_recorded(module: nn.Module, captured: CapturedGraph | None) -> AbstractContextManager[None]:
    """Undo what the block changes in a module that keeps state: a proof is of one call, in the recorded state."""
    return restored_state(module) if changes_state(captured) else nullcontext()


def _key(inputs: tuple[Tensor, ...], executor: Executor) -> Hashable:
    """Equal for equal runs."""
    return (executor, *((x.dtype, x.shape, _bytes(x)) for x in inputs))


def _key_of_shapes(inputs: tuple[Tensor, ...], executor: Executor) -> Hashable:
    """Equal for runs on inputs of equal shapes."""
    return (executor, *((x.dtype, x.shape) for x in inputs))


def _bytes(x: Tensor) -> bytes:
    """The numbers in a tensor."""
    return x.detach().clone().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()


def _uncopied_attribute(subject: Subject) -> str:
    """`, attribute 'layer.lock'`: the attribute of a module that cannot be copied; empty if none is found."""
    for path, part in subject.module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor) or name in ("_parameters", "_buffers", "_modules"):
                continue
            try:
                copy.deepcopy(value)
            except Exception:  # noqa: BLE001 - third-party code: this is the failure that is located
                return f", attribute {f'{path}.{name}'.removeprefix('.')!r}"
    return ""


def perturb_parameters(module: nn.Module, seed: int) -> nn.Module:
    """The module with noise added to each floating-point parameter, so that no zero hides a dependence."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(_perturbed(parameter, generator))
    return module


def _perturbed(value: Tensor, generator: torch.Generator) -> Tensor:
    if not value.is_floating_point():
        return value
    spread = float(value.float().std()) if value.numel() > 1 else 0.0
    noise = torch.randn(value.shape, generator=generator) * max(spread, 0.2)
    return value + noise.to(value.dtype)


def named_tensors(outputs: Any) -> dict[str, Tensor]:
    """The tensors among the outputs of a module, by name."""
    return {name: leaf for name, leaf in leaves_by_name(outputs).items() if isinstance(leaf, Tensor)}
