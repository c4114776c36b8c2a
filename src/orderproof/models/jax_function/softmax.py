"""Recognizes softmax, which JAX writes as exponentials of differences divided by their sum.

`exp(x - m) / sum(exp(x - m))` with `m` the maximum of `x` along the axis of the sum is the softmax of `x`: the same
number is subtracted from every entry of the axis and cancels. A row of -inf gives NaN in both forms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from orderproof.models.jax_function.equation import Atom, Equation, read_equations
from orderproof.models.jax_function.primitive import Primitive, Value, primitive

NAME = "softmax of equations"  # no primitive of JAX has a space in its name


@primitive(NAME)
def softmax(call: Primitive) -> Value:
    """Softmax along an axis."""
    return torch.softmax(call.tensor(0), call.param("axis"))


def with_softmax(equations: Sequence[Equation], outputs: Sequence[int | Atom]) -> list[Equation]:
    """Equations with one of softmax for those that compute it, without equations that nothing reads any more."""
    found = _Equations(equations)
    changed = [found.softmax_at(e) or e for e in equations]
    return read_equations(changed, outputs) if changed != list(equations) else changed


class _Equations:
    def __init__(self, equations: Sequence[Equation]) -> None:
        self.by_output = {v: e for e in equations for v in e.outputs}

    def softmax_at(self, quotient: Equation) -> Equation | None:
        """The softmax that a quotient is; None if it is another one."""
        if quotient.name != "div" or len(quotient.shapes[0]) == 0:
            return None
        top, bottom = quotient.inputs
        exponential = self._named(top, "exp")
        difference = self._named(exponential.inputs[0], "sub") if exponential else None
        if difference is None:
            return None
        x, shift = difference.inputs
        total = self._kept_axis(bottom, "reduce_sum", quotient.shapes[0])
        largest = self._kept_axis(shift, "reduce_max", quotient.shapes[0])
        if total is None or largest is None or total[0] != top or largest[0] != x or total[1] != largest[1]:
            return None
        return replace(
            quotient, name=NAME, inputs=(x,), input_dtypes=quotient.input_dtypes[:1], params={"axis": total[1]},
            open_params=(), function=softmax,
        )  # fmt: skip

    def _named(self, atom: int | Atom, name: str) -> Equation | None:
        found = self.by_output.get(atom) if isinstance(atom, int) else None
        return found if found is not None and found.name == name else None

    def _kept_axis(self, atom: int | Atom, name: str, shape: Sequence[Any]) -> tuple[int | Atom, int] | None:
        """The input of a reduction along one axis, and the axis, if it stays with one entry or is repeated."""
        restored: Equation | None = None
        for _ in range(8):
            e = self.by_output.get(atom) if isinstance(atom, int) else None
            if e is None:
                return None
            if e.name in ("broadcast_in_dim", "reshape") and restored is None:
                restored, atom = e, e.inputs[0]
            elif e.name in ("stop_gradient", "copy"):
                atom = e.inputs[0]
            elif e.name == "max" and any(isinstance(i, Atom) and i.number == -math.inf for i in e.inputs):
                atom = next((i for i in e.inputs if isinstance(i, int)), Atom())
            elif e.name == name and len(e.params["axes"]) == 1 and restored is not None:
                axis = int(e.params["axes"][0])
                return (e.inputs[0], axis) if _restores(restored, axis, shape) else None
            else:
                return None
        return None


def _restores(e: Equation, axis: int, shape: Sequence[Any]) -> bool:
    """True if an equation gives a reduced tensor its axis back, of size one or repeated."""
    sizes, expected = [str(n) for n in e.shapes[0]], [str(n) for n in shape]
    one = [*expected[:axis], "1", *expected[axis + 1 :]]
    if e.name == "reshape":
        return sizes == one
    places: Mapping[int, int] = dict(enumerate(int(d) for d in e.params["broadcast_dimensions"]))
    others = [d for d in range(len(expected)) if d != axis]
    return list(places.values()) == others and sizes in (one, expected)
