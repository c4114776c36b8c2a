"""The fact about one tensor of an open graph: at which elements two runs agree, as a formula over the indices.

A dimension is a product of axes, so that the merged dimension of `x.view(batch * tokens, width)` keeps its two axes and
can be taken apart again; a dimension of size one has none. The index of axis k, counted over all dimensions, is the
variable `xk`. Where the formula `same` is true, the element is the same in both runs.

A mask decides which elements an output depends on, so a fact also follows values: the exact value of an integer as a
term, of a boolean as a formula, of a floating-point number as a list of cases; and for numbers without a known value
where they are zero, where they are as negative as a mask, and where they may be anything. Elsewhere a number is
ordinary: finite and small next to a mask (`number_limits.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Conditional,
    Formula,
    Term,
    Variable,
    as_term,
    conjunction,
    disjunction,
    product,
    variable,
)
from orderproof.number_limits import largest_ordinary, masking_threshold

Axes = tuple[Term, ...]  # sizes of the axes of a dimension; empty for size one
Number = float | int | bool
MAX_CASES = 16


class NotCovered(Exception):
    """No rule covers an operator on these facts; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Cases:
    """A number by cases: conditions that exclude each other and cover everything, each with its number."""

    pairs: tuple[tuple[Formula, Number], ...]

    def where(self, test: Callable[[Any], bool]) -> Formula:
        """The condition under which the number passes a test."""
        return disjunction(*(condition for condition, number in self.pairs if test(number)))


Value = Term | Formula | Cases


@dataclass(frozen=True, slots=True)
class OpenFact:
    """The fact about one tensor.

    Attributes:
        dims: The axes of each dimension.
        dtype: The dtype of the tensor.
        same: Where both runs agree.
        value: The value in both runs, if it is known for all elements; then `same` is true.
        hidden: Where a number without a value is as negative as a mask.
        zero: Where it is zero.
        unbounded: Where it may be infinite, NaN or as large as a mask.
        low: Where a number that is unbounded is ordinary or any lower number.

    """

    dims: tuple[Axes, ...]
    dtype: torch.dtype
    same: Formula = TRUE
    value: Value | None = None
    hidden: Formula = FALSE
    zero: Formula = FALSE
    unbounded: Formula = FALSE
    low: Formula = FALSE

    @property
    def sizes(self) -> Axes:
        """The sizes of all axes."""
        return tuple(size for axes in self.dims for size in axes)

    @property
    def shape(self) -> tuple[Term, ...]:
        """The sizes of all dimensions."""
        return tuple(map(size_of, self.dims))

    def first_axis(self, dim: int) -> int:
        """The number of the first axis of a dimension."""
        return sum(len(axes) for axes in self.dims[:dim])

    def indices(self, dim: int) -> list[Term]:
        """The index variables of a dimension."""
        first = self.first_axis(dim)
        return [index(first + k) for k in range(len(self.dims[dim]))]

    @property
    def parts(self) -> list[Formula | Term]:
        """Every formula and term of the fact."""
        values: list[Formula | Term] = [self.same, self.hidden, self.zero, self.unbounded, self.low]
        if isinstance(self.value, Cases):
            values += [condition for condition, _ in self.value.pairs]
        elif self.value is not None:
            values.append(self.value)
        return values

    def uses(self, dim: int) -> bool:
        """True if some part of the fact depends on the index along a dimension."""
        used = frozenset().union(*(part.variables for part in self.parts))
        return any(one.variables & used for one in self.indices(dim))

    def at(
        self, dims: Sequence[Axes], terms: Sequence[Term], others: Mapping[Variable, Term] | None = None
    ) -> OpenFact:
        """The fact about a tensor of other dimensions, whose element is the one at these indices of this tensor.

        Args:
            dims: The axes of each dimension.
            terms: The indices in this tensor.
            others: Terms for further variables of the fact.

        """
        used = frozenset().union(*(part.variables for part in self.parts))
        mapping = {axis_variable(k): term for k, term in enumerate(terms) if axis_variable(k) in used}
        substitute = _substitution(tuple({**mapping, **(others or {})}.items()))
        value: Value | None = self.value
        if isinstance(value, Cases):
            value = Cases(tuple((substitute.formula(c), number) for c, number in value.pairs))
        elif isinstance(value, Formula):
            value = substitute.formula(value)
        elif value is not None:
            value = substitute.term(value)
        return OpenFact(
            tuple(dims), self.dtype, substitute.formula(self.same), value, substitute.formula(self.hidden),
            substitute.formula(self.zero), substitute.formula(self.unbounded), substitute.formula(self.low),
        )  # fmt: skip

    def without_value(self) -> OpenFact:
        """The same fact with nothing known of the value."""
        ranges = self.ranges()
        ordinary = ranges.hidden is FALSE and ranges.unbounded is FALSE
        return OpenFact(self.dims, self.dtype, self.same, unbounded=FALSE if ordinary else TRUE)

    def ranges(self) -> Ranges:
        """Where the number is hidden, zero or unbounded, whether its value is known or not."""
        cases = as_cases(self.value)
        if cases is None:
            large = isinstance(self.value, Term) and self.value.magnitude >= largest_ordinary()
            zero = _where_zero(self.value) if isinstance(self.value, Term) else self.zero
            return Ranges(self.hidden, zero, TRUE if large else self.unbounded, self.low)
        limit = masking_threshold(self.dtype)
        return Ranges(
            cases.where(lambda v: v <= -limit),
            cases.where(lambda v: v == 0),
            cases.where(lambda v: not (v <= -limit or abs(v) < largest_ordinary())),
            cases.where(lambda v: -limit < v <= -largest_ordinary()),
            cases.where(lambda v: 0 < abs(v) <= 1 / largest_ordinary()),
        )

    def describe(self) -> str:
        """One line for a report."""
        text = "the same in both runs" if self.same is TRUE else f"the same where {self.same}"
        return text if self.hidden is FALSE else f"{text}; hidden where {self.hidden}"


