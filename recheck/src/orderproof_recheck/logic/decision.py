"""Decide if a formula is false for all integers and all functions: a tableau.

The formula is taken apart. A conjunction adds its parts; a disjunction is tried part by part, and all branches must
close. A branch closes if its comparisons contradict each other (`arithmetic.py`), or if a function is true and false of
equal arguments. Where arguments may be equal, the branch is split into equal, less and greater; so is an `If` by its
condition. An open branch, or too many branches, mean: not decided.

This procedure is written for the recheck and shares nothing with the prover, which asks Z3.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, TypeVar

from orderproof_recheck.logic.arithmetic import contradict
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    AtMostZero,
    Every,
    Formula,
    Holds,
    IsZero,
    Not,
    Some,
    equal,
    every,
    less,
    opposite,
    some,
)
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Apply, Atom, Expression, Floor, If, Product, Term, of_atom

MAX_BRANCHES = 4000


class Undecided(Exception):
    """Too many branches."""


class Decision:
    """Decides formulas; keeps the answers."""

    def __init__(self) -> None:
        self.asked = 0
        self._answers: dict[Formula, bool] = {}
        self._branches = 0

    def implies(self, premises: Formula, conclusion: Formula) -> bool:
        """True if the conclusion holds wherever the premises do; False if not, or if that is not decided."""
        if conclusion is TRUE or premises is FALSE or premises is conclusion:
            return True
        parts = premises.fields[0] if isinstance(premises, Every) else (premises,)
        if conclusion in parts:
            return True
        counterexample = every(premises, opposite(conclusion))
        if counterexample not in self._answers:
            self.asked += 1
            self._branches = 0
            try:
                self._answers[counterexample] = self._closes(_Branch().adding(counterexample))
            except (Undecided, RecursionError):
                self._answers[counterexample] = False
        return self._answers[counterexample]

    def _closes(self, branch: _Branch | None) -> bool:
        """True if a branch is contradictory."""
        self._branches += 1
        if self._branches > MAX_BRANCHES:
            raise Undecided
        if branch is None or branch.is_contradictory():
            return True
        found = branch.next_choice()
        if found is None:
            return False
        rest, choices = found
        return all(self._closes(rest.adding(choice)) for choice in choices)


@dataclass(frozen=True)
class _Branch:
    """Formulas that hold together: comparisons and functions, and disjunctions that are not taken apart yet."""

    facts: Mapping[Formula, None] = field(default_factory=dict)  # in the order in which they were found
    disjunctions: tuple[Formula, ...] = ()

    def adding(self, formula: Formula) -> _Branch | None:
        """The branch with another formula; None if it is contradictory."""
        facts, disjunctions, waiting = dict(self.facts), list(self.disjunctions), [formula]
        while waiting:
            one = waiting.pop()
            if isinstance(one, Every):
                waiting += one.fields[0]
            elif isinstance(one, Some):
                disjunctions.append(one)
            elif one is FALSE or opposite(one) in facts:
                return None
            elif one is not TRUE and one not in facts:
                cases = _cases(one)
                if cases is None:
                    facts[one] = None
                else:
                    waiting.append(cases)
            if not waiting:
                simpler = [_known(f, facts) for f in dict.fromkeys(disjunctions)]
                disjunctions = [f for f in simpler if isinstance(f, Some)]
                waiting = [f for f in simpler if not isinstance(f, Some) and f is not TRUE]
        return _Branch(facts, tuple(disjunctions))

    def is_contradictory(self, *more: Formula) -> bool:
        """True if the comparisons contradict each other."""
        below: list[Term] = []
        zero: list[Term] = []
        floors: dict[Floor, None] = {}
        for fact in (*self.facts, *more):
            floors |= dict.fromkeys(_atoms(fact, Floor))
            if isinstance(fact, AtMostZero):
                below.append(fact.fields[0])
            elif isinstance(fact, IsZero):
                zero.append(fact.fields[0])
        for floor in floors:
            term, divisor = floor.fields
            rest = term - of_atom(floor) * divisor
            below += [rest * -1, rest - (divisor - 1)]
        for one in dict.fromkeys(p for t in (*below, *zero) for p, _ in t.summands if isinstance(p, Product)):
            below += _product_bounds(one, below, zero)
        return contradict(below, zero)

    def next_choice(self) -> tuple[_Branch, list[Formula]] | None:
        """A branch and formulas of which one holds in it, in place of this one; None if nothing is left to split."""
        if self.disjunctions:
            shortest = min(self.disjunctions, key=lambda f: len(f.fields[0]))
            rest = _Branch(self.facts, tuple(f for f in self.disjunctions if f is not shortest))
            parts = [part for part in shortest.fields[0] if not self._refutes(part)]
            return rest, [every(part, *map(opposite, _simple(parts[:k]))) for k, part in enumerate(parts)]
        for fact in self.facts:
            if isinstance(fact, Not) and isinstance(fact.fields[0], IsZero):
                sides = [less(fact.fields[0].fields[0], 0), less(0, fact.fields[0].fields[0])]
                if not any(side in self.facts for side in sides):
                    return self, sides
        for first, second in self._applied_twice():
            differences = [a - b for a, b in zip(first.fields[1], second.fields[1], strict=True)]
            same = every(*(equal(d, 0) for d in differences))
            different = [f for d in differences for f in (less(d, 0), less(0, d)) if f is not FALSE]
            if same is FALSE or any(f in self.facts for f in different):
                continue
            if isinstance(first, Holds):
                return self, different
            agree = every(same, equal(of_atom(first), of_atom(second)))
            if not all(f in self.facts for f in _parts(agree)):
                return self, [agree, *different]
        return None

    def _refutes(self, part: Formula) -> bool:
        return isinstance(part, AtMostZero | IsZero) and self.is_contradictory(part)

    def _applied_twice(self) -> Iterator[tuple[Any, Any]]:
        """A function that is true of some arguments and false of others, or two numbers of one function."""
        true = [f for f in self.facts if isinstance(f, Holds)]
        false = [f.fields[0] for f in self.facts if isinstance(f, Not) and isinstance(f.fields[0], Holds)]
        applied = list(dict.fromkeys(a for f in self.facts for a in _atoms(f, Apply)))
        for first, second in (*product(true, false), *combinations(applied, 2)):
            if first.fields[0] == second.fields[0] and len(first.fields[1]) == len(second.fields[1]):
                yield first, second


def _cases(fact: Formula) -> Formula | None:
    """A comparison or function without its first `If`, by cases of the condition of the `If`."""
    for atom in _atoms(fact, If):
        condition, first, second = atom.fields
        yes, no = (Replacement({atom: term}).formula(fact) for term in (first, second))
        return some(every(condition, yes), every(opposite(condition), no))
    return None


def _product_bounds(product: Product, below: Sequence[Term], zero: Sequence[Term]) -> list[Term]:
    """The bounds of a product of integers none of which is zero: it is at least as large as each of them."""
    sizes, sign = [], 1
    for factor in map(of_atom, product.fields[0]):
        if contradict([*below, factor], zero):  # it is positive
            sizes.append(factor)
        elif contradict([*below, factor * -1], zero):  # it is negative
            sizes.append(factor * -1)
            sign = -sign
        else:
            return []
    return [size - of_atom(product) * sign for size in sizes]


def _parts(formula: Formula) -> tuple[Formula, ...]:
    return formula.fields[0] if isinstance(formula, Every) else (formula,)


def _simple(parts: Iterable[Formula]) -> list[Formula]:
    return [part for part in parts if not isinstance(part, Every)]


def _known(formula: Formula, facts: Container[Formula]) -> Formula:
    """A formula with what is known of its parts."""
    if formula in facts:
        return TRUE
    if opposite(formula) in facts:
        return FALSE
    if isinstance(formula, Some | Every):
        return (some if isinstance(formula, Some) else every)(*(_known(part, facts) for part in formula.fields[0]))
    return formula


_A = TypeVar("_A", bound=Atom)


def _atoms(e: Expression, kind: type[_A]) -> Iterator[_A]:
    """The atoms of a kind inside an expression, innermost first."""
    for part in e.inner:
        yield from _atoms(part, kind)
    if isinstance(e, kind):
        yield e
