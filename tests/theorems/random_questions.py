"""Random programs that ask about an attention mask, about position ids and about their own indices."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor

from tests.theorems.programs import Program

Given = tuple[Tensor, Tensor, Tensor]  # tokens [batch, token, feature], mask and position ids [batch, token]
Made = Callable[[Given], Tensor]
ENDS = (slice(None), slice(1, None), slice(None, -1), slice(None, 1), slice(-1, None))


def _places(given: Given) -> Tensor:
    return torch.arange(given[0].shape[1])[None].expand(given[0].shape[0], -1)


def _steps(ids: Tensor) -> Tensor:
    return torch.diff(ids, prepend=ids[:, :1] - 1, dim=-1)


def _integers(chance: random.Random, depth: int) -> Made:
    """Integers [batch, token]."""
    kind = chance.randrange(9 if depth else 3)
    if kind < 3:
        return (_places, lambda given: given[1], lambda given: given[2])[kind]
    first = _integers(chance, depth - 1)
    if kind == 3:
        offset = chance.randrange(-2, 3)
        return lambda given: first(given) + offset
    if kind == 4:
        return lambda given: first(given).flip(1)
    if kind == 5:
        return lambda given: _steps(first(given))
    if kind == 6:
        second = _integers(chance, depth - 1)
        return lambda given: first(given) * second(given)
    condition = _booleans(chance, depth - 1)
    if kind == 7:
        return lambda given: condition(given).cumsum(-1)
    other = _integers(chance, depth - 1)
    return lambda given: torch.where(condition(given), first(given), other(given))


def _booleans(chance: random.Random, depth: int) -> Made:
    """Booleans [batch, token]."""
    kind = chance.randrange(6 if depth else 3)
    numbers, bound = _integers(chance, max(depth - 1, 0)), chance.randrange(-2, 4)
    if kind < 3:
        compare = (torch.eq, torch.ne, torch.ge)[kind]
        return lambda given: compare(numbers(given), bound)
    first = _booleans(chance, depth - 1)
    if kind == 3:
        return lambda given: ~first(given)
    second = _booleans(chance, depth - 1)
    if kind == 4:
        return lambda given: first(given) & second(given)
    return lambda given: first(given) | second(given)


def _question(chance: random.Random) -> Made:
    """One boolean."""
    elements, kind, end = _booleans(chance, chance.randrange(1, 4)), chance.randrange(7), chance.randrange(6)

    def part(given: Given) -> Tensor:
        whole = elements(given)
        return whole[:, ENDS[end]] if end < len(ENDS) else whole[:, given[0].shape[1] :]

    questions: list[Made] = [
        lambda given: part(given).all(),
        lambda given: part(given).any(),
        lambda given: part(given).sum() == part(given).numel(),
        lambda given: part(given).sum() == 0,
        lambda given: (elements(given).cumsum(-1)[:, -1] == 0).all(),
        lambda given: (elements(given).cumsum(-1)[:, -1] >= 1).all(),
        lambda given: elements(given)[:, -1].all(),
    ]
    return questions[kind]


def asking_program(seed: int) -> Program:
    """A program whose branches are decided by one to four questions, of which the last may be the first again."""
    chance = random.Random(seed)
    questions = [_question(chance) for _ in range(chance.randrange(1, 4))]
    questions += questions[:1] * chance.randrange(2)

    def function(m: Program, x: Tensor, mask: Tensor, ids: Tensor) -> Tensor:
        given = x, mask, ids
        for place, question in enumerate(questions):
            x = m.first(x) + place if question(given) else x.cumsum(1) / 2
        return x

    torch.manual_seed(seed)
    return Program(function).eval()
