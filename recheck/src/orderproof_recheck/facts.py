"""A fact: the claim of a certificate about one tensor in both runs, for all sizes.

A dimension is a product of axes; x0, x1, ... are the indices along all axes in order. The predicates are positive, so
that a fact with a stronger condition claims less:

    same       the element is the same in both runs
    zero       it is zero in both runs
    hidden     it is as negative as a mask in both runs
    ordinary   in both runs it is finite and small next to a mask
    low        in both runs it is ordinary or any lower number, -inf included

If the value of a tensor is known, it has no predicates: both runs have the value at every element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, every, if_else, opposite, some
from orderproof_recheck.logic.notation import is_integer, read_formula, read_term, require
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import If, Term, Variable, integer, of_atom, variable
from orderproof_recheck.mask_sizes import mask_limit, ordinary_limit
from orderproof_recheck.places_of_a_run import RunningExtreme

Axes: TypeAlias = tuple[Term, ...]
Number: TypeAlias = float | int | bool
PREDICATES = ("same", "zero", "hidden", "ordinary", "low")
MAX_CASES = 64
INTEGER_LIMITS = {
    "int64": (-(2**63), 2**63 - 1), "int32": (-(2**31), 2**31 - 1), "int16": (-(2**15), 2**15 - 1),
    "int8": (-128, 127), "uint8": (0, 255),
}  # fmt: skip
FLOATS = ("float16", "bfloat16", "float32", "float64")
WHOLE = (*INTEGER_LIMITS, "float64", "float32")  # dtypes of numbers that may be known as an integer
OTHERS = ("bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True)
class Cases:
    """A floating-point number by cases that exclude each other and cover everything."""

    pairs: tuple[tuple[Formula, Number], ...]

    def where(self, test: Callable[[Any], bool]) -> Formula:
        """Where the number passes a test."""
        if all(test(number) for _, number in self.pairs):
            return TRUE
        return some(*(condition for condition, number in self.pairs if test(number)))


Value: TypeAlias = Term | Formula | Cases


def joined_cases(pairs: Iterable[tuple[Formula, Number]]) -> Cases | None:
    """Cases with one condition for each number; None if there are too many."""
    found: dict[str, tuple[Formula, Number]] = {}
    for condition, number in pairs:
        before = found.get(repr(number), (FALSE, number))[0]
        if condition is not FALSE:
            found[repr(number)] = some(before, condition), number
    return Cases(tuple(found.values())) if len(found) <= MAX_CASES else None


def cases_of(value: Value) -> Cases | None:
    """A value by cases; None if it is an integer that is not one of a few."""
    if isinstance(value, Cases):
        return value
    if isinstance(value, Formula):
        return Cases(((value, True), (opposite(value), False)))
    pairs = _integer_cases(value)
    return None if pairs is None else joined_cases(pairs)


def _integer_cases(term: Term) -> list[tuple[Formula, Number]] | None:
    if term.is_integer:
        return [(TRUE, term.constant)]
    for atom, factor in term.summands:
        if isinstance(atom, If):
            condition, first, second = atom.fields
            rest = term - of_atom(atom) * factor
            found: list[tuple[Formula, Number]] = []
            for test, chosen in ((condition, first), (opposite(condition), second)):
                inner = _integer_cases(rest + chosen * factor)
                if inner is None or len(found) + len(inner) > MAX_CASES:
                    return None
                found += [(both, number) for c, number in inner if (both := every(test, c)) is not FALSE]
            return found
    return None


@dataclass(frozen=True)
class Predicates:
    """Where an element is the same, zero, hidden, ordinary and low; a function of indices."""

    same: Formula = TRUE
    zero: Formula = FALSE
    hidden: Formula = FALSE
    ordinary: Formula = TRUE
    low: Formula = FALSE

    @property
    def at_most_ordinary(self) -> Formula:
        """Where an element is ordinary or any lower number."""
        return some(self.ordinary, self.hidden, self.low)

    def items(self) -> list[tuple[str, Formula]]:
        """The predicates by name."""
        return [
            ("same", self.same), ("zero", self.zero), ("hidden", self.hidden), ("ordinary", self.ordinary),
            ("low", self.low),
        ]  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """The fact about one tensor."""

    axes: tuple[Axes, ...]
    dtype: str
    predicates: Predicates
    value: Value | None = None
    zeros_known: Formula = TRUE  # where an element that is zero by a rule is claimed to be
    share: float = 1.0  # of its masking values that is left after scaling
    common: Common | None = field(default=None, compare=False)
    sum_of: tuple[Fact, int] | None = field(default=None, compare=False)  # running, along a dimension
    flip_of: tuple[Fact, int] | None = field(default=None, compare=False)  # along a dimension
    largest: Largest | None = field(default=None, compare=False)
    unit_diagonal: bool = field(default=False, compare=False)  # of its last two dimensions
    endless: Formula = field(default=FALSE, compare=False)  # where it is -inf or NaN
    zero_or_nan: Formula = field(default=FALSE, compare=False)  # where it is the weight of such a score
    lowered: Formula = field(default=FALSE, compare=False)  # where it is zero less a number that is not negative
    of_a_run: Value | None = field(default=None, compare=False)  # see `values_of_a_run`
    running: RunningExtreme | None = field(default=None, compare=False)  # of several results, see `places_of_a_run`

    @property
    def same(self) -> Formula:
        """Where it is the same in both runs."""
        return self.predicates.same

    @property
    def zero(self) -> Formula:
        """Where it is zero."""
        return self.predicates.zero

    @property
    def hidden(self) -> Formula:
        """Where it is as negative as a mask."""
        return self.predicates.hidden

    @property
    def ordinary(self) -> Formula:
        """Where it is finite and small next to a mask."""
        return self.predicates.ordinary

    @property
    def at_most_ordinary(self) -> Formula:
        """Where it is ordinary or any lower number."""
        return self.predicates.at_most_ordinary

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables that occur."""
        value = self.value
        parts = [c for c, _ in value.pairs] if isinstance(value, Cases) else [] if value is None else [value]
        formulas = [self.zeros_known, *(f for _, f in self.predicates.items())]
        return frozenset().union(*(part.variables for part in (*formulas, *parts)))

    @property
    def functions(self) -> frozenset[str]:
        """The functions that occur."""
        value = self.value
        parts = [c for c, _ in value.pairs] if isinstance(value, Cases) else [] if value is None else [value]
        formulas = [f for _, f in self.predicates.items()]
        return frozenset().union(*(part.functions for part in (*formulas, *parts)))

    def without_value(self) -> Fact:
        """The fact without the value, which is the same in both runs."""
        ordinary = TRUE if self.hidden is FALSE and self.ordinary is TRUE else FALSE
        return Fact(self.axes, self.dtype, Predicates(ordinary=ordinary), zeros_known=FALSE)

    @property
    def sizes(self) -> Axes:
        """The sizes of all axes."""
        return tuple(size for axes in self.axes for size in axes)

    def at(self, terms: Sequence[Term]) -> Fact:
        """The fact with terms in place of the indices of all axes. The axes stay those of the tensor."""
        replaced = Replacement({axis(k): t for k, t in enumerate(terms) if index(k) is not t})
        p = self.predicates
        value = self.value
        if isinstance(value, Cases):
            value = Cases(tuple((replaced.formula(c), n) for c, n in value.pairs))
        elif value is not None:
            value = replaced.formula(value) if isinstance(value, Formula) else replaced.term(value)
        moved = Predicates(*(replaced.formula(f) for f in (p.same, p.zero, p.hidden, p.ordinary, p.low)))
        return Fact(self.axes, self.dtype, moved, value, replaced.formula(self.zeros_known), self.share)


