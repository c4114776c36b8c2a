"""The fact about one tensor when run 2 has the tokens of run 1 in another order.

Token i of run 1 is token p(i) of run 2, for any permutation p. The fact says that the element of run 1 with the indices
x0, x1, ... is the element of run 2 with other indices, which the motion of each axis gives:

    still      the same index
    moved      p of the index; of an axis that is longer than the tokens, for the indices of tokens only
    free       any index: the element is the same along the axis

`where` says for which elements that is claimed: all of them, by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import FLOATS, INTEGER_LIMITS, OTHERS, Axes, Fact, Predicates, index
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, at_most, every, holds, if_else, less
from orderproof_recheck.logic.notation import is_integer, read_formula, read_term, require
from orderproof_recheck.logic.terms import Term, apply, variable
from orderproof_recheck.reading import OPEN, Facts
from orderproof_recheck.setting import Setting
from orderproof_recheck.statements import TOKENS

PERMUTATION = "p"  # the function of the statement


class Fixed(Enum):
    """The motion of an axis that does not move with the tokens."""

    STILL = "still"
    FREE = "free"


@dataclass(frozen=True)
class Moved:
    """The motion of an axis that has the tokens after `before` other elements."""

    before: int = 0


Motion: TypeAlias = Fixed | Moved
STILL, FREE = Fixed.STILL, Fixed.FREE


@dataclass(frozen=True)
class MovedFact:
    """The fact about one tensor: the motion of each axis, and for which elements it is claimed."""

    axes: tuple[Axes, ...]
    dtype: str
    motions: tuple[Motion, ...]
    where: Formula = TRUE

    @property
    def sizes(self) -> Axes:
        """The sizes of all axes."""
        return tuple(size for axes in self.axes for size in axes)

    @property
    def is_unmoved(self) -> bool:
        """True if both runs have the same tensor."""
        return self.where is TRUE and not any(isinstance(motion, Moved) for motion in self.motions)

    @property
    def is_still(self) -> bool:
        """True if nothing more is claimed than that both runs have the same tensor."""
        return self.where is TRUE and all(motion is STILL for motion in self.motions)

    def form(self) -> Fact:
        """The axes and the dtype, for rules."""
        return Fact(self.axes, self.dtype, Predicates())

    def marked(self, name: str) -> Fact:
        """The fact as one whose elements rules can read: `name` of the indices says which are read."""
        read = holds(name, *(index(k) for k, motion in enumerate(self.motions) if motion is not FREE))
        return Fact(self.axes, self.dtype, Predicates(every(self.where, read), ordinary=FALSE), zeros_known=FALSE)


def read_moved_fact(data: Mapping[str, Any], dtype: str) -> MovedFact:
    """A fact from a certificate. Raises `CertificateError`."""
    require(dtype in (*INTEGER_LIMITS, *FLOATS, *OTHERS), f"expected a dtype; got {str(dtype)[:40]}")
    require(set(data) <= {"axes", "motions", "where"}, "a fact has other fields")
    axes = tuple(tuple(map(read_term, dim)) for dim in data["axes"])
    fact = MovedFact(axes, dtype, tuple(map(_motion, data["motions"])), read_formula(data.get("where", True)))
    require(len(fact.motions) == len(fact.sizes), "a fact has another number of motions than axes")
    for size, motion in zip(fact.sizes, fact.motions, strict=True):
        require(size.variables <= OPEN and not size.functions, "the size of an axis is no number of rows or tokens")
        if isinstance(motion, Moved):
            behind = size - TOKENS - motion.before
            require(behind.is_integer and behind.constant >= 0, "an axis moves that does not have all tokens")
    inside = {v for k in range(len(fact.sizes)) for v in index(k).variables} | OPEN
    require(fact.where.variables <= inside and not fact.where.functions, "a fact has symbols that its tensor does not")
    return fact


def _motion(data: Any) -> Motion:
    match data:
        case "still":
            return STILL
        case "free":
            return FREE
        case ["moved", before] if is_integer(before) and before >= 0:
            return Moved(before)
    raise CertificateError(f"expected the motion of an axis; got {str(data)[:40]}")


def second_index(motion: Motion, size: Term, place: Term, k: int) -> Term:
    """The index in run 2 along axis k for one in run 1; of a free axis any: a new variable."""
    if motion is FREE:
        return variable(f"y{k}")
    return moved_index(motion, size, place)


def moved_index(motion: Motion, size: Term, place: Term) -> Term:
    """The index in run 2 along an axis that is not free."""
    if not isinstance(motion, Moved):
        return place
    token = place - motion.before
    moved = apply(PERMUTATION, token)
    if size is TOKENS:
        return moved
    return if_else(every(at_most(0, token), less(token, TOKENS)), moved + motion.before, place)


MovedFacts = MovedFact | list[MovedFact]


@dataclass(frozen=True)
class Entry:
    """A step at which order is taken out of the graph."""

    constants: frozenset[str]
    causal: bool


@dataclass
class MovedRecording:
    """The facts of a recording that was checked."""

    data: dict[str, Any]
    setting: Setting
    roles: dict[str, str]
    entries: dict[str, Entry]
    everywhere: frozenset[str]
    facts: dict[str, MovedFacts] = field(default_factory=dict)
    from_inputs: set[str] = field(default_factory=set)  # nodes that depend on an input
    stored: dict[str, Facts] = field(default_factory=dict)  # facts with values, about what constants are made of
    premises: list[str] = field(default_factory=list)  # what is stored
