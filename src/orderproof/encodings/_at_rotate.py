"""What all encodings of the site "rotate" share: queries and keys, each changed by its own position.

    score[m, n] = scale * T(m) q[m] . U(n) k[n]

T and U are linear for each position, or at least a function of one token and its position alone. An encoding of this
kind says what T and U are (`turned`); operands, positions, lengths and buffers to write into are checked here.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings._operands import check_heads, demand, is_row, kind_of
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Side = Literal["q", "k"]


class AtRotate(PositionalEncoding):
    """Queries and keys, each changed by its own position."""

    head_width: int
    heads: int | None = None
    """The number of heads it was made for; None: any."""
    turned_width: int
    """Features of a turned query or key."""

    @abstractmethod
    def turned(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        side: Side,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token turned_width"]:
        """Queries (side "q") or keys (side "k") as their positions change them, rounded once."""

    def rotate(
        self,
        q: Float[Tensor, "batch head query head_width"],
        k: Float[Tensor, "batch head key head_width"],
        q_positions: Int[Tensor, "*axes_and_batch query"],
        k_positions: Int[Tensor, "*axes_and_batch key"] | None = None,
        *,
        lengths: Int[Tensor, " batch"] | int | None = None,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Float[Tensor, "batch head query turned_width"], Float[Tensor, "batch head key turned_width"]]:
        """Change queries and keys, in float32 or float64, rounded once; keys take the queries' positions by default.

        ``lengths`` is the length at which each row is read, for encodings of state "length"; one for all rows, or one
        a row. ``out`` is a pair of buffers to write into; it records no gradient.
        """
        done = self.by_kernel(q, k, q_positions, k_positions, lengths, out)
        if done is not None:
            return done
        p, s, rows = self.checked(q, k, q_positions, k_positions, lengths, out)
        turned = self.turned(q, p, side="q", lengths=rows), self.turned(k, s, side="k", lengths=rows)
        return turned if out is None else (out[0].copy_(turned[0]), out[1].copy_(turned[1]))

    def by_kernel(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor | None,
        lengths: Tensor | int | None,
        out: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor] | None:
        """The same in some faster way, where the encoding has one for these operands."""
        del q, k, q_positions, k_positions, lengths, out
        return None

    def checked(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor | None,
        lengths: Tensor | int | None,
        out: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Refuse what does not fit; return the positions of queries and keys, and the length of each row or of all."""
        rows = self._lengths(q, lengths)
        p = self.check_side("q", q, q_positions)
        s = self.check_side("k", k, q_positions if k_positions is None else k_positions)
        if out is not None:
            self.check_out(out, q, k)
        if rows is not None:
            for name, positions in (("q_positions", p), ("k_positions", s)):
                self._check_within(name, positions, rows)
        return p, s, rows

    def check_side(self, side: Side, x: Tensor, positions: Tensor) -> Int[Tensor, "*axes_and_batch token"]:
        """Refuse an operand or positions that do not fit; return the positions as contiguous int64."""
        owner = type(self).__name__
        check_heads(owner, side, x, self.head_width)
        if self.heads is not None and x.shape[1] != self.heads:
            raise EncodingError(
                f"{owner}: {side} must have {self.heads} heads, each turns its own way; got {x.shape[1]}"
            )
        axes = self.claims.ndim
        return place.check(
            positions,
            name=f"{side}_positions",
            axes=None if axes == 1 else axes,
            batch=x.shape[0],
            tokens=x.shape[2],
            device=x.device,
        ).contiguous()

    def check_out(self, out: tuple[Tensor, Tensor], q: Tensor, k: Tensor) -> None:
        """Refuse buffers that the result does not fit into, or that a gradient would be lost in."""
        owner = type(self).__name__
        if not is_row(out, 2):
            raise EncodingError(f"{owner}: out must be a pair of buffers, for q and for k, got {kind_of(out)}")
        for side, buffer, x in zip(("q", "k"), out, (q, k), strict=True):
            shape = [*x.shape[:-1], self.turned_width]
            if (list(buffer.shape), buffer.dtype, buffer.device) != (shape, x.dtype, x.device):
                came = f"{buffer.dtype} {list(buffer.shape)} on {buffer.device}"
                raise EncodingError(f"{owner}: out for {side} must be {x.dtype} {shape} on {x.device}, got {came}")
            if torch.is_grad_enabled() and (x.requires_grad or buffer.requires_grad):
                raise EncodingError(f"{owner}: out records no gradient; call under torch.no_grad(), or leave out out")
        if out[0] is out[1]:
            raise EncodingError(f"{owner}: out must be a pair of buffers, for q and for k, got one twice")

    def _check_within(self, name: str, positions: Tensor, lengths: Int[Tensor, " row"]) -> None:
        """Refuse a position that a row of the stated length does not have."""
        if positions.shape[-1]:
            last = positions.amax(-1) if self.claims.ndim == 1 else positions.amax((0, -1))
            owner, hint = type(self).__name__, "pads count from 0, see positions.from_mask"
            refusal = (
                f"{owner}: lengths must be above every position, got a row whose {name} reach or pass its own; {hint}"
            )
            demand(last < lengths, EncodingError, refusal)

    def _lengths(self, q: Tensor, lengths: Tensor | int | None) -> Int[Tensor, " row"] | None:
        """The lengths as int64, one for each row or one for all; None where none are given."""
        if lengths is None:
            return None
        if self.claims.state != "length":
            self.refuse_lengths()
        owner = type(self).__name__
        if not isinstance(lengths, Tensor):
            if not _is_length(lengths):
                raise EncodingError(f"{owner}: lengths must be an integer, 1 or more, or one a row, got {lengths!r}")
            return torch.full((1,), lengths, dtype=torch.int64, device=q.device)
        if lengths.is_floating_point() or lengths.dtype == torch.bool or lengths.shape != q.shape[:1]:
            came = f"{lengths.dtype} {list(lengths.shape)}"
            raise EncodingError(f"{owner}: lengths must be integers of shape [{q.shape[0]}], one a row, got {came}")
        if lengths.device != q.device:
            raise EncodingError(f"{owner}: lengths must be on {q.device}, got {lengths.device}")
        if place.readable(lengths) and lengths.numel() and int(lengths.min()) < 1:
            raise EncodingError(f"{owner}: lengths must be 1 or more, got {int(lengths.min())}")
        return lengths.long()


def _is_length(n: object) -> bool:
    return isinstance(n, int | torch.SymInt) and not isinstance(n, bool) and n >= 1
