"""The context of a walk: the statement to prove, what is known of its symbols, and how a quantifier is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, islice
from typing import Any

from torch.fx import Node

from orderproof.logic.rewriting import Substitution
from orderproof.logic.solver import Solver
from orderproof.logic.terms import (
    FALSE,
    TRUE,
    And,
    Expression,
    FloorDivision,
    Formula,
    Or,
    Term,
    Variable,
    as_term,
    at_most,
    conjunction,
    disjunction,
    equal,
    flat,
    holds,
    less,
)
from orderproof.theorems.facts.extreme_places import KnownPlace, known_of_places
from orderproof.theorems.facts.open_fact import Axes, axis_variable, index
from orderproof.theorems.statement import TOKENS, PrefixSum, token_places

LARGE = 200  # nodes of a formula whose own parts are tried before what the statement suggests
MOST_PARTS = 32  # of a formula that are tried
MOST_OF_A_GROUP = 8  # elements
_AXES = {axis_variable(k) for k in range(MOST_PARTS)}
Candidates = Callable[[Sequence[tuple[Term, Term]]], Sequence[Formula]]


@dataclass(frozen=True)
class Count:
    """The number of true elements of a tensor of booleans."""

    formula: Formula  # of an element
    sizes: Axes
    all_true: Formula


@dataclass
class Context:
    """State that the rules of a walk share.

    Attributes:
        solver: Decides implications.
        premises: What holds of the symbols of the statement: sizes, conditions of the recording.
        candidates: Formulas over indices (index, size of its axis) that the statement suggests.
        prefix_sums: Functions of the statement that count tokens.
        padded: Sizes of axes along which tokens may be padded: the greatest number of tokens of the recording.
        loops: The index of each loop in whose body the walk is, with the number of its iterations.
        real_token: A token of each row that the statement takes for a real one; None if it takes none.
        of_inputs: The names of the nodes of the graph that depend on inputs.
        assumptions: What the proof assumes beyond the statement.

    """

    solver: Solver
    premises: tuple[Formula, ...]
    candidates: Candidates
    prefix_sums: tuple[PrefixSum, ...] = ()
    padded: frozenset[int] = frozenset()
    loops: tuple[tuple[Term, Term], ...] = ()
    real_token: Term | None = None
    of_inputs: frozenset[str] = frozenset()
    assumptions: dict[str, None] = field(default_factory=dict)
    counts: dict[str, Count] = field(default_factory=dict)  # by name of the node
    common: dict[Node, Any] = field(default_factory=dict)  # see `common_numbers`
    largest: dict[Node, Any] = field(default_factory=dict)  # see `largest_scores`
    zero_summands: dict[Node, tuple[Formula, Axes, int]] = field(default_factory=dict)  # of sums
    zero_places: dict[Node, Formula] = field(default_factory=dict)  # where a sum may be zero that has moved since
    of_a_run: dict[Node, Any] = field(default_factory=dict)  # see `values_of_a_run`
    places: dict[str, KnownPlace] = field(default_factory=dict)  # by name of the node; see `extreme_places`

    def assume(self, text: str) -> None:
        """Add an assumption."""
        self.assumptions[text] = None

    def proves(self, conclusion: Formula, sizes: Axes, *premises: Formula) -> bool:
        """True if the premises imply a conclusion for all indices within these sizes."""
        if conclusion is TRUE:
            return True
        return self.solver.implies(self._with_ranges(conclusion, sizes, *premises), conclusion)

    def _with_ranges(self, conclusion: Formula, sizes: Axes, *premises: Formula) -> list[Formula]:
        """Premises with those of the statement, and with the ranges of the indices that occur."""
        formulas = [conclusion, *premises]
        formulas += known_of_places(formulas, self.places, self.real_token)
        ranges = [*_within(sizes, formulas), *self._indices_of_loops(formulas)]
        return [*self.premises, *formulas[1:], *ranges]

    def _indices_of_loops(self, formulas: Iterable[Formula]) -> list[Formula]:
        """The indices of loops that occur are within their ranges: nothing is said of a body that never runs."""
        used = frozenset().union(*(f.variables for f in formulas))
        found = [(i, count) for i, count in self.loops if i.variables & used]
        return [f for i, count in found for f in (at_most(0, i), less(i, count))]

    def note_sum(self, node: Node, zero: Formula, sizes: Axes, first_bound: int) -> None:
        """Note where the summands of a sum are zero.

        Args:
            node: The sum.
            zero: Where a summand is zero, over the indices of the sum and of further axes.
            sizes: The sizes of these axes.
            first_bound: The number of the first further axis.

        """
        self.zero_summands.pop(node, None)
        further = [k for k in range(first_bound, len(sizes)) if axis_variable(k) in zero.variables]
        if further:
            bound = tuple(sizes[k] for k in further)
            moved = {axis_variable(k): index(first_bound + place) for place, k in enumerate(further)}
            self.zero_summands[node] = Substitution(moved).formula(zero), (*sizes[:first_bound], *bound), len(bound)

    def may_be_of_zeros(self, node: Node) -> Formula:
        """Where all summands of a sum may be zero: none that a row is known to have is another number."""
        if node not in self.zero_summands:
            return self.zero_places.get(node, FALSE)
        zero, sizes, bound = self.zero_summands[node]
        if bound > 1:
            return TRUE
        *own, size = sizes
        places = [as_term(0), size - 1, *(index(k) for k, one in enumerate(own) if one is size)]
        if size is TOKENS and self.real_token is not None:
            places.append(self.real_token)
        at_places = [Substitution({axis_variable(len(own)): place}).formula(zero) for place in places]
        some_other = self.proves(disjunction(*(~one for one in at_places)), sizes)
        return FALSE if some_other else conjunction(*at_places)

    def count(self, name: str, formula: Formula, sizes: Axes) -> Count:
        """The number of true elements of a tensor of booleans that a node counts."""
        found = self.counts[name] = Count(formula, sizes, holds(f"all of {name}"))
        return found

    def equal_sizes(self, first: Term, second: Term) -> bool:
        """True if two sizes are equal for all open sizes."""
        return first is second or self.proves(equal(first, second), ())

    def for_all(self, body: Formula, sizes: Axes, first_bound: int) -> Formula:
        """A formula that implies `body` for every value of the indices from `first_bound` on.

        Args:
            body: A formula over the indices of axes with these sizes.
            sizes: The sizes of the axes.
            first_bound: The number of the first axis over which is quantified.

        Returns:
            The weakest formula over the other indices that was found.

        """
        bound = _bound(first_bound, len(sizes))
        if body.variables.isdisjoint(bound):
            return body
        if isinstance(body, And):
            found = [self.for_all(part, sizes, first_bound) for part in body.parts[0]]
            free = [part for part in body.parts[0] if part.variables.isdisjoint(bound)]
            if free and FALSE in found:  # of a part that holds where those hold in which no index is bound
                pairs = zip(body.parts[0], found, strict=True)
                found = [TRUE if one is FALSE and self.proves(part, sizes, *free) else one for part, one in pairs]
            return conjunction(*found)
        free = []
        if isinstance(body, Or):
            free = [part for part in body.parts[0] if part.variables.isdisjoint(bound)]
        if self.proves(body, sizes):
            return TRUE

        def sufficient(formulas: Iterable[Formula]) -> Iterator[Formula]:
            options = ((one, self._with_ranges(body, sizes, one)) for one in formulas)
            return self.solver.sufficient(options, body)

        parts = islice((one for one in _parts_without(bound, body) if one not in free), MOST_PARTS)
        of_parts = sufficient(one for one in parts if not self.proves(~one, sizes))
        of_statement = islice(sufficient(self._candidates(body, sizes, first_bound)), 1)
        # What a large formula says of a constant index, the statement does not suggest.
        first, second = (of_parts, of_statement) if body.size > LARGE else (of_statement, of_parts)
        few = islice(sufficient(self._candidates_of_few(body, sizes, first_bound)), 1)
        found = list(first) or list(second) or list(few)
        if found and body.size <= LARGE:  # nor what holds at a constant index, as that of a class token
            constant = (one for one in _parts_without(bound, body) if one not in free and _is_about_indices(one))
            found += islice(sufficient(one for one in constant if not self.proves(~one, sizes)), 1)
        return disjunction(*found, *free)

    def _candidates(self, body: Formula, sizes: Axes, first_bound: int) -> Iterable[Formula]:
        bound = _bound(first_bound, len(sizes))
        kept = [*((index(k), sizes[k]) for k in range(first_bound)), *self.loops]
        atoms = self._atoms(kept)
        yield from _conjunctions(atoms)
        for inside in self._inside(kept):
            yield inside
            yield from (inside & atom for atom in atoms)
        yield from _whole_groups(body, bound, [place for place, _ in kept])
        for k in range(first_bound, len(sizes)):  # the body on the diagonal: a token keeps what it has itself
            if axis_variable(k) in body.variables:
                for place, size in kept:
                    if size is sizes[k]:
                        diagonal = Substitution({axis_variable(k): place}).formula(body)
                        if diagonal.variables.isdisjoint(bound):
                            yield diagonal
                            for atom in atoms:
                                yield diagonal & atom

    def _candidates_of_few(self, body: Formula, sizes: Axes, first_bound: int) -> Iterable[Formula]:
        """Those that an axis of some first tokens suggests, as that of the first chunk."""
        few = [k for k, size in enumerate(sizes) if size.is_constant and axis_variable(k) in body.variables]
        ends = [index(k) if k < first_bound else sizes[k] - 1 for k in few]
        kept = [(index(k), sizes[k]) for k in range(first_bound)]
        return _conjunctions(self._atoms([*kept, *((place, TOKENS) for place in ends)])) if ends else []

    def invariants(self, sizes: Axes, place: tuple[Term, Term]) -> list[Formula]:
        """Formulas over the indices of axes and the number of iterations of a loop that are done, strong ones last.

        The last ones speak only of what the iterations that are done may have written.

        Args:
            sizes: The sizes of the axes.
            place: The index of the last iteration that is done, and the number of all iterations.

        """
        places = [*((index(k), size) for k, size in enumerate(sizes)), place, *self.loops]
        first = (as_term(0), TOKENS)  # of which the state that enters a loop may be made
        found = [TRUE, *_conjunctions(self._atoms([*places, first]))]
        done = [at_most(index(k), place[0]) for k, size in enumerate(sizes) if size is place[1]]
        return [*found, *(one & written for written in done for one in found), FALSE]

    def _atoms(self, places: Sequence[tuple[Term, Term]]) -> list[Formula]:
        """The formulas that the statement suggests for indices (index, size of its axis)."""
        return list(dict.fromkeys(self.candidates([*places, *self._padded(places)])))

    def _padded(self, places: Sequence[tuple[Term, Term]]) -> list[tuple[Term, Term]]:
        """Indices of an axis of constant size that may be those of tokens."""
        return [(place, TOKENS) for place, size in places if size.is_constant and size.constant in self.padded]

    def _inside(self, places: Sequence[tuple[Term, Term]]) -> list[Formula]:
        """That the places of tokens are those of tokens, along axes that may have a few more elements."""
        more = [pair for pair in places if pair[1] is not TOKENS]
        tokens = dict.fromkeys(token_places([*more, *self._padded(places)]))
        return [formula for token in tokens for formula in (less(token, TOKENS), at_most(0, token))]


def _whole_groups(body: Formula, bound: AbstractSet[Variable], places: Sequence[Term]) -> Iterator[Formula]:
    """A formula at each token of a group: what `token // 4 == group` asks for."""
    if body.size > LARGE:
        return
    for floor in dict.fromkeys(_floors(body)):
        dividend, width = floor.parts
        one = next((atom for atom, factor in dividend.summands if factor == 1 and atom in bound), None)
        if one is None or width > MOST_OF_A_GROUP:
            continue
        before = dividend - as_term(one)
        for place in places:
            tokens = [place * width + k - before for k in range(width)]
            found = conjunction(*(Substitution({one: token}).formula(body) for token in tokens))
            if found.variables.isdisjoint(bound):
                yield found


def _floors(expression: Expression) -> Iterator[FloorDivision]:
    if isinstance(expression, FloorDivision):
        yield expression
    for part in flat(expression.parts):
        if isinstance(part, Expression):
            yield from _floors(part)


def _conjunctions(atoms: Sequence[Formula]) -> Iterable[Formula]:
    """Up to three of the formulas together, fewer ones first."""
    for count in range(1, min(3, len(atoms)) + 1):
        for chosen in combinations(atoms, count):
            if (candidate := conjunction(*chosen)) is not FALSE:
                yield candidate


def _parts_without(bound: AbstractSet[Variable], formula: Formula) -> Iterator[Formula]:
    """The comparisons and functions in a formula in which no variable of these occurs, each once."""
    seen: set[Formula] = set()
    queue = [formula]
    while queue:
        one = queue.pop()
        if one in seen:
            continue
        seen.add(one)
        if isinstance(one, And | Or):
            queue += one.parts[0]
        elif one.variables.isdisjoint(bound):
            yield one


def _is_about_indices(formula: Formula) -> bool:
    """True if a formula compares one index of a tensor with a number."""
    return not formula.functions and len(formula.variables) == 1 and formula.variables <= _AXES


def _bound(first: int, end: int) -> set[Variable]:
    return {axis_variable(k) for k in range(first, end)}


def _within(sizes: Axes, formulas: Iterable[Formula]) -> list[Formula]:
    """The indices that occur are within their sizes."""
    used = frozenset().union(*(f.variables for f in formulas))
    return [f for k, size in enumerate(sizes) if axis_variable(k) in used for f in _range(k, size)]


@cache
def _range(axis: int, size: Term) -> tuple[Formula, Formula]:
    return at_most(0, index(axis)), less(index(axis), size)
