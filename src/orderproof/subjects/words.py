"""Real words as tokens, for checkpoints that come with a tokenizer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from orderproof.errors import UsageError
from orderproof.subjects.huggingface import embeddings_of
from orderproof.subjects.subject import Sample, Subject, seeded

BATCH = 2
_FILES = ("tokenizer.json", "vocab.txt", "tokenizer.model", "vocab.json", "spiece.model", "sentencepiece.bpe.model")
_START = ("\u0120", "\u2581")  # how byte-pair and sentencepiece vocabularies mark the start of a word
COMMON = 2000  # vocabularies list frequent words first
_WORD = re.compile(r"[a-z]{3,12}")


@dataclass
class Words:
    """A tokenizer and the token vectors it indexes."""

    tokenizer: Any
    embeddings: Any
    name: str
    numbers: bool  # the model takes token numbers, not vectors
    longest: int | None

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
    subject.text = words.read
    if len(words.ordinary) >= 2:
        subject.draw = words.draw


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception:  # noqa: BLE001 - a third-party loader: anything may come; without it tokens are x0, x1, ...
        return None
