"""A sentence as rows of token numbers: as it stands, once more, and with its words moved in each way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof.auditing.rearranging import Movable, Order, orders
from orderproof.auditing.sentences import Sentence
from orderproof.sensitivity_record import SAME, Example, Pooling
from orderproof.subjects.words import Cut, Words

FEWEST = 3  # words
MOST_TOKENS = 1024


@dataclass(frozen=True)
class Prepared:
    """The rows of one sentence."""

    sentence: Sentence
    kinds: tuple[str, ...]  # of the rows after the first
    rows: Tensor  # [row, token]
    examples: tuple[Example, ...]


def prepare(sentence: Sentence, words: Words, *, pooling: Pooling, seed: int) -> Prepared | str:
    """The rows of a sentence; or why it is left out."""
    if len(sentence.words) < FEWEST:
        return f"fewer than {FEWEST} words"
    end = sentence.end or ("." if pooling == "last" else "")  # a last token that is the same in every order
    cut = words.cut(sentence.words, end)
    most = min(words.longest or MOST_TOKENS, MOST_TOKENS)
    if len(cut.numbers) > most:
        return f"more than {most} tokens"
    movable = Movable(cut.pieces(len(sentence.words)), sentence.pair)
    if not all(movable.pieces) or not _in_a_row(cut):
        return "a token belongs to no one word"
    if {"first": cut.places[0], "last": cut.places[-1]}.get(pooling) is not None:
        return f"its {pooling} token, whose vector is taken, would move"
    found = orders(movable, seed=seed)
    if not found:
        return "no change of order changes it"
    rows = [cut.numbers, cut.numbers, *(_moved(cut, movable, order) for order in found.values())]
    assert all(sorted(row) == sorted(cut.numbers) for row in rows), "a change of order changed the tokens"
    before = Sentence(sentence.words, end)
    examples = tuple(Example(kind=k, before=before.text, after=before.moved(o)) for k, o in found.items())
    return Prepared(sentence, (SAME, *found), torch.tensor(rows), examples)


def _in_a_row(cut: Cut) -> bool:
    """Whether the words' tokens stand together, in order: what is no word's is before them all or after."""
    inside = [place for place in cut.places if place is not None]
    first = next(k for k, place in enumerate(cut.places) if place is not None)
    return inside == sorted(inside) and list(cut.places[first : first + len(inside)]) == inside


def _moved(cut: Cut, movable: Movable, order: Order) -> tuple[int, ...]:
    """The numbers with the words in another order."""
    first = next(k for k, place in enumerate(cut.places) if place is not None)
    inside = tuple(number for word in order for number in movable.pieces[word])
    return cut.numbers[:first] + inside + cut.numbers[first + len(inside) :]
