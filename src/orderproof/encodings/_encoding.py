"""The contract of a positional encoding: claims as data, and one hook.

An encoding is a function of positions without state. It acts at one site, through the hook of that name:

    embed    x[m] + e(m)                          added to the embeddings, once, before the first layer
    rotate   R(m) q[m],  R(n) k[n]                turns queries and keys, in every layer
    bias     q[m] . k[n] / sqrt(width) + b(m, n)  added to the scores, in every layer
    none     nothing at all

A bias that depends on what the tokens hold (`Claims.content`) is given their queries and keys as `Content`; one that
also needs something of each token besides its key (a gate) makes it with `notes`, which decoding keeps beside the
keys; one that adds to the values too does so in `values`.
What it says of itself stands in its `claims`, and the audit checks every one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Self

import torch
from torch import Tensor, nn

from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Site = Literal["embed", "rotate", "bias", "none"]
State = Literal["none", "length", "notes"]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Claims:
    """What an encoding says of itself."""

    site: Site
    """The hook it acts through."""
    relative: bool
    """Adding one constant to all positions changes no score."""
    symmetric: bool
    """Swapping the positions of a query and a key changes no score."""
    causal_only: bool = False
    """Defined only for keys that do not come after the query."""
    relative_within: int | None = None
    """`relative` and `symmetric` hold up to this position only; None: everywhere."""
    content: bool = False
    """What it does to a score depends on what the tokens hold, not on their positions alone."""
    values: bool = False
    """It adds to the values that are mixed, not to the scores alone."""
    mixes_heads: bool = False
    """What it does to a score of one head depends on what tokens hold in the other heads."""
    state: State = "none"
    """What decoding must carry besides keys, values and positions: nothing, the length, or notes on each token."""
    max_position: int | None = None
    """The largest position it can tell from the others; None: no limit."""
    ndim: int = 1
    """The number of axes of a position."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a transformer, from which an encoding takes those it needs."""

    width: int
    """Features of a token."""
    heads: int
    causal: bool
    length: int | None = None
    """The number of positions a table must hold; None: not stated."""

    @property
    def head_width(self) -> int:
        """Features of a token in one head."""
        if self.width % self.heads:
            raise EncodingError(f"Sizes: heads must divide width={self.width}, got {self.heads}")
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class Content:
    """What the tokens hold, for a bias that depends on it."""

    q: Float[Tensor, "batch head query head_width"]
    k: Float[Tensor, "batch head key head_width"]
    scale: float
    """What q . k is multiplied by."""
    visible: Bool[Tensor, "batch head query key"] | None = None
    """True where a query may see a key; batch and head may be 1; None: everywhere."""
    notes: Float[Tensor, "batch head key note"] | None = None
    """What the encoding's `notes` made of each key's token."""


class _ClaimsOfTheBuilt:
    """What stands in the place of claims where they depend on how the encoding is built."""

    def __get__(self, encoding: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__}: what it claims depends on its arguments; ask a built one, "
            f"such as {owner.__name__}.for_model(Sizes(...)).claims"
        )


class PositionalEncoding(nn.Module):
    """What every encoding is: claims, a way to build it from a transformer's sizes, and the hook of its site."""

    name: ClassVar[str] = ""
    """The name it is registered under."""
    if TYPE_CHECKING:
        claims: Claims
    else:
        claims = _ClaimsOfTheBuilt()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding with the options a transformer of these sizes would choose."""
        raise NotImplementedError(f"{cls.__name__} does not say how it is built for a model: define for_model")

    def embed(
        self, x: Float[Tensor, "batch token width"], positions: Int[Tensor, "*batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Add the encoding of each token's position to its features, in the dtype of ``x``."""
        self._refuse("embed")

    def rotate(
        self,
        q: Float[Tensor, "batch head query head_width"],
        k: Float[Tensor, "batch head key head_width"],
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"] | None = None,
        *,
        lengths: Int[Tensor, " batch"] | int | None = None,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Float[Tensor, "batch head query head_width"], Float[Tensor, "batch head key head_width"]]:
        """Turn queries and keys by their positions; keys take the queries' positions where theirs are not given.

        ``lengths`` is the length at which each row is read, for encodings of state "length"; others refuse it.
        ``out`` is a pair of buffers to write into, shaped as ``q`` and ``k``; it records no gradient.
        """
        self._refuse("rotate")

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        content: Content | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The numbers to add to the scores, in ``dtype``; the batch is 1 where no positions have one.

        ``content`` is needed where the claims say so, and refused nowhere.
        """
        self._refuse("bias")

    def score_mod(self, q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]) -> ScoreMod:
        """The same addition as a function (score, batch, head, query, key) -> score, for FlexAttention.

        A bias that depends on content has none: FlexAttention is given its matrix.
        """
        self._refuse("score_mod")

    def scale(self, head_width: int) -> float:
        """What scores are multiplied by unless the caller says otherwise."""
        return 1 / math.sqrt(head_width)

    def notes(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch head token note"] | None:
        """What must be known of each token besides its key, from what the layer reads; None: nothing."""
        del x
        return None

    def values(
        self,
        weights: Float[Tensor, "batch head query key"],
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query value_width"]:
        """What to add to the mixed values, given the attention weights; only where the claims say so."""
        self._refuse("values")

    def refuse_lengths(self) -> NoReturn:
        """Say that lengths mean nothing here."""
        raise EncodingError(
            f"{type(self).__name__}: lengths change nothing here, its state is not 'length'; leave them out"
        )

    def _refuse(self, hook: str) -> NoReturn:
        site = self.claims.site
        if hook == "score_mod" and site == "bias":
            raise EncodingError(f"{type(self).__name__} has no score_mod: its bias depends on content; use its bias")
        if hook == "values" and site == "bias":
            raise EncodingError(f"{type(self).__name__} has no values: it adds to the scores alone")
        raise EncodingError(f"{type(self).__name__} has no {hook}: it acts at the site '{site}'")
