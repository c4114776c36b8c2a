"""The setting of the steps of a recording: what they may use, and their obligations."""

from __future__ import annotations

from dataclasses import dataclass, field

from orderproof.prover.recheck.theorems.decision import Decision
from orderproof.prover.recheck.theorems.facts import Axes, axis, index
from orderproof.prover.recheck.theorems.formulas import TRUE, Every, Formula, at_most, equal, every, less
from orderproof.prover.recheck.theorems.terms import Term


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
    obligations: dict[Obligation, int] = field(default_factory=dict)

    def discharge(self, obligation: Obligation) -> bool:
        """True if an obligation is met."""
        used = obligation.given.variables | obligation.shown.variables
        ranges = [
            f
            for k, size in enumerate(obligation.sizes)
            if axis(k) in used
            for f in (at_most(0, index(k)), less(index(k), size))
        ]
        premises = every(*self.premises, *ranges, obligation.given)
        return all(self.decision.implies(premises, part) for part in _conjuncts(obligation.shown))

    def equal(self, first: Term, second: Term) -> bool:
        """True if two sizes are equal for all open sizes."""
        return first is second or self.discharge(Obligation((), TRUE, equal(first, second)))


def _conjuncts(formula: Formula) -> tuple[Formula, ...]:
    return formula.fields[0] if isinstance(formula, Every) else (formula,)
