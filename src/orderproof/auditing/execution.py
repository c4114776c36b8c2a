"""Runs of a subject: its outputs by name, in float32 and in float64, on tokens of any length.

A subject whose input is inside its graph (vision: the patch embeddings) is run by its graph from there; every other
subject is run as a module.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.models import Subject
from orderproof.models.subject import Axis
from orderproof.prover.captured_graph import CapturedGraph, leaves_by_name
from orderproof.prover.execution import execute, execute_nodes
from orderproof.prover.float64_parameters import Float64Parameters


@dataclass
class LabelledInputs:
    """The inputs of one run, and a name for each token."""

    inputs: tuple[Tensor, ...]
    labels: tuple[str, ...]


@dataclass
class SubjectExecution:
    """How to run one subject; `captured` is needed if its input is inside the graph."""

    subject: Subject
    captured: CapturedGraph | None
    run_graph: bool = False  # run the captured graph (which may have been rewritten), not the module
    weights: str = "given"  # "random": every parameter with noise added
    seed: int = 0
    float64_parameters: Float64Parameters = field(default_factory=Float64Parameters, repr=False)
    _modules: dict[bool, nn.Module] = field(default_factory=dict, repr=False)
    graph_inputs: tuple[Tensor, ...] = field(default=(), repr=False)

    @property
    def has_fixed_length(self) -> bool:
        """True if only the captured length can be run."""
        return self.run_graph or self.subject.patch_embedding_path is not None

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

    def outputs(self, inputs: tuple[Tensor, ...], *, double: bool = False) -> dict[str, Tensor]:
        """The outputs by name; a model that draws random numbers draws the same in every run."""
        with fixed_rng():
            return self._outputs(inputs, double=double)

    def _outputs(self, inputs: tuple[Tensor, ...], *, double: bool) -> dict[str, Tensor]:
        if self.run_graph or self.subject.patch_embedding_path:
            assert self.captured is not None
            if not self.subject.patch_embedding_path:
                return execute(self.captured, inputs, float64=double, state=self._state())
            return execute(self.captured, self.graph_inputs, start=inputs[0], float64=double, state=self._state())
        if double:
            inputs = tuple(x.double() if x.is_floating_point() else x for x in inputs)
        try:
            with torch.no_grad():
                return named_tensors(self._module(double=double)(*[x.clone() for x in inputs]))
        except RuntimeError:
            # A module that names float32 in its code cannot run in float64; its graph can, at its own length.
            if not double or self.captured is None or not self._fits(inputs):
                raise
            return execute(self.captured, inputs, float64=True, state=self._state())

    def _fits(self, inputs: tuple[Tensor, ...]) -> bool:
        assert self.captured is not None
        shapes = [tuple(int(s) for s in n.meta["val"].shape) for n in self.captured.inputs]
        return shapes == [tuple(x.shape) for x in inputs]

    def _module(self, *, double: bool) -> nn.Module:
        if double not in self._modules:
            if double:
                self._modules[double] = self.float64_parameters.convert_module(self._module(double=False))
            elif self.weights == "random":
                self._modules[double] = perturb_parameters(copy.deepcopy(self.subject.module), self.seed)
            else:
                self._modules[double] = self.subject.module
        return self._modules[double]

    def _state(self) -> dict[str, Tensor] | None:
        """The graph's parameters with noise added; None for its own."""
        if self.weights != "random" or self.captured is None:
            return None
        generator = torch.Generator().manual_seed(self.seed)
        return {
            name: _perturbed(value, generator) if name in self.captured.parameters else value
            for name, value in self.captured.values.items()
        }


@contextmanager
def fixed_rng() -> Iterator[None]:
    """Seed the random numbers of a run, so that two runs differ only by their inputs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


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
