"""Token ids of a sentence, of a second copy of it and of each of its reorderings, as one batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof.models.hf.tokenizer import SentenceTokenizer, TokenizedSentence
from orderproof.records.sensitivity import SAME_SENTENCE, PerturbationExample, Pooling
from orderproof.word_order.perturbations import TokenizedWords, WordOrder, perturbed_orders
from orderproof.word_order.sentences import Sentence

MIN_WORDS = 3
MAX_TOKENS = 1024


@dataclass(frozen=True)
class SentenceBatch:
    """The rows of one sentence: the sentence, a second copy of it, its reorderings."""

    sentence: Sentence
    perturbations: tuple[str, ...]  # of the rows after the first
    rows: Tensor  # token ids [row, token]
    examples: tuple[PerturbationExample, ...]


def build_batch(
    sentence: Sentence, tokenizer: SentenceTokenizer, *, pooling: Pooling, seed: int
) -> SentenceBatch | str:
    """The rows of a sentence, or the reason why it is excluded."""
    if len(sentence.words) < MIN_WORDS:
        return f"fewer than {MIN_WORDS} words"
    end = sentence.closing_mark or (
        "." if pooling == "last" else ""
    )  # so that the last token is the same in every order
    tokens = tokenizer.tokenize_words(sentence.words, end)
    limit = min(tokenizer.max_length or MAX_TOKENS, MAX_TOKENS)
    if len(tokens.token_ids) > limit:
        return f"more than {limit} tokens"
    words = TokenizedWords(tokens.token_ids_by_word(len(sentence.words)), sentence.marked_pair)
    if not all(words.word_tokens) or not _is_contiguous(tokens):
        return "a token does not belong to exactly one word"
    if {"first": tokens.word_indices[0], "last": tokens.word_indices[-1]}.get(pooling) is not None:
        return f"its {pooling} token, whose vector is taken, would move"
    orders = perturbed_orders(words, seed=seed)
    if not orders:
        return "every reordering has the same tokens"
    rows = [tokens.token_ids, tokens.token_ids, *(_reordered_tokens(tokens, words, order) for order in orders.values())]
    assert all(sorted(row) == sorted(tokens.token_ids) for row in rows), "a reordering changed the tokens"
    before = Sentence(sentence.words, end)
    examples = tuple(
        PerturbationExample(kind=k, before=before.text, after=before.reordered(o)) for k, o in orders.items()
    )
    return SentenceBatch(sentence, (SAME_SENTENCE, *orders), torch.tensor(rows), examples)


def _is_contiguous(tokens: TokenizedSentence) -> bool:
    """True if the tokens of the words are contiguous and in order: all other tokens come before or after them."""
    inside = [place for place in tokens.word_indices if place is not None]
    first = next(k for k, place in enumerate(tokens.word_indices) if place is not None)
    return inside == sorted(inside) and list(tokens.word_indices[first : first + len(inside)]) == inside


def _reordered_tokens(tokens: TokenizedSentence, words: TokenizedWords, order: WordOrder) -> tuple[int, ...]:
    """The token ids with the words in another order."""
    first = next(k for k, place in enumerate(tokens.word_indices) if place is not None)
    inside = tuple(number for word in order for number in words.word_tokens[word])
    return tokens.token_ids[:first] + inside + tokens.token_ids[first + len(inside) :]
