"""Statements that the interpreter does not make, and the pairs of runs that show them to be false."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from orderproof.diagnosis.domain.fact import NEVER
from orderproof.diagnosis.domain.move import STILL, Move
from tests.diagnosis.sampling.contradictions import unequal
from tests.diagnosis.sampling.operands import ORDINARY, Array, Relation, Scale, read
from tests.diagnosis.sampling.trials import Trial, apply, first_run, two_runs


@dataclass
class Claim:
    """A statement that the walk does not make: these elements of a result do not change under these moves."""

    result: int
    moves: tuple[Move, ...]
    case: int
    open: Array  # the elements that no pair of runs has been seen to change
    together: bool  # whether the claim is that none of them changes, and falls with the first
    large: Array  # the elements that were infinite, no number, or as large as a mask in every run

    def hear(self, one: list[Array], two: list[Array], generator: int) -> None:
        """Close what a pair of results denies."""
        first, second = one[self.result], read(two[self.result], self.moves, generator)
        changed = self.open & unequal(first, second)
        with np.errstate(invalid="ignore"):
            self.large = self.large & ~(np.abs(first) < ORDINARY) & ~(np.abs(second) < ORDINARY)
        self.open = np.zeros_like(self.open) if self.together and changed.any() else self.open & ~changed


def unsaid(tried: Trial) -> Iterator[Claim]:
    """The refused claims: each way to move a result about which nothing follows; else each element that may change."""
    for k, fact in enumerate(tried.facts()):
        level = np.minimum(np.broadcast_to(fact.dependence, fact.shape), tried.relation.size)
        every = np.ones(fact.shape, dtype=bool)
        if tried.relation.family != "influence" and level.size and (level > NEVER).all():
            for moves in _readings(fact.shape, tried.relation):
                yield Claim(k, moves, 0, every, True, every)
        elif tried.relation.family != "influence" and (level > NEVER).any():
            yield Claim(k, fact.moves, 0, level > NEVER, False, every)
        elif tried.relation.family == "influence":
            for case in np.unique(level[level > NEVER]):
                yield Claim(k, fact.moves, int(case), level == case, False, every)


def undenied(tried: Trial, claims: list[Claim], rng: np.random.Generator, most: int) -> list[Claim]:
    """The claims that no pair of runs contradicts, among at most `most` pairs."""
    for k in range(most):
        if not any(c.open.any() for c in claims):
            break
        scale: Scale = "few" if k % 2 else "wide"
        first = first_run(rng, tried.roles, scale)
        one = [np.asarray(x) for x in apply(tried.sample, first)]
        for generator, case in tried.relation.cases():
            asked = [c for c in claims if c.case == case and c.open.any()]
            if asked:
                second = two_runs(rng, tried.roles, generator, case, scale, first)
                two = [np.asarray(x) for x in apply(tried.sample, second)]
                for claim in asked:
                    claim.hear(one, two, generator)
    return [c for c in claims if c.open.any()]


def _readings(shape: tuple[int, ...], relation: Relation) -> Iterator[tuple[Move, ...]]:
    yield from product(*[(STILL, relation.move) if s == relation.size else (STILL,) for s in shape])
