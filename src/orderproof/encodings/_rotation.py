"""Rotations: feature pairs of queries and keys, turned by angles that the positions set.

    (a, b)  ->  (a cos - b sin,  b cos + a sin)          angle of pair i at position p:  p[axis[i]] * frequency[i]

Pair i is features (i, i + r/2) in layout "half" (NeoX, Hugging Face) and (2i, 2i + 1) in layout "interleaved" (the
RoFormer paper, GPT-J, Meta's Llama), r being the number of features that are turned; those past r are left alone.
The layouts are the same function of q and k whose features are in another order: weights trained with one are wrong
with the other (`layout.convert` puts them in order).

An encoding of this kind says what its frequencies are, and which axis of a position turns each pair. Angles are
float64, their cosines and sines are rounded once, and so is the result. On the CPU a compiled kernel does the work
where the package has one; gradients, torch.compile and torch.export see through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings import kernels
from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings._frequencies import Spectrum, cos_sin
from orderproof.encodings._operands import check_heads, check_size, working_dtype
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Layout = Literal["half", "interleaved"]


class Rotation(PositionalEncoding):
    """Queries and keys turned by position."""

    def __init__(
        self,
        head_width: int,
        spectrum: Spectrum,
        *,
        layout: Layout,
        rotary_width: int | None = None,
        axis: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.head_width = check_size(owner, "head_width", head_width, even=rotary_width is None)
        self.rotary_width = check_size(owner, "rotary_width", rotary_width or head_width, even=True)
        if self.rotary_width > head_width:
            raise EncodingError(f"{owner}: rotary_width must be at most {head_width}, got {rotary_width}")
        if layout not in ("half", "interleaved"):
            raise EncodingError(f"{owner}: layout must be 'half' or 'interleaved', got {layout!r}")
        self.layout: Layout = layout
        pairs = self.rotary_width // 2
        if len(spectrum.frequencies) != pairs:
            came = len(spectrum.frequencies)
            raise EncodingError(f"{owner}: schedule must give {pairs} frequencies, one a pair, got {came}")
        if axis is not None and len(axis) != pairs:
            raise EncodingError(f"{owner}: axis must name one axis a pair, {pairs}, got {len(axis)}")
        self.spectrum = spectrum
        self.axis = axis
        self._plan = kernels.plan_of(spectrum.frequencies, head_width, layout, spectrum.gain, axis)

    def rotate(
        self,
        q: Float[Tensor, "batch head query head_width"],
        k: Float[Tensor, "batch head key head_width"],
        q_positions: Int[Tensor, "*axes_and_batch query"],
        k_positions: Int[Tensor, "*axes_and_batch key"] | None = None,
        *,
        lengths: Int[Tensor, " batch"] | int | None = None,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Float[Tensor, "batch head query head_width"], Float[Tensor, "batch head key head_width"]]:
        """Turn queries and keys, in float32 or float64, rounded once; keys take the queries' positions by default.

        ``out`` is a pair of buffers to write into (``q`` and ``k`` themselves will do); it records no gradient.
        """
        if lengths is not None:
            self.refuse_lengths()
        plan = self._plan if kernels.serves(q, k) else None
        quick = plan is not None
        learning = quick and (q.requires_grad or k.requires_grad) and torch.is_grad_enabled()
        if (
            plan is not None
            and not learning
            and out is None
            and self.axis is None
            and (k_positions is None or k_positions is q_positions)
        ):
            turned = kernels.turn_few(plan, self.head_width, q, k, q_positions)
            if turned is not None:
                return turned
        p = self._positions("q", q, q_positions, quick=quick)
        if quick and k_positions is None and k.shape == q.shape:
            s = p
        else:
            s = self._positions("k", k, q_positions if k_positions is None else k_positions, quick=quick)
        if out is not None:
            _check_out(type(self).__name__, out, (q, k))
        if plan is not None:
            if out is None and learning:
                return _Turn.apply(plan, q, k, p, s, 1.0)  # type: ignore[no-any-return, no-untyped-call]
            return kernels.turn(plan, q, k, p, s, out)
        q_turned, k_turned = self._turn(q, p), self._turn(k, s)
        return (q_turned, k_turned) if out is None else (out[0].copy_(q_turned), out[1].copy_(k_turned))

    def cos_sin(
        self, positions: Int[Tensor, "*axes_and_batch token"], *, dtype: torch.dtype
    ) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
        """The cosine and sine of every angle."""
        return cos_sin(positions, self.spectrum, dtype=dtype, axis=self.axis)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = self.cos_sin(positions, dtype=working_dtype(x))
        if cos.dim() == 3:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        wide = x.to(cos.dtype)
        rest = None
        if self.rotary_width < self.head_width:
            wide, rest = wide[..., : self.rotary_width], x[..., self.rotary_width :]
        if self.layout == "half":
            a, b = wide.chunk(2, dim=-1)
            turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
        else:
            a, b = wide[..., 0::2], wide[..., 1::2]
            turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
        turned = turned.to(x.dtype)
        return turned if rest is None else torch.cat([turned, rest], dim=-1)

    def _positions(self, name: str, x: Tensor, positions: Tensor, *, quick: bool) -> Tensor:
        """The positions, checked: in the usual case by their shape alone, the kernel looks at their values."""
        axes = self.claims.ndim
        own = positions.dim() - (axes > 1)
        if (
            quick
            and positions.dtype is torch.int64
            and (own == 1 or (own == 2 and positions.shape[-2] in (1, x.shape[0])))
            and (axes == 1 or positions.shape[0] == axes)
            and x.dim() == 4
            and x.shape[3] == self.head_width
            and positions.shape[-1] == x.shape[2]
            and positions.is_cpu
        ):
            return positions if positions.stride(-1) == 1 else positions.contiguous()
        check_heads(type(self).__name__, name, x, self.head_width)
        return place.check(
            positions,
            name=f"{name}_positions",
            axes=None if axes == 1 else axes,
            batch=x.shape[0],
            tokens=x.shape[2],
            device=x.device,
        ).contiguous()

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        width = f", rotary_width={self.rotary_width}" if self.rotary_width < self.head_width else ""
        return f"{self.head_width}{width}, layout={self.layout!r}"


class _Turn(torch.autograd.Function):
    """The kernel with its gradient: what comes back is turned back, by the same function."""

    @staticmethod
    def forward(
        ctx: Any, plan: kernels.Plan, q: Tensor, k: Tensor, p: Tensor, s: Tensor, sign: float
    ) -> tuple[Tensor, Tensor]:
        ctx.plan, ctx.sign = plan, sign
        ctx.save_for_backward(p, s)
        return kernels.turn(plan, q, k, p, s, None, sign=sign)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor, None, None, None]:
        p, s = ctx.saved_tensors
        q, k = _Turn.apply(ctx.plan, *gradients, p, s, -ctx.sign)  # type: ignore[no-untyped-call]
        return None, q, k, None, None, None


def _check_out(owner: str, out: tuple[Tensor, Tensor], operands: tuple[Tensor, Tensor]) -> None:
    for name, buffer, x in zip(("q", "k"), out, operands, strict=True):
        if (buffer.shape, buffer.dtype, buffer.device) != (x.shape, x.dtype, x.device):
            came = f"{buffer.dtype} {list(buffer.shape)} on {buffer.device}"
            raise EncodingError(f"{owner}: out for {name} must be {x.dtype} {list(x.shape)} on {x.device}, got {came}")
        if torch.is_grad_enabled() and (x.requires_grad or buffer.requires_grad):
            raise EncodingError(f"{owner}: out records no gradient; call under torch.no_grad(), or leave out out")
