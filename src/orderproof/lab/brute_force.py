"""The ceiling of a question by looking at every row: slow, generic, and the judge of every closed form.

The reader that counts knows, at a place, the token there and the bag of the tokens it sees: those of the whole row, or
those up to the place where only a decoder can be asked. Places that look alike to it form a group, and in a group it
says one thing.

    accuracy      in each group the target that weighs most
    exact_match   a row is right if all its places are, so two rows cannot both be right if in one group they have
                  different targets; a set of rows no two of which are at odds can: the heaviest such set
    nats          in each group the distribution of its targets, whose cross-entropy is its entropy
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from orderproof.lab.question import UNSCORED, Question, Row

Group = tuple[int, tuple[int, ...]]


def brute_force(question: Question, length: int) -> Fraction | float:
    """The best score of the reader that counts, over every row of this length."""
    rows = list(question.everything(length))
    causal = question.causal is True
    if question.measure == "exact_match":
        return _heaviest(frozenset(range(len(rows))), [row.weight for row in rows], _at_odds(rows, causal=causal))
    groups: dict[Group, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for row in rows:
        for group, target in _places(row, causal=causal):
            groups[group][target] += row.weight
    asked = sum((sum(targets.values(), Fraction(0)) for targets in groups.values()), Fraction(0))
    if question.measure == "accuracy":
        return sum((max(targets.values()) for targets in groups.values()), Fraction(0)) / asked
    return sum(_nats(list(targets.values())) for targets in groups.values()) / float(asked)


def _places(row: Row, *, causal: bool) -> Iterator[tuple[Group, int]]:
    """The scored places: what the reader knows there, and the target."""
    for place, target in enumerate(row.targets):
        if target != UNSCORED:
            seen = row.tokens[: place + 1] if causal else row.tokens
            yield (row.tokens[place], tuple(sorted(seen))), target


def _nats(weights: list[Fraction]) -> float:
    """The weight of a group times the entropy of its targets."""
    total = sum(weights)
    return -sum(float(weight) * math.log(weight / total) for weight in weights)


def _at_odds(rows: list[Row], *, causal: bool) -> list[set[int]]:
    """For each row those that cannot be right together with it."""
    groups: dict[Group, list[tuple[int, int]]] = defaultdict(list)
    for number, row in enumerate(rows):
        for group, target in _places(row, causal=causal):
            groups[group].append((number, target))
    found: list[set[int]] = [set() for _ in rows]
    for members in groups.values():
        for (one, its), (other, others) in combinations(members, 2):
            if its != others:
                found[one].add(other)
                found[other].add(one)
    return found


def _heaviest(rows: frozenset[int], weights: list[Fraction], at_odds: list[set[int]]) -> Fraction:
    """The weight of the heaviest set of rows no two of which are at odds: with or without the one most at odds."""
    worst = max(rows, key=lambda row: len(at_odds[row] & rows), default=None)
    if worst is None or not at_odds[worst] & rows:
        return sum((weights[row] for row in rows), Fraction(0))
    rest = rows - {worst}
    without = _heaviest(rest, weights, at_odds)
    return max(without, weights[worst] + _heaviest(rest - at_odds[worst], weights, at_odds))