@dataclass(frozen=True)
class Common:
    """A tensor without the number that its rows have in common (`common_numbers`).

    Attributes:
        number: The fact of the tensor of these numbers, itself, and if they are added or subtracted, or the step that
            makes them; and what was done with them since.
        rest: The fact about the tensor without it, for all values of further indices of these sizes.
        further: The sizes.
        labels: For each dimension that of the number; None where the number is the same for every index.
        factor: It is a factor, and is not zero; else it is subtracted or added.
        filled: A finite mask has replaced scores.
        weak: It is that of weights of a softmax: next to one of another tensor it is left in its tensor.

    """

    number: tuple[Any, ...]
    rest: Fact
    further: Axes
    labels: tuple[int | None, ...]
    factor: bool = False
    filled: bool = False
    weak: bool = False

    @property
    def along(self) -> frozenset[int]:
        """The dimensions along which the number is the same for every index."""
        return frozenset(d for d, label in enumerate(self.labels) if label is None)


@dataclass(frozen=True)
class Largest:
    """Knowledge of a tensor by the largest score of each row of another one (`largest_scores`).

    Attributes:
        scores: The fact about the scores, itself.
        dim: The dimension along which their rows run.
        dims: For each dimension of the tensor that of the scores; None for another one.
        known: A number, or "ordinary": at the index of the largest score. "ranked": the elements are scores of the
            row. "places": the index is among the elements. "chosen": each element is the index.
            "below": no element is above the score there.
        origin: The step that has found the index, or ranked the scores; empty for what holds at each largest score.

    """

    scores: Fact
    dim: int
    dims: tuple[int | None, ...]
    known: str | float | bool
    origin: str = ""


