"""A model of JAX as a module of torch: its weights, and a program for open sizes or for each shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError
from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.models.jax_function.loops import Loop
from orderproof.models.jax_function.process import JaxProcess
from orderproof.models.jax_function.program import JaxProgram
from orderproof.models.stored_weights import hold
from orderproof.recording.recording import needs_operators


class JaxModule(nn.Module):
    """A model that a process of JAX holds.

    Its call is JAX's own once `calls_jax` is set. A recording, a copy in another dtype or with other weights, and every
    call before, run the program that JAX traced with operators of torch.

    Args:
        process: The process with the model.
        weights: The weights by name, in the order of the program.
        open_program: The program for open sizes, if there is one.

    """

    real: Tensor

    def __init__(self, process: JaxProcess, weights: Mapping[str, Tensor], open_program: JaxProgram | None) -> None:
        super().__init__()
        self.process = process
        self.loop = Loop()  # a module of this package in which a recording finds loops
        self.calls_jax = False
        self.weights = nn.Module()  # apart from the names of this class
        self.places = [hold(self.weights, name, x, weight=x.is_floating_point()) for name, x in weights.items()]
        self.register_buffer("real", torch.zeros(()), persistent=False)
        if open_program is not None:
            self.add_module("program", open_program)
        self.has_open_program = open_program is not None
        process.weights = [x.detach().clone() for x in self.parameters()]

    def forward(self, *inputs: Tensor) -> dict[str, Tensor]:
        """The outputs by name. Raises `SubjectError` for shapes that JAX refuses."""
        can_call = not needs_operators() and self._has_own_weights()
        if can_call and self.calls_jax:
            return self.process.call(inputs)
        program, known = self._program_of(inputs)
        if can_call and program.why_unreadable:
            return self.process.call(inputs)
        weights = [getattr(place, name) for place, name in self.places]
        found: dict[str, Tensor] = program([*weights, *inputs], known, self.real.dtype)
        return found

    def _has_own_weights(self) -> bool:
        """True if the weights are those of the process, which a copy may have changed."""
        if self.real.dtype is not torch.float32:
            return False
        held = list(self.parameters())
        state = tuple((x.data_ptr(), x._version) for x in held)
        known = _compared.get(self)
        if known is None or known[0] != state:
            own = self.process.weights
            known = _compared[self] = state, all(torch.equal(a, b) for a, b in zip(held, own, strict=True))
        return known[1]

    def why_unreadable(self, inputs: Sequence[Tensor]) -> str:
        """Why the program for these inputs cannot run with operators of torch; empty if it can."""
        return self._program_of(inputs)[0].why_unreadable

    def _program_of(self, inputs: Sequence[Tensor]) -> tuple[JaxProgram, dict[str, Any]]:
        if self.has_open_program:
            program = self.get_submodule("program")
            assert isinstance(program, JaxProgram)
            known = program.sizes_of(inputs)
            if known is not None:
                return program, known
        shapes = tuple(tuple(int(n) for n in x.shape) for x in inputs)
        programs = _programs.setdefault(self.process, {})
        key = self.process.spec, shapes
        if key not in programs:
            programs[key] = traced(self.process, shapes, {}, has_weights=not self.places)
        return programs[key], {}


# Kept outside of the modules, whose state a call must not change.
_programs: WeakKeyDictionary[JaxProcess, dict[Any, JaxProgram]] = WeakKeyDictionary()  # by model and shapes
_compared: WeakKeyDictionary[JaxModule, tuple[Any, bool]] = WeakKeyDictionary()


def traced(
    process: JaxProcess, shapes: Sequence[Sequence[int | str]], limits: Mapping[str, int], *, has_weights: bool
) -> JaxProgram:
    """The program that JAX traces for shapes. Raises `SubjectError` with what JAX says."""
    conditions = [f"{name} <= {number}" for name, number in limits.items()]
    head, constants = process.ask({"do": "trace", "shapes": [list(s) for s in shapes], "limits": conditions})
    return JaxProgram(head, constants, shapes, limits, has_weights=has_weights)


class NamedInputs(PassesKeywordsOn):
    """A model of several inputs, which are given by name."""

    def __init__(self, model: JaxModule, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, tuple(names)

    def free_arguments(self) -> dict[str, Any]:
        """None: the example inputs are all that it takes."""
        return {}

    def _gives(self, name: str, place: int) -> bool:
        del name, place
        return True

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        """The outputs by name."""
        missing = [name for name in self.names if name not in inputs]
        if missing:
            raise SubjectError(f"expected an input {missing[0]!r}")
        return self.model(*(inputs[name] for name in self.names))  # type: ignore[no-any-return]
