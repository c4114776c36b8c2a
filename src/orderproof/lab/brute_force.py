"""The ceiling of a question by enumerating every row: slow and generic; the tests check closed forms against it.

A bag-of-tokens predictor knows, at a position, the token there and the bag of the tokens it sees: those of the whole
row, or those up to the position if only a decoder can answer. Positions that it cannot distinguish form a group, and it
gives one answer per group.

    accuracy      in each group, the target with the largest weight
    exact_match   a row is right if all its positions are, so two rows with different targets in one group conflict;
                  the best set of rows is a maximum-weight independent set of the conflict graph
    nats          in each group, the entropy of its distribution of targets
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from orderproof.lab.question import UNSCORED, Question, WeightedRow

ObservationKey = tuple[int, tuple[int, ...]]


def brute_force_ceiling(question: Question, length: int) -> Fraction | float:
    """The best score of a bag-of-tokens predictor over every row of this length; a float [nats] for `nats`."""
    rows = list(question.enumerate_rows(length))
    causal = question.requires_causal is True
    if question.measure == "exact_match":
        return _max_weight_independent_set(
            frozenset(range(len(rows))), [row.weight for row in rows], _conflicts(rows, causal=causal)
        )
    groups: dict[ObservationKey, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for row in rows:
        for group, target in _scored_positions(row, causal=causal):
            groups[group][target] += row.weight
    scored = sum((sum(targets.values(), Fraction(0)) for targets in groups.values()), Fraction(0))
    if question.measure == "accuracy":
        return sum((max(targets.values()) for targets in groups.values()), Fraction(0)) / scored
    return sum(_group_cross_entropy(list(targets.values())) for targets in groups.values()) / float(scored)


def _scored_positions(row: WeightedRow, *, causal: bool) -> Iterator[tuple[ObservationKey, int]]:
    """For each scored position, the predictor's observation and the target."""
    for position, target in enumerate(row.targets):
        if target != UNSCORED:
            visible = row.tokens[: position + 1] if causal else row.tokens
            yield (row.tokens[position], tuple(sorted(visible))), target


def _group_cross_entropy(weights: list[Fraction]) -> float:
    """The weight of a group times the entropy of its targets."""
    total = sum(weights)
    return -sum(float(weight) * math.log(weight / total) for weight in weights)


def _conflicts(rows: list[WeightedRow], *, causal: bool) -> list[set[int]]:
    """For each row, the rows that cannot be right together with it."""
    groups: dict[ObservationKey, list[tuple[int, int]]] = defaultdict(list)
    for number, row in enumerate(rows):
        for group, target in _scored_positions(row, causal=causal):
            groups[group].append((number, target))
    conflicts: list[set[int]] = [set() for _ in rows]
    for members in groups.values():
        for (first, first_target), (second, second_target) in combinations(members, 2):
            if first_target != second_target:
                conflicts[first].add(second)
                conflicts[second].add(first)
    return conflicts


def _max_weight_independent_set(rows: frozenset[int], weights: list[Fraction], conflicts: list[set[int]]) -> Fraction:
    """The largest weight of a set of rows without conflicts: branch on the row with the most conflicts."""
    branch = max(rows, key=lambda row: len(conflicts[row] & rows), default=None)
    if branch is None or not conflicts[branch] & rows:
        return sum((weights[row] for row in rows), Fraction(0))
    rest = rows - {branch}
    without = _max_weight_independent_set(rest, weights, conflicts)
    return max(without, weights[branch] + _max_weight_independent_set(rest - conflicts[branch], weights, conflicts))
