"""The setting of the steps of a recording: what they may use, and their obligations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orderproof_recheck.extreme_places import KnownPlace, known_of_places
from orderproof_recheck.facts import Axes, Fact, axis, index
from orderproof_recheck.logic.decision import Decision
from orderproof_recheck.logic.formulas import TRUE, Every, Formula, at_most, equal, every, less
from orderproof_recheck.logic.terms import Term
from orderproof_recheck.statements import FUNCTIONS, REAL_TOKEN


@dataclass(frozen=True)
class Obligation:
    """For all indices x0, x1, ... within the sizes: what is given implies what is to be shown."""

    sizes: Axes
    given: Formula
    shown: Formula


@dataclass(frozen=True)
class Count:
    """A number of true elements: the formula of an element, and the sizes."""

    formula: Formula
    sizes: Axes


@dataclass(frozen=True)
class Inside:
    """The facts about a step of an iteration, after the end of its loop."""

    facts: Any


@dataclass
class Loop:
    """A loop of open length.

    Attributes:
        index: The symbol of the iteration.
        count: The number of iterations.
        states: The steps of the tensors that iterations hand on.
        invariants: The facts about these at the begin of an iteration.
        shapes: Their shapes.
        inside: All steps of an iteration.
        started: A step of an iteration was read.

    """

    index: Term
    count: Term
    states: list[str] = field(default_factory=list)
    invariants: list[Fact] = field(default_factory=list)
    shapes: list[tuple[Term, ...]] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    started: bool = False


@dataclass
class Loops:
    """The loop in which the steps are, those that have ended by name of the end, and the indices of all."""

    active: Loop | None = None
    closed: dict[str, Loop] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


@dataclass
class Setting:
    """State that the steps of a recording share: premises on symbols of the statement, assumptions, the decision."""

    decision: Decision
    premises: tuple[Formula, ...]
    assumptions: frozenset[str]
    names: frozenset[str]  # variables of the statement
    functions: set[str]  # that are in use
    counted: Formula | None = None  # the tokens x1 of rows x0 that the function `document` counts
    counts: dict[str, Count] = field(default_factory=dict)
    places: dict[str, KnownPlace] = field(default_factory=dict)  # by name of the step
    obligations: dict[Obligation, int] = field(default_factory=dict)
    loops: Loops = field(default_factory=Loops)
    of_inputs: set[str] = field(default_factory=lambda: set(FUNCTIONS))  # functions that depend on inputs

    @property
    def symbols(self) -> frozenset[str]:
        """The variables of which facts may speak: those of the statement, and the index of the loop."""
        active = self.loops.active
        return self.names if active is None else self.names | {str(v.fields[0]) for v in active.index.variables}

    @property
    def loop_indices(self) -> tuple[Term, ...]:
        """The index of the loop in which the steps are."""
        return () if self.loops.active is None else (self.loops.active.index,)

    def discharge(self, obligation: Obligation) -> bool:
        """True if an obligation is met."""
        real = REAL_TOKEN if "real token" in self.names else None
        places = every(*known_of_places([obligation.given, obligation.shown], self.places, real))
        used = obligation.given.variables | obligation.shown.variables | places.variables
        ranges = [
            f
            for k, size in enumerate(obligation.sizes)
            if axis(k) in used
            for f in (at_most(0, index(k)), less(index(k), size))
        ]
        for loop in [self.loops.active] if self.loops.active is not None else []:
            if loop.index.variables & used:
                ranges += [at_most(0, loop.index), less(loop.index, loop.count)]
        premises = every(*self.premises, *ranges, places, obligation.given)
        return all(self.decision.implies(premises, part) for part in _conjuncts(obligation.shown))

    def equal(self, first: Term, second: Term) -> bool:
        """True if two sizes are equal for all open sizes."""
        return first is second or self.discharge(Obligation((), TRUE, equal(first, second)))


def _conjuncts(formula: Formula) -> tuple[Formula, ...]:
    return formula.fields[0] if isinstance(formula, Every) else (formula,)
