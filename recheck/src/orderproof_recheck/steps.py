"""One step of a certificate: a node, its operator, the facts of its operands, and the claimed facts of its results.

A rule derives predicates of the result as formulas over the indices x0, x1, ... of the result and further indices, for
all of which they must hold. The claim follows if each claimed predicate implies the derived one. These implications
are the obligations of the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orderproof_recheck.assumptions import SMALL_INTEGERS_ASSUMPTION
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import (
    INTEGER_LIMITS,
    Axes,
    Cases,
    Common,
    Fact,
    Largest,
    Predicates,
    Value,
    axis,
    cases_of,
    index,
    predicates_of,
    product_of,
    whole_number,
)
from orderproof_recheck.index_maps import Digits
from orderproof_recheck.limits import GREATEST_SIZE, OF_A_RUN, Limits
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    Formula,
    at_most,
    equal,
    every,
    holds,
    less,
    opposite,
    some,
)
from orderproof_recheck.logic.notation import require, text
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Term, Variable, apply, integer, variable
from orderproof_recheck.places_of_a_run import RunningExtreme
from orderproof_recheck.setting import Obligation, Setting
from orderproof_recheck.statements import REAL_TOKEN, TOKENS

OPEN_SIZES = ("batch", "tokens")


@dataclass(frozen=True)
class Derived:
    """The facts that a rule derives about a result."""

    predicates: Predicates
    value: Value | None = None

    @classmethod
    def of_value(cls, value: Value, dtype: str) -> Derived:
        """A known value."""
        return cls(predicates_of(value, dtype), value)

    @classmethod
    def of_element(cls, fact: Fact) -> Derived:
        """The element of an operand at the right indices."""
        return cls(fact.predicates, fact.value)


@dataclass
class Step:
    """A step whose arguments are decoded: a `Fact` for a tensor, a list of them for several."""

    setting: Setting
    node: str
    operator: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    shapes: Sequence[tuple[Term, ...]]
    claims: Sequence[Fact]
    obligations: list[Obligation] = field(default_factory=list)
    bound: list[Term] = field(default_factory=list)  # sizes of the further indices
    reordered: list[Term] = field(default_factory=list)  # sizes of rows that run 2 takes in the order of a permutation
    read: set[int | str] = field(default_factory=set)  # places and names of arguments that the rule has read
    scaled: float = 1.0  # the factor below one by which the step scales masking values
    common: Common | None = None  # of its result
    zeros_known: Formula = TRUE  # where the elements of its operand are known, which it moves
    sum_of: tuple[Fact, int] | None = None  # likewise
    flip_of: tuple[Fact, int] | None = None  # likewise
    largest: dict[int, Largest | None] = field(default_factory=dict)  # by number of the result
    unit_diagonal: bool = False  # likewise
    endless: Formula = FALSE  # likewise
    zero_or_nan: Formula = FALSE  # likewise
    lowered: Formula = FALSE  # likewise
    of_a_run: Value | None = None  # likewise
    running: RunningExtreme | None = None  # likewise
    may_wrap: bool = False  # its integers may be so large that what is computed from them wraps around

    @property
    def name(self) -> str:
        """The operator without namespace and overload."""
        parts = self.operator.split(".")
        return parts[1] if len(parts) == 3 and parts[0] == "aten" else self.operator

    @property
    def claim(self) -> Fact:
        """The claim about the first result."""
        return self.claims[0]

    @property
    def shape(self) -> tuple[Term, ...]:
        """The shape of the first result."""
        return self.shapes[0]

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """A positional or keyword argument."""
        self.read.add(place if place < len(self.args) else name)
        return self.args[place] if place < len(self.args) else self.kwargs.get(name, default)

    def arguments(self, start: int = 0) -> Sequence[Any]:
        """All positional arguments from a place on."""
        self.read.update(range(start, len(self.args)))
        return self.args[start:]

    def require_all_read(self) -> None:
        """Raise `CertificateError` if the rule has not read a tensor among the arguments."""
        for key, value in (*enumerate(self.args), *self.kwargs.items()):
            parts = value if isinstance(value, list) else [value]
            if any(isinstance(part, Fact) for part in parts):
                require(key in self.read, f"its rule does not read the tensor {key}")

    @property
    def remaining_share(self) -> float:
        """The share of a masking value that is left after this step and those before it."""
        values = (*self.args, *self.kwargs.values())
        operands = [part for value in values for part in (value if isinstance(value, list) else [value])]
        return self.scaled * min((x.share for x in operands if isinstance(x, Fact)), default=1.0)

    def fact(self, place: int, name: str = "") -> Fact:
        """A tensor among the arguments. Raises `CertificateError`."""
        found = self.argument(place, name)
        require(isinstance(found, Fact), f"expected a tensor as argument {place}")
        assert isinstance(found, Fact)
        return found

    def integer(self, value: Any) -> int:
        """An argument that is an integer. Raises `CertificateError`."""
        require(type(value) is int, f"expected an integer as an argument; got {str(value)[:40]}")
        return int(value)

    def dim(self, value: Any, rank: int) -> int:
        """A dimension counted from the first."""
        found = self.integer(value)
        require(-max(rank, 1) <= found < max(rank, 1), "a dimension is out of range")
        return found % max(rank, 1)

    def term(self, value: Any) -> Term:
        """A size or a place as a term. Raises `CertificateError`."""
        if isinstance(value, Term):
            return value
        return integer(self.integer(value))

    def assume(self, assumption: str) -> None:
        """Raise `CertificateError` unless the certificate states an assumption."""
        require(assumption in self.setting.assumptions, f"it needs the assumption: {assumption}")

    def need(self, condition: Formula, why: str, sizes: Axes = ()) -> None:
        """A condition that must always hold. Raises `CertificateError`."""
        if condition is not TRUE:
            self.meet(Obligation(sizes, TRUE, condition), why)

    def meet(self, obligation: Obligation, why: str) -> None:
        """Discharge an obligation. Raises `CertificateError`."""
        if obligation.shown is TRUE or obligation.given is FALSE or obligation.given is obligation.shown:
            return
        self.obligations.append(obligation)
        if not self.setting.discharge(obligation):
            raise CertificateError(f"{why}: not decided that {text(obligation.given)} implies {text(obligation.shown)}")

    def equal(self, first: Term, second: Term) -> bool:
        """True if two sizes are equal for all open sizes."""
        return self.setting.equal(first, second)

    def holds(self, condition: Formula, sizes: Axes) -> bool:
        """True if a condition holds for all indices within these sizes."""
        return self.setting.discharge(Obligation(sizes, TRUE, condition))

    def digits(self, dim: int, result: int = 0) -> Digits:
        """The index of a result along a dimension."""
        axes = self.claims[result].axes
        first = sum(len(one) for one in axes[:dim])
        return tuple((size, index(first + k)) for k, size in enumerate(axes[dim]))

    def all_digits(self, result: int = 0) -> list[Digits]:
        """The index of a result along each dimension."""
        return [self.digits(d, result) for d in range(len(self.claims[result].axes))]

    def further(self, axes: Axes) -> Digits:
        """Further indices, for all values of which the derived predicates must hold."""
        count = max(len(claim.sizes) for claim in self.claims)
        found = []
        for size in axes:
            found.append((size, index(count + len(self.bound))))
            self.bound.append(size)
        return tuple(found)

    def sizes(self, result: int) -> Axes:
        """The sizes of all indices of a result, the further ones last."""
        own = self.claims[result].sizes
        padding = [integer(1)] * (max(len(claim.sizes) for claim in self.claims) - len(own))
        return (*own, *padding, *self.bound)

    # ------------------------------------------------------------------ the claim

    def check(self, derived: Sequence[Derived]) -> list[Fact]:
        """The claimed facts, if they follow from the derived ones. Raises `CertificateError`."""
        require(len(derived) == len(self.claims) == len(self.shapes), "it has another number of results")
        return [self._checked(k, one) for k, one in enumerate(derived)]

    def _checked(self, result: int, derived: Derived) -> Fact:
        claim, shape = self.claims[result], self.shapes[result]
        self.check_form(claim, shape)
        sizes = self.sizes(result)
        if claim.value is not None:
            self._check_value(claim, derived, sizes)
            return replace(claim, largest=self.largest.get(result))
        own, found = claim.predicates, derived.predicates
        pairs = {
            "same": (own.same, some(found.same, found.zero)), "zero": (own.zero, found.zero),
            "hidden": (own.hidden, found.hidden), "ordinary": (own.ordinary, found.ordinary),
            "low": (own.low, found.at_most_ordinary),
        }  # fmt: skip
        for name, (claimed, shown) in pairs.items():
            self.meet(Obligation(sizes, claimed, shown), f"it is claimed to be {name} where it need not be")
        is_masked = own.hidden is not FALSE or own.low is not FALSE
        share = self.remaining_share if is_masked else 1.0
        zeros_known = self.zeros_known if own.zero is found.zero else self.need_not_vanish(found.zero)
        return replace(
            claim, zeros_known=zeros_known, share=share, common=self.common, sum_of=self.sum_of,
            flip_of=self.flip_of, largest=self.largest.get(result), unit_diagonal=self.unit_diagonal,
            endless=self.endless, zero_or_nan=self.zero_or_nan, lowered=self.lowered,
            of_a_run=self._value_of_a_run(claim), running=self.running,
        )  # fmt: skip

    def _value_of_a_run(self, claim: Fact) -> Value | None:
        """The value of a result in one run: that of its rule, or some function of its indices."""
        if self.of_a_run is not None or self.setting.loop_indices or len(self.claims) > 1:
            return self.of_a_run
        name, indices = f"{self.node}{OF_A_RUN}", [index(k) for k in range(len(claim.sizes))]
        if claim.dtype == "bool":
            return holds(name, *indices)
        return apply(name, *indices) if claim.dtype in INTEGER_LIMITS else None

    def need_not_vanish(self, zero: Formula) -> Formula:
        """Where the rule of a sum does not say that all its summands are zero: one at the place of the result is not.

        `zero` is a formula over a further index, the summand.
        """
        own = self.claim.sizes
        count = max(len(claim.sizes) for claim in self.claims)
        further = [k for k in range(len(self.bound)) if axis(count + k) in zero.variables]
        if self.name not in ("sum", "mean", "matmul", "bmm") or len(further) != 1:
            return FALSE
        size = self.bound[further[0]]
        places = [integer(0), size - 1, *(index(k) for k, one in enumerate(own) if one is size)]
        if size is TOKENS and "real token" in self.setting.names:
            places.append(REAL_TOKEN)
        at_places = [Replacement({axis(count + further[0]): place}).formula(zero) for place in places]
        one_is_not = some(*map(opposite, at_places))
        return TRUE if self.setting.discharge(Obligation(own, at_most(1, size), one_is_not)) else one_is_not

    def check_form(self, claim: Fact, shape: tuple[Term, ...]) -> None:
        """The axes are those of the shape, and the formulas speak of nothing else."""
        require(len(claim.axes) == len(shape), "its fact has another number of dimensions")
        for axes, size in zip(claim.axes, shape, strict=True):
            require(self.equal(product_of(axes), size), "the axes of a dimension do not have its size")
        names = {str(v.fields[0]) for v in claim.variables if not is_index(v)}
        require(names <= self.setting.symbols, "its fact has a variable that the statement does not have")
        count = len(claim.sizes)
        inside = {axis(k) for k in range(count)} | {v for v in claim.variables if not is_index(v)}
        require(claim.variables <= inside, "its fact has an index that its tensor does not have")

    def _check_value(self, claim: Fact, derived: Derived, sizes: Axes) -> None:
        value = claim.value
        if derived.value is None or self._is_new_function(value, claim):
            new = self._is_new_function(value, claim)
            may_be = claim.dtype == "bool" or (claim.dtype in INTEGER_LIMITS and not self.may_wrap)
            require(new and derived.predicates.same is not FALSE and may_be, "its value is not known")
            self.meet(Obligation(sizes, TRUE, derived.predicates.same), "its value is not the same in both runs")
            if isinstance(value, Term):
                self.meet(Obligation(sizes, TRUE, derived.predicates.ordinary), "its value is not ordinary")
            self.setting.functions.add(self.node)
            return
        for given, shown in _equalities(value, _of_kind(derived.value, value)):
            self.meet(Obligation(sizes, given, shown), "it is claimed to have another value")
        if isinstance(value, Term) and claim.dtype in INTEGER_LIMITS:
            self.check_limits(value, claim.dtype, sizes)

    def _is_new_function(self, value: Value | None, claim: Fact) -> bool:
        """True for the value NODE(x0, x1, ...): an arbitrary function of all indices, named after the node."""
        indices = [*(index(k) for k in range(len(claim.sizes))), *self.setting.loop_indices]
        arbitrary = value is apply(self.node, *indices) or value is holds(self.node, *indices)
        return arbitrary and self.node not in self.setting.functions

    def check_limits(self, value: Term, dtype: str, sizes: Axes) -> None:
        """A term does not wrap around; an integer of the model does."""
        low, high = INTEGER_LIMITS[dtype]
        if dtype == "int64":
            if Limits(sizes).are_of_int64(value):
                return
            if Limits(sizes, self.setting.of_inputs).are_of_int64(value):
                self.assume(SMALL_INTEGERS_ASSUMPTION)
                return
        bounded = every(*(less(variable(name), GREATEST_SIZE) for name in OPEN_SIZES))
        within = every(at_most(low, value), at_most(value, high))
        self.meet(Obligation(sizes, bounded, within), f"its value may leave {dtype}")


def is_index(variable: Variable) -> bool:
    """True of x0, x1, ..."""
    name = str(variable.fields[0])
    return name.startswith("x") and name[1:].isdigit()


def _of_kind(derived: Value, claimed: Value | None) -> Value:
    """A derived float as the claim has it: by cases, or as an integer."""
    if isinstance(claimed, Term):
        return whole_number(derived)
    if isinstance(claimed, Cases) and isinstance(derived, Term) and (cases := cases_of(derived)) is not None:
        return Cases(tuple((condition, float(number)) for condition, number in cases.pairs))
    return derived


def _equalities(claimed: Value | None, derived: Value) -> Iterable[tuple[Formula, Formula]]:
    """Implications that together say that two values are equal. Raises `CertificateError`."""
    if isinstance(claimed, Term) and isinstance(derived, Term):
        return [(TRUE, equal(claimed, derived))]
    if isinstance(claimed, Formula) and isinstance(derived, Formula):
        return [(claimed, derived), (opposite(claimed), opposite(derived))] if claimed is not derived else []
    require(isinstance(claimed, Cases) and isinstance(derived, Cases), "its value is of another kind")
    assert isinstance(claimed, Cases)
    assert isinstance(derived, Cases)
    return [
        (condition, some(*(c for c, n in others.pairs if repr(n) == repr(number))))
        for cases, others in ((claimed, derived), (derived, claimed))
        for condition, number in cases.pairs
    ]
