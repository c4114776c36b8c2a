"""The base class of positional encodings: declared properties, and one hook.

An encoding is a stateless function of positions. It acts at one site, through the hook of that name:

    embed    x[m] + e(m)                               added to the embeddings, once, before the first layer
    rotate   R(m) q[m],  R(n) k[n]                     rotates queries and keys, in every layer
    bias     q[m] . k[n] / sqrt(head_width) + b(m, n)  added to the scores, in every layer
    none     no effect

A content-dependent bias (`Claims.content_dependent`) receives queries and keys as `AttentionContent`. If it needs data
of each token besides its key (such as a gate), it computes them in `token_state`, and decoding caches them with the
keys. An encoding that adds to the values does so in `value_bias`.
Its properties are declared in `claims`; the tests and the audit check each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

import torch
from torch import Tensor, nn

from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Site = Literal["embed", "rotate", "bias", "none"]
DecodeState = Literal["none", "length", "token_state"]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Claims:
    """The declared properties of an encoding."""

    site: Site
    """The hook through which it acts."""
    relative: bool
    """Adding one constant to all positions changes no score."""
    symmetric: bool
    """Swapping the positions of a query and a key changes no score."""
    causal_only: bool = False
    """It is defined only for keys at or before the query."""
    relative_up_to: int | None = None
    """The last position for which `relative` and `symmetric` hold; None: all positions."""
    content_dependent: bool = False
    """Its effect on a score depends on queries and keys, not only on positions."""
    adds_to_values: bool = False
    """It adds to the attention output, not only to the scores."""
    mixes_heads: bool = False
    """Its effect on a score of one head depends on the queries and keys of other heads."""
    decode_state: DecodeState = "none"
    """Data that decoding needs besides keys, values and positions: none, the context length, or a state per token."""
    max_position: int | None = None
    """The largest position that it distinguishes from the others; None: no limit.

    A larger one raises an `EncodingError` that starts with the name of the class. `checks.check_max_position` makes
    this check, also in a compiled or exported graph, where it is an assertion that fails with a `RuntimeError`.
    """
    ndim: int = 1
    """Number of axes of a position."""


@dataclass(frozen=True, kw_only=True)
class ModelSizes:
    """The sizes of a transformer from which an encoding can be built."""

    width: int
    """Features per token."""
    heads: int
    causal: bool
    length: int | None = None
    """Number of positions that a table must hold; None: unknown."""

    @property
    def head_width(self) -> int:
        """Features per token and head. Raises `EncodingError` if heads do not divide the width."""
        if self.width % self.heads:
            raise EncodingError(f"ModelSizes: heads must divide width={self.width}, got {self.heads}")
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class AttentionContent:
    """Queries, keys and mask, for a content-dependent bias."""

    q: Float[Tensor, "batch head query head_width"]
    k: Float[Tensor, "batch head key head_width"]
    scale: float
    """The factor on q . k."""
    visible: Bool[Tensor, "batch head query key"] | None = None
    """True where a query may attend to a key; batch and head may be 1; None: everywhere."""
    token_state: Float[Tensor, "batch head key state"] | None = None
    """The encoding's `token_state` of the keys' tokens."""


class _PerInstanceSpec:
    """The class attribute `claims` of an encoding whose claims depend on its arguments: reading it is an error."""

    def __get__(self, encoding: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__}: its claims depend on its arguments; read them from an instance, "
            f"such as {owner.__name__}.for_model(ModelSizes(...)).claims"
        )


class PositionalEncoding(nn.Module):
    """Base class of encodings: claims, a constructor from model sizes, and the hook of its site."""

    name: ClassVar[str] = ""
    """The registered name."""
    if TYPE_CHECKING:
        claims: Claims
    else:
        claims = _PerInstanceSpec()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The encoding for a transformer of these sizes; ``options`` are further arguments of the constructor."""
        raise NotImplementedError(f"{cls.__name__} cannot be built from model sizes: define for_model")

    def embed(
        self, x: Float[Tensor, "batch token width"], positions: Int[Tensor, "*batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Add the encoding of each token's position to its features. The result has the dtype of ``x``."""
        self._raise_missing_hook("embed")

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
        """Rotate queries and keys by their positions; ``k_positions`` defaults to ``q_positions``.

        ``lengths`` is the context length of each row [tokens], for encodings whose `Claims.decode_state` is "length";
        others raise `EncodingError`. ``out`` is a pair of output buffers shaped like ``q`` and ``k``; it records no
        gradient.
        """
        self._raise_missing_hook("rotate")

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        content: AttentionContent | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The bias to add to the scores, in ``dtype``; the batch is 1 if the positions have no batch.

        ``content`` is required if the bias is content-dependent, and ignored otherwise.
        """
        self._raise_missing_hook("bias")

    def score_mod(self, q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]) -> ScoreMod:
        """The bias as a function (score, batch, head, query, key) -> score, for FlexAttention.

        A content-dependent bias has none: FlexAttention receives its matrix.
        """
        self._raise_missing_hook("score_mod")

    def default_scale(self, head_width: int) -> float:
        """The default factor on q . k."""
        return 1 / math.sqrt(head_width)

    def token_state(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch head token state"] | None:
        """Data of each token besides its key, computed from the layer's input; None if the bias needs none."""
        del x
        return None

    def value_bias(
        self,
        weights: Float[Tensor, "batch head query key"],
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query value_width"]:
        """The term to add to the attention output, given the attention weights, if claims.adds_to_values."""
        self._raise_missing_hook("value_bias")

    def reject_lengths(self) -> NoReturn:
        """Raise the error for context lengths passed to an encoding that does not use them."""
        raise EncodingError(
            f"{type(self).__name__}: expected no lengths, its claims.decode_state is not 'length'; leave them out"
        )

    def _raise_missing_hook(self, hook: str) -> NoReturn:
        site = self.claims.site
        if hook == "score_mod" and site == "bias":
            raise EncodingError(f"{type(self).__name__} has no score_mod: its bias is content-dependent; use bias")
        if hook == "value_bias" and site == "bias":
            raise EncodingError(f"{type(self).__name__} has no value_bias: it adds only to the scores")
        raise EncodingError(f"{type(self).__name__} has no {hook}: it acts at the site '{site}'")
