"""Ways of putting the words of a sentence in another order: every word stays, and so does every token.

Each gives the order to read the words in, or None where it would change nothing: too few words, or the same ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

DRAWS = 20  # how often a shuffle is drawn before a sentence is taken to have no other order

Order = tuple[int, ...]
Pieces = tuple[tuple[int, ...], ...]  # the token numbers of each word


@dataclass(frozen=True)
class Movable:
    """The words of a sentence as a tokenizer cuts them."""

    pieces: Pieces
    pair: tuple[int, int] | None = None

    def changes(self, order: Sequence[int]) -> bool:
        """Whether the tokens in this order are not the same row of tokens."""
        moved = [token for k in order for token in self.pieces[k]]
        return moved != [token for piece in self.pieces for token in piece]


def _exchanged(count: int, first: int, second: int) -> Order:
    order = list(range(count))
    order[first], order[second] = second, first
    return tuple(order)


def role_swap(sentence: Movable, draw: random.Random) -> Order | None:
    """The two marked words trade places."""
    del draw
    return None if sentence.pair is None else _exchanged(len(sentence.pieces), *sentence.pair)


def word_swap(sentence: Movable, draw: random.Random) -> Order | None:
    """Two words of as many tokens, not neighbours, trade places; for sentences without a marked pair."""
    if sentence.pair is not None:
        return None
    count, pieces = len(sentence.pieces), sentence.pieces
    possible = [
        (i, j)
        for i in range(count)
        for j in range(i + 2, count)
        if len(pieces[i]) == len(pieces[j]) and pieces[i] != pieces[j]
    ]
    return _exchanged(count, *draw.choice(possible)) if possible else None


def adjacent_swap(sentence: Movable, draw: random.Random) -> Order | None:
    """Two neighbouring words trade places."""
    count, pieces = len(sentence.pieces), sentence.pieces
    possible = [i for i in range(count - 1) if pieces[i] != pieces[i + 1]]
    if not possible:
        return None
    i = draw.choice(possible)
    return _exchanged(count, i, i + 1)


def shuffle_of(size: int) -> Callable[[Movable, random.Random], Order | None]:
    """The sentence cut into runs of ``size`` words, the runs shuffled."""

    def shuffle(sentence: Movable, draw: random.Random) -> Order | None:
        count = len(sentence.pieces)
        runs = [tuple(range(start, min(start + size, count))) for start in range(0, count, size)]
        for _ in range(DRAWS):
            draw.shuffle(runs)
            order = tuple(k for run in runs for k in run)
            if sentence.changes(order):
                return order
        return None

    return shuffle


def reversal(sentence: Movable, draw: random.Random) -> Order | None:
    """The words from last to first."""
    del draw
    return tuple(reversed(range(len(sentence.pieces))))


KINDS: Mapping[str, Callable[[Movable, random.Random], Order | None]] = {
    "role swap": role_swap,
    "word swap": word_swap,
    "adjacent swap": adjacent_swap,
    "3-gram shuffle": shuffle_of(3),
    "2-gram shuffle": shuffle_of(2),
    "1-gram shuffle": shuffle_of(1),
    "reversal": reversal,
}


def orders(sentence: Movable, *, seed: int) -> dict[str, Order]:
    """An order for each kind of change that changes this sentence."""
    found = {}
    for kind, rearranged in KINDS.items():
        order = rearranged(sentence, random.Random(f"{seed} {kind} {sentence.pieces}"))
        if order is not None and sentence.changes(order):
            found[kind] = order
    return found
