"""Base class of the site "rotate": queries and keys, each transformed by its own position.

    score[m, n] = scale * T(m) q[m] . U(n) k[n]

T and U are linear at each position, or at least functions of one token and its position alone. A subclass defines them
in `encode`; operands, positions, context lengths and output buffers are checked here.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.checks import assert_all, check_heads, describe_value, is_sequence_of_length
from orderproof.errors import EncodingError
from orderproof.positions import has_readable_values
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int

QueryOrKey = Literal["q", "k"]


class QueryKeyEncoding(PositionalEncoding):
    """An encoding that transforms queries and keys by their own positions."""

    head_width: int
    heads: int | None = None
    """The number of heads of its parameters; None: any."""
    output_head_dim: int
    """Features of an encoded query or key."""

    @abstractmethod
    def encode(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        side: QueryOrKey,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token output_head_dim"]:
        """Encode queries (side "q") or keys (side "k") at their positions, rounded once to the dtype of ``x``."""

    def rotate(
        self,
        q: Float[Tensor, "batch head query head_width"],
        k: Float[Tensor, "batch head key head_width"],
        q_positions: Int[Tensor, "*axes_and_batch query"],
        k_positions: Int[Tensor, "*axes_and_batch key"] | None = None,
        *,
        lengths: Int[Tensor, " batch"] | int | None = None,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Float[Tensor, "batch head query output_head_dim"], Float[Tensor, "batch head key output_head_dim"]]:
        """Encode queries and keys in float32 or float64, rounded once; ``k_positions`` defaults to ``q_positions``.

        ``lengths`` is the context length [tokens] of all rows or of each row, for encodings whose
        `Claims.decode_state` is "length". ``out`` is a pair of output buffers; it records no gradient. Raises
        `EncodingError` or `PositionError` for arguments that do not fit.
        """
        result = self.apply_kernel(q, k, q_positions, k_positions, lengths, out)
        if result is not None:
            return result
        p, s, rows = self.check_inputs(q, k, q_positions, k_positions, lengths, out)
        same_positions = k_positions is None or k_positions is q_positions
        rotated = self.encode_pair(q, k, p, p if same_positions else s, lengths=rows)
        return rotated if out is None else (out[0].copy_(rotated[0]), out[1].copy_(rotated[1]))

    def encode_pair(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor,
        *,
        lengths: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """`encode` for queries and keys; ``k_positions is q_positions`` if they are at the same positions."""
        return (
            self.encode(q, q_positions, side="q", lengths=lengths),
            self.encode(k, k_positions, side="k", lengths=lengths),
        )

    def apply_kernel(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor | None,
        lengths: Tensor | int | None,
        out: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor] | None:
        """The result of a faster kernel, if the encoding has one for these operands; else None."""
        del q, k, q_positions, k_positions, lengths, out
        return None

    def check_inputs(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor | None,
        lengths: Tensor | int | None,
        out: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Check all arguments; return the positions of queries and keys, and the context lengths."""
        rows = self._check_lengths(q, lengths)
        p = self.check_side("q", q, q_positions)
        s = self.check_side("k", k, q_positions if k_positions is None else k_positions)
        if out is not None:
            self.check_out(out, q, k)
        if rows is not None:
            for name, positions in (("q_positions", p), ("k_positions", s)):
                self._check_positions_below_lengths(name, positions, rows)
        return p, s, rows

    def check_side(self, side: QueryOrKey, x: Tensor, positions: Tensor) -> Int[Tensor, "*axes_and_batch token"]:
        """Check one operand and its positions; return the positions as contiguous int64."""
        owner = type(self).__name__
        check_heads(owner, side, x, self.head_width)
        if self.heads is not None and x.shape[1] != self.heads:
            raise EncodingError(
                f"{owner}: {side} must have {self.heads} heads, one per set of parameters; got {x.shape[1]}"
            )
        axes = self.claims.ndim
        return validate_positions(
            positions,
            name=f"{side}_positions",
            axes=None if axes == 1 else axes,
            batch=x.shape[0],
            tokens=x.shape[2],
            device=x.device,
        ).contiguous()

    def check_out(self, out: tuple[Tensor, Tensor], q: Tensor, k: Tensor) -> None:
        """Reject output buffers that do not fit, or that would lose a gradient."""
        owner = type(self).__name__
        if not is_sequence_of_length(out, 2):
            raise EncodingError(f"{owner}: out must be a pair of buffers, for q and for k, got {describe_value(out)}")
        for side, buffer, x in zip(("q", "k"), out, (q, k), strict=True):
            shape = [*x.shape[:-1], self.output_head_dim]
            if (list(buffer.shape), buffer.dtype, buffer.device) != (shape, x.dtype, x.device):
                came = f"{buffer.dtype} {list(buffer.shape)} on {buffer.device}"
                raise EncodingError(f"{owner}: out for {side} must be {x.dtype} {shape} on {x.device}, got {came}")
            if torch.is_grad_enabled() and (x.requires_grad or buffer.requires_grad):
                raise EncodingError(f"{owner}: out records no gradient; call under torch.no_grad() or leave it out")
        if out[0] is out[1]:
            raise EncodingError(f"{owner}: out must be a pair of buffers, for q and for k, got one twice")

    def _check_positions_below_lengths(self, name: str, positions: Tensor, lengths: Int[Tensor, " row"]) -> None:
        """Reject positions at or above the context length of their row."""
        if positions.shape[-1]:
            last = positions.amax(-1) if self.claims.ndim == 1 else positions.amax((0, -1))
            owner, hint = type(self).__name__, "for pad tokens see positions.from_mask"
            message = (
                f"{owner}: lengths must be above all positions, got a row with {name} at or above its length; {hint}"
            )
            assert_all(last < lengths, EncodingError, message)

    def _check_lengths(self, q: Tensor, lengths: Tensor | int | None) -> Int[Tensor, " row"] | None:
        """The lengths as int64, one per row or one for all; None if there are none."""
        if lengths is None:
            return None
        if self.claims.decode_state != "length":
            self.reject_lengths()
        owner = type(self).__name__
        if not isinstance(lengths, Tensor):
            if not _is_length(lengths):
                raise EncodingError(f"{owner}: lengths must be an integer, 1 or more, or one per row, got {lengths!r}")
            return torch.full((1,), lengths, dtype=torch.int64, device=q.device)
        if lengths.is_floating_point() or lengths.dtype == torch.bool or lengths.shape != q.shape[:1]:
            came = f"{lengths.dtype} {list(lengths.shape)}"
            raise EncodingError(f"{owner}: lengths must be integers of shape [{q.shape[0]}], one per row, got {came}")
        if lengths.device != q.device:
            raise EncodingError(f"{owner}: lengths must be on {q.device}, got {lengths.device}")
        if has_readable_values(lengths) and lengths.numel() and int(lengths.min()) < 1:
            raise EncodingError(f"{owner}: lengths must be 1 or more, got {int(lengths.min())}")
        return lengths.long()


def _is_length(n: object) -> bool:
    return isinstance(n, int | torch.SymInt) and not isinstance(n, bool) and n >= 1
