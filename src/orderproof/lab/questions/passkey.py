"""passkey: retrieve a number hidden in a long filler text.

    f f f f KEY d_1 ... d_k f f f ... f ASK d_1 ... d_k          targets at ASK, d_1, ..., d_{k-1}: d_1, ..., d_k

The filler repeats one phrase and continues after the key where it stopped; the length is the number of its tokens, and
the position of the key is uniform. A single pass with teacher forcing determines the greedy output, as in
`orderproof.lab.transcription_question`, and the ceiling is the same: the bag contains the digits, and the filler, which
does not depend on the position of the key. One permutation of each bag of k digits is right:

    exact match <= C(k + 9, k) / 10^k          .02002 for five digits of ten

The bound holds for a decoder of *one* layer without position encoding; a second layer can compute positions.
Source: Mohtashami and Jaggi 2023, "Landmark Attention: Random-Access Infinite Context Length for Transformers",
arXiv:2305.16300 (the task); the ceiling is ours.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field

from orderproof.lab.choice_question import ChoiceQuestion
from orderproof.lab.question import UNSCORED, Batch, Ceiling, Measure
from orderproof.lab.transcription_question import bag_fraction


class Passkey(ChoiceQuestion):
    """The number in the filler."""

    name: ClassVar[str] = "passkey"
    statement: ClassVar[str] = "Which number is hidden in the filler text?"
    source: ClassVar[str] = (
        "Mohtashami and Jaggi 2023, Landmark Attention: Random-Access Infinite Context Length for Transformers, "
        "arXiv:2305.16300, scaled down"
    )
    measure: ClassVar[Measure] = "exact_match"
    requires_causal: ClassVar[bool | None] = True
    train_lengths: ClassVar[tuple[int, int]] = (16, 64)
    test_lengths: ClassVar[tuple[int, ...]] = (32, 64, 128, 256, 512)

    digits: int = Field(default=10, ge=2)
    size: int = Field(default=5, ge=1)
    """Digits of the key."""
    phrase: int = Field(default=8, ge=1)
    """Tokens of the phrase that the filler repeats."""

    @property
    def vocabulary(self) -> int:
        """The digits, KEY, ASK and the filler."""
        return self.digits + 2 + self.phrase

    @property
    def answer_tokens(self) -> tuple[int, ...]:
        return tuple(range(self.digits))

    def row_length(self, length: int) -> int:
        return length + 2 * self.size + 1

    def choice_counts(self, length: int) -> tuple[int, ...]:
        return (self.digits,) * self.size + (length + 1,)

    def build(self, chosen: torch.Tensor, length: int) -> Batch:
        key, start = chosen[:, :-1], chosen[:, -1:]
        passage = torch.cat([torch.full_like(start, self.digits), key], dim=1)  # KEY d_1 ... d_k
        offset = torch.arange(length + self.size + 1) - start  # from KEY
        filler_index = torch.where(offset < 0, offset, offset - passage.shape[1]) + start
        filler = self.digits + 2 + filler_index % self.phrase
        in_passage = (offset >= 0) & (offset <= self.size)
        row = torch.where(in_passage, passage.gather(1, offset.clamp(0, self.size)), filler)
        tokens = torch.cat([row, torch.full_like(start, self.digits + 1), key[:, :-1]], dim=1)
        return Batch(tokens=tokens, targets=torch.cat([torch.full_like(row, UNSCORED), key], dim=1))

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(
            value=bag_fraction(self.digits, self.size),
            derivation=f"one permutation of each bag: C(k + {self.digits - 1}, k) / {self.digits}^k, k = {self.size}",
        )


QUESTION = Passkey
