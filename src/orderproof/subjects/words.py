"""Real words as tokens, for checkpoints that come with a tokenizer."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from orderproof.errors import UsageError
from orderproof.subjects.subject import Sample, Subject, seeded
from orderproof.subjects.tokens import embeddings_of

BATCH = 2
_FILES = ("tokenizer.json", "vocab.txt", "tokenizer.model", "vocab.json", "spiece.model", "sentencepiece.bpe.model")
_START = ("\u0120", "\u2581")  # how byte-pair and sentencepiece vocabularies mark the start of a word
COMMON = 2000  # vocabularies list frequent words first
_POOLINGS = {
    "pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "pooling_mode_lasttoken": "last"
}  # fmt: skip
_NAMED = {"mean": "mean", "cls": "first", "lasttoken": "last"}
_WORD = re.compile(r"[a-z]{3,12}")


@dataclass(frozen=True)
class Cut:
    """A sentence as token numbers, and the word each belongs to; None for special tokens and the closing mark."""

    numbers: tuple[int, ...]
    places: tuple[int | None, ...]

    def pieces(self, words: int) -> tuple[tuple[int, ...], ...]:
        """The token numbers of each word."""
        pairs = tuple(zip(self.numbers, self.places, strict=True))
        return tuple(tuple(number for number, place in pairs if place == word) for word in range(words))


@dataclass
class Words:
    """A tokenizer and the token vectors it indexes."""

    tokenizer: Any
    embeddings: Any
    name: str
    numbers: bool  # the model takes token numbers, not vectors
    longest: int | None
    pooling: str | None = None  # how its vectors become one for a sentence, where its folder says: mean, first, last

    @cached_property
    def ordinary(self) -> tuple[tuple[int, str], ...]:
        """The most frequent whole words of the vocabulary, lower case, with their numbers."""
        vocabulary = self.tokenizer.get_vocab()
        marked = any(text.startswith(_START) for text in vocabulary)
        limit = self.embeddings.weight.shape[0]
        found = [
            (number, text.lstrip("".join(_START)))
            for text, number in vocabulary.items()
            if number < limit and (not marked or text.startswith(_START))
        ]
        return tuple(sorted((number, text) for number, text in found if _WORD.fullmatch(text))[:COMMON])

    def draw(self, length: int, seed: int) -> Sample:
        """Random ordinary words, no special tokens."""
        chosen = torch.randint(len(self.ordinary), (BATCH, length), generator=seeded(seed))
        numbers = torch.tensor([[self.ordinary[int(place)][0] for place in row] for row in chosen])
        return self._sample(numbers, tuple(self.ordinary[int(place)][1] for place in chosen[0]))

    def read(self, sentence: str) -> Sample:
        """A sentence as the tokenizer cuts it, special tokens included."""
        numbers = self.tokenizer(sentence, add_special_tokens=True)["input_ids"]
        if not numbers:
            raise UsageError(f"{self.name}: the tokenizer makes no tokens of {sentence!r}")
        if self.longest is not None and len(numbers) > self.longest:
            raise UsageError(f"{self.name}: {len(numbers)} tokens are more than its position table of {self.longest}")
        return self._sample(torch.tensor([numbers]), tuple(self._text(number) for number in numbers))

    def cut(self, words: Sequence[str], end: str) -> Cut:
        """A sentence given as its words and closing mark, cut into tokens. Raises `UsageError`.

        Where a tokenizer marks each word but the first by the space before it, the first gets one too, so that no
        token changes when words move.
        """
        if not getattr(self.tokenizer, "is_fast", False):
            raise UsageError(f"{self.name}: its tokenizer does not tell which token belongs to which word")
        text = " ".join(words) + end
        made, shift = self._encoded(" " + text), 1
        stops = [stop for special, (_, stop) in _tokens(made) if not special]
        if not stops or stops[0] <= 1:  # the space became a token of its own
            made, shift = self._encoded(text), 0
        ends = list(accumulate((len(word) + 1 for word in words), initial=shift - 1))[1:]
        places = tuple(
            None if special or stop > ends[-1] else bisect_left(ends, stop) for special, (_, stop) in _tokens(made)
        )
        return Cut(tuple(made["input_ids"]), places)

    def _encoded(self, text: str) -> Any:
        return self.tokenizer(
            text, add_special_tokens=True, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False
        )

    def inputs(self, numbers: torch.Tensor) -> torch.Tensor:
        """Token numbers [row, token] as the subject's module takes them."""
        return self._sample(numbers, ()).inputs[0]

    def _text(self, number: int) -> str:
        token = str(self.tokenizer.convert_ids_to_tokens(number))
        return token.lstrip("".join(_START)) or token

    def _sample(self, numbers: torch.Tensor, tokens: tuple[str, ...]) -> Sample:
        if self.numbers:
            return Sample((numbers,), tokens)
        with torch.no_grad():
            return Sample((self.embeddings(numbers).detach().clone(),), tokens)


def give_words(subject: Subject, folder: Path) -> None:
    """Let a subject draw words and read sentences, where its folder has a tokenizer that needs no code."""
    if subject.kind == "vision" or not any((folder / name).is_file() for name in _FILES):
        return
    adapter: Any = subject.module
    embeddings = embeddings_of(adapter.model)
    tokenizer = _tokenizer(folder)
    if tokenizer is None or embeddings is None:
        return
    words = Words(tokenizer, embeddings, subject.name, adapter.argument == "input_ids", subject.max_length)
    words.pooling = stated_pooling(folder)
    subject.text, subject.words = words.read, words
    if len(words.ordinary) >= 2:
        subject.draw = words.draw


def _tokens(made: Any) -> Iterator[tuple[bool, tuple[int, int]]]:
    """For each token whether it is special, and the characters it stands for."""
    return zip(map(bool, made["special_tokens_mask"]), made["offset_mapping"], strict=True)


def stated_pooling(folder: Path) -> str | None:
    """The pooling that a folder of sentence-transformers states: mean, first or last; None where none of these."""
    try:
        stated = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    modes = stated if isinstance(stated, dict) else {}
    chosen = [mode for key, mode in _POOLINGS.items() if modes.get(key) is True]
    others = [key for key, on in modes.items() if key.startswith("pooling_mode") and on is True]
    return chosen[0] if len(chosen) == len(others) == 1 else _NAMED.get(str(modes.get("pooling_mode")))


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception:  # noqa: BLE001 - a third-party loader: anything may come; without it tokens are x0, x1, ...
        return None
