"""Rotations of fixed frequencies: feature pairs of queries and keys, turned by angles that the positions set.

    (a, b)  ->  (a cos - b sin,  b cos + a sin)          angle of pair i at position p:  p[axis[i]] * frequency[i]

An encoding of this kind says what its frequencies are, and which axis of a position turns each pair; which features
make a pair is its layout (see `_pairs`; `layout.convert` puts the weights of one layout in order for the other).
Angles are float64, their cosines and sines are rounded once, and so is the result. On the CPU a compiled kernel does
the work where the package has one, on a GPU one of Triton's where that is installed; gradients, torch.compile and
torch.export see through both. Where the frequencies depend on the length of a row and one is given, they are worked
out row by row, on the CPU without the kernel.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from orderproof.encodings import kernels
from orderproof.encodings._at_rotate import AtRotate, Side
from orderproof.encodings._frequencies import LengthSchedule, RowSpectra, Schedule, Spectrum, cos_sin
from orderproof.encodings._operands import check_size, working_dtype
from orderproof.encodings._pairs import Layout, check_layout, turn_pairs
from orderproof.encodings.schedules._numbers import check_positive
from orderproof.encodings.schedules.geometric import geometric
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Rotation(AtRotate):
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
        self.turned_width = self.head_width
        width = head_width if rotary_width is None else rotary_width
        self.rotary_width = check_size(owner, "rotary_width", width, even=True)
        if self.rotary_width > head_width:
            raise EncodingError(f"{owner}: rotary_width must be at most {head_width}, got {rotary_width}")
        check_layout(owner, layout)
        self.layout: Layout = layout
        pairs = self.rotary_width // 2
        if len(spectrum.frequencies) != pairs:
            came = len(spectrum.frequencies)
            raise EncodingError(f"{owner}: schedule must give {pairs} frequencies, one a pair, got {came}")
        if axis is not None and len(axis) != pairs:
            raise EncodingError(f"{owner}: axis must name one axis a pair, {pairs}, got {len(axis)}")
        self.spectrum = spectrum
        self.axis = axis
        self._by_length: partial[RowSpectra] | None = None
        self._plan = kernels.plan_of(spectrum.frequencies, head_width, layout, spectrum.gain, axis)

    def follow_lengths(self, schedule: Schedule | None, *, width: int, base: float) -> None:
        """Let the frequencies follow the lengths that are given, where this schedule depends on them."""
        if isinstance(schedule, LengthSchedule):
            self._by_length = partial(schedule.at, width=width, base=base)
            self.claims = dataclasses.replace(self.claims, state="length")

    def scale(self, head_width: int) -> float:
        """What scores are multiplied by unless the caller says otherwise; a schedule may sharpen them."""
        return super().scale(head_width) * self.spectrum.score_gain

    def by_kernel(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor | None,
        lengths: Tensor | int | None,
        out: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor] | None:
        """The same by the kernel of the device; None where there is none for these operands."""
        plan = self._plan if lengths is None and kernels.serves(q, k) else None
        if plan is None:
            if type(self).turned is Rotation.turned and kernels.serves_on_gpu(q, k):
                return self._rotate_on_gpu(q, k, q_positions, k_positions, lengths, out)
            return None
        learning = (q.requires_grad or k.requires_grad) and torch.is_grad_enabled()
        if not learning and self.axis is None and (k_positions is None or k_positions is q_positions):
            turned = kernels.turn_few(plan, self.head_width, q, k, q_positions, out)
            if turned is not None:
                return turned
        p = self._quick_check("q", q, q_positions)
        if k_positions is None and k.shape == q.shape:
            s = p
        else:
            s = self._quick_check("k", k, q_positions if k_positions is None else k_positions)
        if out is not None:
            self.check_out(out, q, k)
        elif learning:
            return _Turn.apply(plan, q, k, p, s, 1.0)  # type: ignore[no-any-return, no-untyped-call]
        return kernels.turn(plan, q, k, p, s, out)

    def _rotate_on_gpu(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor | None,
        lengths: Tensor | int | None,
        out: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor]:
        """The same by the kernel for a GPU; where both sides have the same positions, their angles are made once."""
        p, s, rows = self.checked(q, k, q_positions, k_positions, lengths, out)
        angles = self.cos_sin(p, dtype=torch.float32, lengths=rows)
        alike = k_positions is None or k_positions is q_positions
        k_angles = angles if alike else self.cos_sin(s, dtype=torch.float32, lengths=rows)
        return kernels.turn_on_gpu(q, k, (angles, k_angles), out, layout=self.layout)

    def turned(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        side: Side,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Queries and keys, turned alike."""
        del side
        cos, sin = self.cos_sin(positions, dtype=working_dtype(x), lengths=lengths)
        if cos.dim() == 3:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return turn_pairs(x, cos, sin, layout=self.layout)

    def cos_sin(
        self,
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        dtype: torch.dtype,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
        """The cosine and sine of every angle."""
        if lengths is None or self._by_length is None:
            return cos_sin(positions, self.spectrum, dtype=dtype, axis=self.axis)
        return cos_sin(positions, self._by_length(lengths), dtype=dtype, axis=self.axis)

    def _quick_check(self, side: Side, x: Tensor, positions: Tensor) -> Tensor:
        """The positions, checked: in the usual case by their shape alone, the kernel looks at their values."""
        if not isinstance(positions, Tensor):
            return self.check_side(side, x, positions)  # refuses it
        axes = self.claims.ndim
        own = positions.dim() - (axes > 1)
        if (
            positions.dtype is torch.int64
            and (own == 1 or (own == 2 and positions.shape[-2] in (1, x.shape[0])))
            and (axes == 1 or positions.shape[0] == axes)
            and x.dim() == 4
            and x.shape[3] == self.head_width
            and positions.shape[-1] == x.shape[2]
            and positions.is_cpu
        ):
            return positions if positions.stride(-1) == 1 else positions.contiguous()
        return self.check_side(side, x, positions)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        width = f", rotary_width={self.rotary_width}" if self.rotary_width < self.head_width else ""
        return f"{self.head_width}{width}, layout={self.layout!r}"


def spectrum_of(owner: str, schedule: Schedule | None, *, width: int, base: float) -> Spectrum:
    """The spectrum a schedule gives, or the papers' where there is none; the base must be positive."""
    check_positive(owner, base=base)
    if schedule is None:
        return geometric(width=width, base=base)
    if isinstance(schedule, type) or not callable(schedule):
        raise EncodingError(f"{owner}: schedule must be a schedule, such as schedules.Linear(4.0), got {schedule!r}")
    return schedule(width=width, base=base)


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
