"""passkey: write down the number that was said somewhere in a long stretch of filler.

    f f f f KEY d_1 ... d_k f f f ... f ASK d_1 ... d_k          at ASK, d_1, ..., d_{k-1} it is to say d_1, ..., d_k

The filler is one phrase over and over, going on behind the key where it was before; length is how much there is of it,
and the key stands anywhere in it, evenly. The one pass of teacher forcing tells what greedy decoding writes, as in
`orderproof.lab.transcription`, and the ceiling is the one found there: the bag holds which digits there are, and the
filler, which is the same wherever the key stands. One order of each bag of k digits is right:

    exact match <= C(k + 9, k) / 10^k          .02002 for five digits of ten

It is one for a decoder of *one* layer without position encoding; a second layer can find out where tokens stand.
Source: Mohtashami and Jaggi 2023, "Landmark Attention: Random-Access Infinite Context Length for Transformers",
arXiv:2305.16300 (the task); the ceiling is ours.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field

from orderproof.lab.choices import ChoiceQuestion
from orderproof.lab.question import UNSCORED, Batch, Ceiling, Measure
from orderproof.lab.transcription import share_of_bags


class Passkey(ChoiceQuestion):
    """The number in the filler."""

    name: ClassVar[str] = "passkey"
    statement: ClassVar[str] = "What was the number, said once in a long stretch of filler?"
    source: ClassVar[str] = (
        "Mohtashami and Jaggi 2023, Landmark Attention: Random-Access Infinite Context Length for Transformers, "
        "arXiv:2305.16300, scaled down"
    )
    measure: ClassVar[Measure] = "exact_match"
    causal: ClassVar[bool | None] = True
    train_lengths: ClassVar[tuple[int, int]] = (16, 64)
    test_lengths: ClassVar[tuple[int, ...]] = (32, 64, 128, 256, 512)

    digits: int = Field(default=10, ge=2)
    size: int = Field(default=5, ge=1)
    """How many digits the key has."""
    phrase: int = Field(default=8, ge=1)
    """How many tokens the filler has before it comes again."""

    @property
    def vocabulary(self) -> int:
        """The digits, KEY, ASK and the filler."""
        return self.digits + 2 + self.phrase

    @property
    def answers(self) -> tuple[int, ...]:
        return tuple(range(self.digits))

    def tokens(self, length: int) -> int:
        return length + 2 * self.size + 1

    def ways(self, length: int) -> tuple[int, ...]:
        return (self.digits,) * self.size + (length + 1,)

    def build(self, chosen: torch.Tensor, length: int) -> Batch:
        key, place = chosen[:, :-1], chosen[:, -1:]
        said = torch.cat([torch.full_like(place, self.digits), key], dim=1)  # KEY d_1 ... d_k
        within = torch.arange(length + self.size + 1) - place  # where a token stands from KEY on
        of_filler = torch.where(within < 0, within, within - said.shape[1]) + place
        filler = self.digits + 2 + of_filler % self.phrase
        spoken = (within >= 0) & (within <= self.size)
        row = torch.where(spoken, said.gather(1, within.clamp(0, self.size)), filler)
        tokens = torch.cat([row, torch.full_like(place, self.digits + 1), key[:, :-1]], dim=1)
        return Batch(tokens=tokens, targets=torch.cat([torch.full_like(row, UNSCORED), key], dim=1))

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(
            value=share_of_bags(self.digits, self.size),
            how=f"one order of each bag of the key: C(k + {self.digits - 1}, k) / {self.digits}^k, k = {self.size}",
        )


QUESTION = Passkey