@dataclass(frozen=True, slots=True)
class Ranges:
    """Where a number is as negative as a mask, zero, or may be anything; of the last, where it is low.

    Where it is known to be `tiny`, it is not zero, but its inverse is no ordinary number.
    """

    hidden: Formula = FALSE
    zero: Formula = FALSE
    unbounded: Formula = FALSE
    low: Formula = FALSE
    tiny: Formula = FALSE

    @property
    def finite(self) -> Formula:
        """Where the number is neither hidden nor unbounded."""
        return ~(self.hidden | self.unbounded)

    @property
    def at_most_ordinary(self) -> Formula:
        """Where the number is ordinary or any lower number, -inf included: not NaN."""
        return ~self.unbounded | self.low


@lru_cache(maxsize=256)
def _substitution(terms: tuple[tuple[Variable, Term], ...]) -> Substitution:
    """The substitution of these terms: facts about many tensors are read at the same indices."""
    return Substitution(dict(terms))


@cache
def axis_variable(k: int) -> Variable:
    """The index variable of axis k."""
    (found,) = variable(f"x{k}").variables
    return found


@cache
def index(k: int) -> Term:
    """The index variable of axis k as a term."""
    return as_term(axis_variable(k))


def dims_of(shape: Sequence[Term]) -> tuple[Axes, ...]:
    """The dimensions of a shape, with one axis each."""
    return tuple(() if size.is_constant and size.constant == 1 else (size,) for size in shape)


def size_of(axes: Axes) -> Term:
    """The size of a dimension."""
    return axes[0] if len(axes) == 1 else product(axes)


def as_cases(value: Value | None) -> Cases | None:
    """A value by cases; None if it has none, or too many."""
    if isinstance(value, Cases) or value is None:
        return value
    if isinstance(value, Formula):
        return Cases(tuple((c, v) for c, v in ((value, True), (~value, False)) if c is not FALSE))
    found = _integer_cases(value)
    return None if found is None or len(found) > MAX_CASES else Cases(tuple(found))


def _where_zero(term: Term) -> Formula:
    """Where a term is zero by the choices of which it consists."""
    if term.is_constant:
        return FALSE if term.constant else TRUE
    if len(term.summands) > 1 or term.constant or not isinstance(term.summands[0][0], Conditional):
        return FALSE
    condition, first, second = term.summands[0][0].parts
    return disjunction(conjunction(condition, _where_zero(first)), conjunction(~condition, _where_zero(second)))


def _integer_cases(term: Term) -> list[tuple[Formula, Number]] | None:
    if term.is_constant:
        return [(TRUE, term.constant)]
    for atom, factor in term.summands:
        if isinstance(atom, Conditional):
            condition, first, second = atom.parts
            rest = term - as_term(atom) * factor
            found = [
                (condition, _integer_cases(rest + first * factor)),
                (~condition, _integer_cases(rest + second * factor)),
            ]
            if any(cases is None or len(cases) > MAX_CASES for _, cases in found):
                return None
            return [
                (both, number)
                for condition, cases in found
                for inner, number in cases or ()
                if (both := conjunction(condition, inner)) is not FALSE
            ]
    return None


def merged_cases(pairs: Sequence[tuple[Formula, Number]]) -> Cases | None:
    """Cases with one condition for each number; None if there are too many numbers."""
    by_number: dict[str, tuple[list[Formula], Number]] = {}
    for condition, number in pairs:
        if condition is not FALSE:
            by_number.setdefault(repr(number), ([], number))[0].append(condition)
    if len(by_number) > MAX_CASES:
        return None
    return Cases(tuple((disjunction(*conditions), number) for conditions, number in by_number.values()))
