"""Comparisons of counts that a program keeps as float32, done with integers: `arange(n, dtype="float32")` in a mask.

float32 holds every integer up to 2**24. So numbers that are computed from counts by sums and by products with integers
are exact while none is larger, and compare as the integers do. For longer inputs the program is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orderproof.models.jax_function.equation import Atom, Equation, read_equations
from orderproof.models.jax_function.sizes import OpenSize

LARGEST = 1 << 24  # every integer up to it is in float32
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_MOVED = (
    "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "rev", "copy", "stop_gradient", "neg",
    "convert_element_type",
)  # fmt: skip


@dataclass(frozen=True)
class _Bound:
    """The largest absolute value of an integer: `factor` times the largest of some open sizes, and a number more.

    With open sizes of at most `longest`, it and what it is computed from are exact.
    """

    factor: int
    number: int
    names: frozenset[str] = frozenset()  # of the open sizes
    longest: int = LARGEST

    def within(self, *parts: _Bound) -> _Bound:
        """The same, computed from parts that are exact too."""
        own = (LARGEST - self.number) // self.factor if self.factor else LARGEST if self.number <= LARGEST else 0
        names = self.names.union(*(part.names for part in parts))
        return replace(self, names=names, longest=min([own, *(part.longest for part in parts)]))


def with_exact_counts(
    equations: Sequence[Equation], outputs: Sequence[int | Atom]
) -> tuple[list[Equation], dict[str, int]]:
    """Equations that compare counts as integers; and the largest open sizes for which that is the same, by name."""
    counts = _Counts()
    found = [new for e in equations for new in counts.of(e)]
    return (read_equations(found, outputs), counts.limits) if counts.are_compared else (list(equations), {})


class _Counts:
    """The variables that are integers, each with a variable that has the same values in int64."""

    def __init__(self) -> None:
        self.bounds: dict[int, _Bound] = {}
        self.limits: dict[str, int] = {}
        self.are_compared = False

    def of(self, e: Equation) -> list[Equation]:
        """The equations in the place of one."""
        bounds = [self._bound_of(x) for x in e.inputs]
        exact = [b for b in bounds if b is not None]
        if len(exact) == len(bounds) and "float32" in e.input_dtypes and _reads_integers(e):
            self.are_compared = True
            for each in exact:
                self.limits |= {n: min(each.longest, self.limits.get(n, LARGEST)) for n in each.names}
            e = replace(e, inputs=tuple(map(_twin, e.inputs)), input_dtypes=("int64",) * len(e.inputs))
        if e.dtypes not in (("float32",), ("int32",)) or (bound := _bound(e, bounds)) is None or bound.longest < 1:
            return [e]
        self.bounds[e.outputs[0]] = bound
        return [e, _twin_of(e)]

    def _bound_of(self, x: int | Atom) -> _Bound | None:
        if isinstance(x, int):
            return self.bounds.get(x) if x >= 0 else self.bounds[~x]
        known = isinstance(x.number, int | float) and not isinstance(x.number, bool) and float(x.number).is_integer()
        return _Bound(0, abs(int(x.number))).within() if known else None


def _reads_integers(e: Equation) -> bool:
    return e.name in _COMPARISONS or (e.name == "convert_element_type" and e.dtypes == ("int32",))


def _bound(e: Equation, bounds: Sequence[_Bound | None]) -> _Bound | None:
    """The bound of the result of an equation; None if it may not be an integer."""
    if e.name == "iota":
        size = e.shapes[0][int(e.params["dimension"])]
        if not isinstance(size, OpenSize):
            return _Bound(0, int(size)).within()
        return _Bound(1, 0, frozenset({str(size)})).within() if str(size).isidentifier() else None
    exact = [b for b in bounds if b is not None]
    if len(exact) != len(bounds):
        return None
    if e.name in _MOVED:
        return exact[0]
    if e.name in ("add", "sub"):
        a, b = exact
        return _Bound(a.factor + b.factor, a.number + b.number).within(a, b)
    if e.name == "mul" and (constant := next((b for b in exact if not b.factor), None)) is not None:
        other = exact[1 - exact.index(constant)]
        return _Bound(other.factor * constant.number, other.number * constant.number).within(*exact)
    return None


def _twin(x: int | Atom) -> int | Atom:
    """The variable or number in int64. A variable of a program is not negative."""
    return Atom(number=int(x.number)) if isinstance(x, Atom) else ~x if x >= 0 else x


def _twin_of(e: Equation) -> Equation:
    params = {**e.params, "new_dtype": "int64"} if e.name == "convert_element_type" else e.params
    return replace(
        e, inputs=tuple(map(_twin, e.inputs)), input_dtypes=("int64",) * len(e.inputs), outputs=(~e.outputs[0],),
        params=params, dtypes=("int64",),
    )  # fmt: skip