@cache
def axis(k: int) -> Variable:
    """The index variable of axis k."""
    (found,) = variable(f"x{k}").variables
    return found


def index(k: int) -> Term:
    """The index along axis k."""
    return of_atom(axis(k))


def is_whole(number: object) -> bool:
    """True of a float that is an integer, and not as large as a mask."""
    return type(number) is float and number.is_integer() and abs(number) < ordinary_limit()


def whole_number(value: Value) -> Value:
    """A float by cases that are integers, none as large as a mask, as a term; another value as it is."""
    if not isinstance(value, Cases) or not all(is_whole(number) for _, number in value.pairs):
        return value
    *others, (_, last) = value.pairs
    found = integer(int(last))
    for condition, number in others:
        found = if_else(condition, integer(int(number)), found)
    return found


def _where_zero(term: Term) -> Formula:
    """Where an integer is zero by the conditions in it."""
    if term.is_integer:
        return FALSE if term.constant else TRUE
    atom = term.summands[0][0]
    if len(term.summands) > 1 or term.constant or not isinstance(atom, If):
        return FALSE
    condition, first, second = atom.fields
    return some(every(condition, _where_zero(first)), every(opposite(condition), _where_zero(second)))


def predicates_of(value: Value, dtype: str) -> Predicates:
    """The predicates of a tensor whose value is known."""
    cases = cases_of(value)
    if cases is None:
        assert isinstance(value, Term)
        return Predicates(zero=_where_zero(value), ordinary=TRUE if value.largest_integer < ordinary_limit() else FALSE)
    limit = mask_limit(dtype)
    return Predicates(
        zero=cases.where(lambda v: v == 0),
        hidden=cases.where(lambda v: v <= -limit),
        ordinary=cases.where(lambda v: abs(v) < ordinary_limit()),
        low=cases.where(lambda v: -limit < v <= -ordinary_limit()),
    )


def known(axes: tuple[Axes, ...], dtype: str, value: Value) -> Fact:
    """The fact about a tensor whose value is known."""
    return Fact(axes, dtype, predicates_of(value, dtype), value)


def read_fact(data: Mapping[str, Any], dtype: str) -> Fact:
    """A fact from a certificate. Raises `CertificateError`."""
    require(dtype in (*INTEGER_LIMITS, *FLOATS, *OTHERS), f"expected a dtype; got {str(dtype)[:40]}")
    axes = tuple(tuple(map(read_term, dim)) for dim in data["axes"])
    allowed = {"axes", "value"} if "value" in data else {"axes", "same", "zero", "hidden", "ordinary", "low"}
    require(set(data) <= allowed, "a fact has other fields than its kind")
    if "value" in data:
        fact = known(axes, dtype, read_value(data["value"], dtype))
    else:
        given = {name: read_formula(data[name]) for name in PREDICATES if name in data}
        fact = Fact(axes, dtype, Predicates(**given))
    return fact


def read_value(data: Mapping[str, Any], dtype: str) -> Value:
    """A value from a certificate. Raises `CertificateError`."""
    ((kind, content),) = data.items()
    if kind == "integer" and dtype in WHOLE:
        return read_term(content)
    if kind == "boolean" and dtype == "bool":
        return read_formula(content)
    if kind == "cases" and dtype in FLOATS:
        cases = joined_cases((read_formula(condition), read_number(number)) for condition, number in content)
        require(cases is not None and cases.pairs, "a value has no cases, or too many")
        assert cases is not None
        return cases
    raise CertificateError(f"expected a value of dtype {dtype}; got {str(kind)[:40]}")


def read_number(data: object) -> Number:
    """A number, or {"float": "inf"}. Raises `CertificateError`."""
    if isinstance(data, dict):
        require(set(data) == {"float"} and data["float"] in ("inf", "-inf", "nan"), "expected a number")
        return float(data["float"])
    require(isinstance(data, bool | float) or is_integer(data), f"expected a number; got {str(data)[:40]}")
    if isinstance(data, float):
        require(math.isfinite(data), "expected a finite number")
    return data  # type: ignore[return-value]


def product_of(sizes: Iterable[Term]) -> Term:
    """The product of sizes."""
    total = integer(1)
    for size in sizes:
        total = total.times(size)
    return total
