"""Words and sentences as tokens, for checkpoints with a tokenizer."""

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

from orderproof.errors import UsageError, first_line
from orderproof.models.sample import BATCH_SIZE, Sample, seeded_generator

_TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "tokenizer.model",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
)
_WORD_START_MARKERS = ("\u0120", "\u2581")  # how byte-pair and sentencepiece vocabularies mark the start of a word
COMMON_WORD_COUNT = 2000  # vocabularies list frequent words first
_POOLING_FLAGS = {
    "pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "pooling_mode_lasttoken": "last"
}  # fmt: skip
_POOLING_NAMES = {"mean": "mean", "cls": "first", "lasttoken": "last"}
_WORD = re.compile(r"[a-z]{3,12}")


@dataclass(frozen=True)
class TokenizedSentence:
    """Token ids, and the index of the word that each belongs to: None for special tokens and the closing mark."""

    token_ids: tuple[int, ...]
    word_indices: tuple[int | None, ...]

    def token_ids_by_word(self, words: int) -> tuple[tuple[int, ...], ...]:
        """The token ids of each word."""
        pairs = tuple(zip(self.token_ids, self.word_indices, strict=True))
        return tuple(tuple(token for token, index in pairs if index == word) for word in range(words))


@dataclass
class SentenceTokenizer:
    """A tokenizer and the embedding table of its tokens."""

    tokenizer: Any
    embeddings: Any
    name: str
    takes_token_ids: bool  # the model is called with token ids, not with embeddings
    max_length: int | None
    pooling: str | None = None  # of sentence-transformers, if configured: "mean", "first" or "last"

    @cached_property
    def common_words(self) -> tuple[tuple[int, str], ...]:
        """The most frequent whole words of the vocabulary in lower case: (token id, word)."""
        vocabulary = self.tokenizer.get_vocab()
        marked = any(text.startswith(_WORD_START_MARKERS) for text in vocabulary)
        limit = self.embeddings.weight.shape[0]
        words = [
            (token, text.lstrip("".join(_WORD_START_MARKERS)))
            for text, token in vocabulary.items()
            if token < limit and (not marked or text.startswith(_WORD_START_MARKERS))
        ]
        return tuple(sorted((token, text) for token, text in words if _WORD.fullmatch(text))[:COMMON_WORD_COUNT])

    def sample(self, length: int, seed: int) -> Sample:
        """Random common words without special tokens."""
        words = self.common_words
        chosen = torch.randint(len(words), (BATCH_SIZE, length), generator=seeded_generator(seed)).tolist()
        token_ids = torch.tensor([[words[index][0] for index in row] for row in chosen])
        return self._as_sample(token_ids, tuple(words[index][1] for index in chosen[0]))

    def encode_sentence(self, sentence: str) -> Sample:
        """The tokens of a sentence, special tokens included. Raises `UsageError` for none or too many."""
        token_ids = self.tokenizer(sentence, add_special_tokens=True)["input_ids"]
        if not token_ids:
            raise UsageError(f"{self.name}: the tokenizer has no tokens for {sentence!r}")
        if self.max_length is not None and len(token_ids) > self.max_length:
            raise UsageError(
                f"{self.name}: {len(token_ids)} tokens are more than its position table of {self.max_length}"
            )
        return self._as_sample(torch.tensor([token_ids]), tuple(map(self._token_text, token_ids)))

    def tokenize_words(self, words: Sequence[str], end: str) -> TokenizedSentence:
        """The tokens of a sentence from its words and closing mark. Raises `UsageError`.

        If the tokenizer marks each word but the first by the space before it, the first gets a space too, so that the
        tokens of a word do not depend on its place.
        """
        if not getattr(self.tokenizer, "is_fast", False):
            raise UsageError(f"{self.name}: its tokenizer does not tell which token belongs to which word")
        text = " ".join(words) + end
        encoded, shift = self._encode_with_offsets(" " + text), 1
        stops = [stop for special, (_, stop) in _token_spans(encoded) if not special]
        if not stops or stops[0] <= 1:  # the space became a separate token
            encoded, shift = self._encode_with_offsets(text), 0
        ends = list(accumulate((len(word) + 1 for word in words), initial=shift - 1))[1:]
        indices = tuple(
            None if special or stop > ends[-1] else bisect_left(ends, stop)
            for special, (_, stop) in _token_spans(encoded)
        )
        return TokenizedSentence(tuple(encoded["input_ids"]), indices)

    def _encode_with_offsets(self, text: str) -> Any:
        return self.tokenizer(
            text, add_special_tokens=True, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False
        )

    def to_inputs(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Token ids [batch, token] as the input of the subject's module."""
        return self._as_sample(token_ids, ()).inputs[0]

    def _token_text(self, token_id: int) -> str:
        token = str(self.tokenizer.convert_ids_to_tokens(token_id))
        return token.lstrip("".join(_WORD_START_MARKERS)) or token

    def _as_sample(self, token_ids: torch.Tensor, labels: tuple[str, ...]) -> Sample:
        if self.takes_token_ids:
            return Sample((token_ids,), labels)
        with torch.no_grad():
            return Sample((self.embeddings(token_ids).detach().clone(),), labels)


def load_tokenizer(
    folder: Path, embeddings: Any, *, name: str, takes_token_ids: bool, max_length: int | None
) -> tuple[SentenceTokenizer | None, str]:
    """The tokenizer in a folder, and a note if there is one that cannot be loaded. No code of the folder is run."""
    if embeddings is None or not any((folder / file).is_file() for file in _TOKENIZER_FILES):
        return None, ""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001 - a third-party loader: anything may come
        return None, f"its tokenizer cannot be loaded, so its tokens have no text ({first_line(error)})"
    pooling = configured_pooling(folder)
    return SentenceTokenizer(tokenizer, embeddings, name, takes_token_ids, max_length, pooling), ""


def _token_spans(encoded: Any) -> Iterator[tuple[bool, tuple[int, int]]]:
    """For each token, whether it is special, and its span of characters."""
    return zip(map(bool, encoded["special_tokens_mask"]), encoded["offset_mapping"], strict=True)


def configured_pooling(folder: Path) -> str | None:
    """The pooling in a folder of sentence-transformers: "mean", "first" or "last"; None for any other."""
    try:
        content = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    modes = content if isinstance(content, dict) else {}
    chosen = [mode for key, mode in _POOLING_FLAGS.items() if modes.get(key) is True]
    others = [key for key, on in modes.items() if key.startswith("pooling_mode") and on is True]
    return chosen[0] if len(chosen) == len(others) == 1 else _POOLING_NAMES.get(str(modes.get("pooling_mode")))
