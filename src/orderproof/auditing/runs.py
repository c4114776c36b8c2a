"""Run a subject on numbers: its outputs by name, in float32 and in float64, on tokens of any length.

A subject whose input is cut out of the middle of its graph (vision: the patch embeddings) is run by its
graph from there; every other subject is run itself. Nothing here decides anything.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.prover.capture import Captured
from orderproof.prover.capture import named as leaves_by_name
from orderproof.prover.run import run, steps
from orderproof.subjects import Subject
from orderproof.subjects.subject import Axis


@dataclass
class Tokens:
    """Inputs of one run, and a name for each token."""

    inputs: tuple[Tensor, ...]
    labels: tuple[str, ...]


@dataclass
class Runs:
    """How to run one subject; `captured` is needed where the subject is cut."""

    subject: Subject
    captured: Captured | None
    by_graph: bool = False  # run the captured graph (which may have been rewritten), not the module
    weights: str = "given"  # "random": every parameter drawn anew around its value
    seed: int = 0
    _modules: dict[bool, nn.Module] = field(default_factory=dict, repr=False)
    _base: tuple[Tensor, ...] = field(default=(), repr=False)

    @property
    def one_length(self) -> bool:
        """Whether only the captured length can be run."""
        return self.by_graph or self.subject.cut is not None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The token axis of each tensor `draw` gives."""
        return (1,) if self.subject.cut else self.subject.token_axes

    def draw(self, length: int, seed: int) -> Tokens:
        """Random tokens."""
        sample = self.subject.sample(length, seed)
        if not self.subject.cut:
            return Tokens(sample.inputs, sample.tokens)
        assert self.captured is not None
        self._base = sample.inputs
        with torch.no_grad():
            start = next(v for n, v in steps(self.captured, sample.inputs) if n is self.captured.start)
        return Tokens((start,), tuple(f"patch {i}" for i in range(start.shape[1])))

    def outputs(self, inputs: tuple[Tensor, ...], *, double: bool = False) -> dict[str, Tensor]:
        """The named outputs, for the same random numbers in every run where a model draws any."""
        with same_draws():
            return self._outputs(inputs, double=double)

    def _outputs(self, inputs: tuple[Tensor, ...], *, double: bool) -> dict[str, Tensor]:
        if self.by_graph or self.subject.cut:
            assert self.captured is not None
            if not self.subject.cut:
                return run(self.captured, inputs, float64=double, state=self._state())
            return run(self.captured, self._base, start=inputs[0], float64=double, state=self._state())
        if double:
            inputs = tuple(x.double() if x.is_floating_point() else x for x in inputs)
        try:
            with torch.no_grad():
                return named(self._module(double=double)(*[x.clone() for x in inputs]))
        except RuntimeError:
            # A model that names float32 inside cannot be widened as a module; its graph can, at its own length.
            if not double or self.captured is None or not self._fits(inputs):
                raise
            return run(self.captured, inputs, float64=True, state=self._state())

    def _fits(self, inputs: tuple[Tensor, ...]) -> bool:
        assert self.captured is not None
        shapes = [tuple(int(s) for s in n.meta["val"].shape) for n in self.captured.inputs]
        return shapes == [tuple(x.shape) for x in inputs]

    def _module(self, *, double: bool) -> nn.Module:
        if double not in self._modules:
            module = self.subject.module
            if self.weights == "random":
                module = redrawn(copy.deepcopy(module), self.seed)
            self._modules[double] = copy.deepcopy(module).double() if double else module
        return self._modules[double]

    def _state(self) -> dict[str, Tensor] | None:
        """The parameters drawn anew, for the graph; None for its own."""
        if self.weights != "random" or self.captured is None:
            return None
        generator = torch.Generator().manual_seed(self.seed)
        return {
            name: _perturbed(value, generator) if name in self.captured.parameters else value
            for name, value in self.captured.values.items()
        }


@contextmanager
def same_draws() -> Iterator[None]:
    """Let what is drawn in two runs be the same: what differs then, differs because their inputs do."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def redrawn(module: nn.Module, seed: int) -> nn.Module:
    """Every floating parameter moved away from its value, so that a zero hides nothing."""
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


def named(made: Any) -> dict[str, Tensor]:
    """The tensors of whatever a module returned, by name."""
    return {name: leaf for name, leaf in leaves_by_name(made).items() if isinstance(leaf, Tensor)}
