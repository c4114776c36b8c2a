"""The base class of laws of ports: one call, made of the reference and of an engine with the same weights and tokens.

The reference is the model in transformers; an engine is another implementation that reads the same checkpoint. A law
names the call and the tokens that are compared. The outputs of a language model are logits, those of an encoder are the
embeddings of its tokens: the last hidden states. Both must agree up to rounding, which is measured on the reference
alone: its float32 output against its float64 output.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from orderproof.laws.law import Law

ModelKind = Literal["causal_lm", "encoder"]
CallKind = Literal["prefill", "chunks", "batch", "greedy", "prefix", "cached_prompt", "preemption", "pooled"]
ABILITIES: dict[CallKind, str] = {
    "prefill": "it returns no logits of a prompt",
    "chunks": "its cache cannot be called with chosen tokens",
    "batch": "it takes no rows of different lengths in one batch",
    "greedy": "it does not generate",
    "prefix": "it keeps no cache from one prompt to the next",
    "cached_prompt": "it returns no log-probabilities of a prompt whose cache it keeps",
    "preemption": "the size of its cache cannot be chosen, or it puts no row off",
    "pooled": "it returns no embedding of a whole text",
}
OF_ENCODERS: frozenset[CallKind] = frozenset({"prefill", "batch", "pooled"})  # there are no caches to ask for
SPECIAL_TOKENS = 3  # the first ids, which configurations use for pads and for the begin and the end of a text
PAST_THRESHOLD = 14  # [tokens] compared beyond a window or a context length
MAX_LENGTH = 8192  # [tokens] of the longest call


@dataclass(frozen=True)
class PortCall:
    """One call: rows of token ids, and how they are passed."""

    kind: CallKind
    rows: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...] = ()  # [tokens] of each chunk, for `chunks`; of each prompt, for `preemption`
    count: int = 0  # tokens to generate, for `greedy`

    @property
    def compared_rows(self) -> tuple[tuple[int, ...], ...]:
        """The rows whose scores are compared: all, or the one whose beginning an earlier one shares."""
        return self.rows[1:] if self.kind in ("prefix", "cached_prompt") else self.rows

    @property
    def length(self) -> int:
        """The length of the longest row [tokens]."""
        return max(len(row) for row in self.rows)


@dataclass(frozen=True)
class PortModel:
    """The properties of the reference that the calls depend on."""

    vocabulary: int
    kind: ModelKind = "causal_lm"
    pooling: str = ""  # of the tokens of an encoder to an embedding of the text: "mean"
    window: int | None = None  # [tokens]
    context: int | None = None  # [tokens] of the trained context, before scaling
    stated: int | None = None  # [tokens] of the context that the configuration states, with its scaling
    limit: int | None = None  # [tokens] of a position table
    seed: int = 0

    def tokens(self, length: int, row: int = 0) -> tuple[int, ...]:
        """Random token ids; a shorter text is the beginning of a longer one."""
        draw = random.Random(1000 * self.seed + row)
        first = SPECIAL_TOKENS if self.vocabulary > 2 * SPECIAL_TOKENS else 0
        return tuple(draw.randrange(first, self.vocabulary) for _ in range(length))

    def at_most(self, length: int) -> int:
        """The smaller of a length and the length of the position table."""
        return length if self.limit is None else min(length, self.limit)

    @property
    def short_length(self) -> int:
        """A length [tokens] up to the smallest threshold."""
        return self.at_most(min(size for size in (12, self.window, self.context) if size))

    @property
    def usual_length(self) -> int:
        """A length [tokens] past the window, if there is one."""
        return self.at_most(min((self.window or 6) + PAST_THRESHOLD, MAX_LENGTH))


@dataclass(frozen=True, kw_only=True)
class PortLaw(Law):
    """A law that compares one call of the reference and of an engine."""

    remedy: str
    ability: CallKind | None = None  # that the engine needs
    may_shorten: bool = False  # `shorter_call` returns one

    def reason_against(self, model: PortModel, abilities: Collection[str]) -> str | None:
        """Why an engine with these abilities is not asked for the call; None if it is."""
        if self.ability is None:
            return None
        if model.kind == "encoder" and self.ability not in OF_ENCODERS:
            return "an encoder keeps no cache and generates nothing"
        return self.inapplicable_reason(model) if self.ability in abilities else ABILITIES[self.ability]

    def inapplicable_reason(self, model: PortModel) -> str | None:
        """Why the law has no meaning for a model; None if it has one."""
        del model
        return None

    @abstractmethod
    def call(self, model: PortModel) -> PortCall | None:
        """The call that is compared; None for a law that only loads the checkpoint."""

    def first_compared(self, model: PortModel, call: PortCall) -> int:
        """The index of the first token whose output is compared."""
        del model, call
        return 0

    def shorter_call(self, call: PortCall) -> PortCall | None:
        """A shorter call that the law allows, for a reference whose rounding grows with the length, or None."""
        del call
        return None
