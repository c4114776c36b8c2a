"""Reorderings of the words of a sentence. Every word and every token is kept.

Each function returns the new order as indices of words, or None if it would change nothing: too few or equal words.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MAX_DRAWS = 20  # shuffles drawn before a sentence counts as unchanged by shuffling

WordOrder = tuple[int, ...]
WordTokens = tuple[tuple[int, ...], ...]  # the token ids of each word


@dataclass(frozen=True)
class TokenizedWords:
    """The token ids of each word of a sentence."""

    word_tokens: WordTokens
    pair: tuple[int, int] | None = None

    def is_changed_by(self, order: Sequence[int]) -> bool:
        """True if this order of the words gives a different sequence of tokens."""
        moved = [token for k in order for token in self.word_tokens[k]]
        return moved != [token for word in self.word_tokens for token in word]


def _swap(count: int, first: int, second: int) -> WordOrder:
    order = list(range(count))
    order[first], order[second] = second, first
    return tuple(order)


def role_swap(sentence: TokenizedWords, rng: random.Random) -> WordOrder | None:
    """Swap the two marked words."""
    del rng
    return None if sentence.pair is None else _swap(len(sentence.word_tokens), *sentence.pair)


def word_swap(sentence: TokenizedWords, rng: random.Random) -> WordOrder | None:
    """Swap two non-adjacent words with the same number of tokens, in sentences without a marked pair."""
    if sentence.pair is not None:
        return None
    count, tokens = len(sentence.word_tokens), sentence.word_tokens
    possible = [
        (i, j)
        for i in range(count)
        for j in range(i + 2, count)
        if len(tokens[i]) == len(tokens[j]) and tokens[i] != tokens[j]
    ]
    return _swap(count, *rng.choice(possible)) if possible else None


def adjacent_swap(sentence: TokenizedWords, rng: random.Random) -> WordOrder | None:
    """Swap two adjacent words."""
    count, tokens = len(sentence.word_tokens), sentence.word_tokens
    possible = [i for i in range(count - 1) if tokens[i] != tokens[i + 1]]
    if not possible:
        return None
    i = rng.choice(possible)
    return _swap(count, i, i + 1)


def ngram_shuffle(size: int) -> Callable[[TokenizedWords, random.Random], WordOrder | None]:
    """Split the sentence into runs of `size` words and shuffle the runs."""

    def shuffle(sentence: TokenizedWords, rng: random.Random) -> WordOrder | None:
        count = len(sentence.word_tokens)
        runs = [tuple(range(start, min(start + size, count))) for start in range(0, count, size)]
        for _ in range(MAX_DRAWS):
            rng.shuffle(runs)
            order = tuple(k for run in runs for k in run)
            if sentence.is_changed_by(order):
                return order
        return None

    return shuffle


def reverse_words(sentence: TokenizedWords, rng: random.Random) -> WordOrder | None:
    """Reverse the words."""
    del rng
    return tuple(reversed(range(len(sentence.word_tokens))))


PERTURBATIONS: Mapping[str, Callable[[TokenizedWords, random.Random], WordOrder | None]] = {
    "role swap": role_swap,
    "word swap": word_swap,
    "adjacent swap": adjacent_swap,
    "3-gram shuffle": ngram_shuffle(3),
    "2-gram shuffle": ngram_shuffle(2),
    "1-gram shuffle": ngram_shuffle(1),
    "reversal": reverse_words,
}


def perturbed_orders(sentence: TokenizedWords, *, seed: int) -> dict[str, WordOrder]:
    """The order of each kind of reordering that changes the tokens of this sentence."""
    orders = {}
    for kind, reorder in PERTURBATIONS.items():
        order = reorder(sentence, random.Random(f"{seed} {kind} {sentence.word_tokens}"))
        if order is not None and sentence.is_changed_by(order):
            orders[kind] = order
    return orders
