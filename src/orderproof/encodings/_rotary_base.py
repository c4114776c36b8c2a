"""Base class of rotary encodings with fixed frequencies.

    (a, b)  ->  (a cos - b sin,  b cos + a sin)          angle of pair i at position p:  p[pair_axes[i]] * frequency[i]

A subclass defines the frequencies and the position axis of each pair; the layout defines which features form a pair
(see `_rotary_pairs`; `rotary_layout.convert_rotary_layout` converts weights between layouts). Angles are float64; their
cosines and sines are rounded once, and so is the result. A compiled kernel is used on the CPU if the package has one,
and a Triton kernel on a GPU if Triton is installed; both support gradients, torch.compile and torch.export.
Frequencies that depend on the context length are computed per row, on the CPU without the kernel.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from orderproof.encodings import kernels
from orderproof.encodings._frequencies import LengthSchedule, PerRowSpectrum, Schedule, Spectrum, cos_sin
from orderproof.encodings._query_key_encoding import QueryKeyEncoding, QueryOrKey
from orderproof.encodings._rotary_pairs import RotaryLayout, apply_rotary, check_rotary_layout
from orderproof.encodings.checks import check_max_position, check_size, is_mapped_gradient, working_dtype
from orderproof.encodings.schedules._numbers import check_positive
from orderproof.encodings.schedules.geometric import geometric_frequencies
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class RotaryBase(QueryKeyEncoding):
    """Rotary encoding with fixed frequencies and one or more position axes."""

    def __init__(
        self,
        head_width: int,
        spectrum: Spectrum,
        *,
        layout: RotaryLayout,
        rotary_width: int | None = None,
        pair_axes: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.head_width = check_size(owner, "head_width", head_width, even=rotary_width is None)
        self.output_head_dim = self.head_width
        width = head_width if rotary_width is None else rotary_width
        self.rotary_width = check_size(owner, "rotary_width", width, even=True)
        if self.rotary_width > head_width:
            raise EncodingError(f"{owner}: rotary_width must be at most {head_width}, got {rotary_width}")
        check_rotary_layout(owner, layout)
        self.layout: RotaryLayout = layout
        pairs = self.rotary_width // 2
        if len(spectrum.frequencies) != pairs:
            came = len(spectrum.frequencies)
            raise EncodingError(f"{owner}: schedule must return {pairs} frequencies, one per pair, got {came}")
        if pair_axes is not None and len(pair_axes) != pairs:
            raise EncodingError(f"{owner}: pair_axes must have one axis per pair, {pairs}, got {len(pair_axes)}")
        self.spectrum = spectrum
        self.pair_axes = pair_axes
        self._length_dependent_scaling: partial[PerRowSpectrum] | None = None
        self._default_length: int | None = None
        self._plan = kernels.rotary_plan(
            spectrum.frequencies, head_width, layout, spectrum.attention_scaling, pair_axes
        )

    def use_length_dependent_scaling(self, schedule: Schedule | None, *, width: int, base: float) -> None:
        """Compute frequencies from context lengths, if the schedule depends on them."""
        if isinstance(schedule, LengthSchedule):
            self._length_dependent_scaling = partial(schedule.spectrum_at, width=width, base=base)
            self._default_length = schedule.default_length
            self.claims = dataclasses.replace(self.claims, decode_state="length")

    def default_scale(self, head_width: int) -> float:
        """The default factor on q . k, including the schedule's score scale."""
        return super().default_scale(head_width) * self.spectrum.score_scale

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
        """Rotate queries and keys; see `QueryKeyEncoding.rotate`."""
        # Not in `apply_kernel`: one more call with six arguments takes a tenth of a decode step.
        plan = self._plan
        if (
            plan is not None
            and (k_positions is None or k_positions is q_positions)
            and lengths is None
            and self._default_length is None
            and self.pair_axes is None
            and (rotated := kernels.rotate_small(plan, q, k, q_positions, out)) is not None
        ):
            return rotated
        return super().rotate(q, k, q_positions, k_positions, lengths=lengths, out=out)

    def apply_kernel(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor | None,
        lengths: Tensor | int | None,
        out: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor] | None:
        """Rotate with the kernel of the device; None if there is none for these operands."""
        if lengths is None and self._default_length is not None:
            self._check_default_length(self._default_length, q_positions=q_positions, k_positions=k_positions)
        plan = self._plan if lengths is None and kernels.can_rotate_on_cpu(q, k) else None
        if plan is None:
            if type(self).encode is RotaryBase.encode and kernels.can_rotate_on_gpu(q, k):
                return self._rotate_on_gpu(q, k, q_positions, k_positions, lengths, out)
            return None
        needs_gradient = (q.requires_grad or k.requires_grad) and torch.is_grad_enabled()
        p = self._check_positions_fast("q", q, q_positions)
        if k_positions is None and k.shape == q.shape:
            s = p
        else:
            s = self._check_positions_fast("k", k, q_positions if k_positions is None else k_positions)
        if out is not None:
            self.check_out(out, q, k)
        elif needs_gradient:
            return _RotaryFunction.apply(plan, q, k, p, s, 1.0)  # type: ignore[no-any-return, no-untyped-call]
        return kernels.rotate(plan, q, k, p, s, out)

    def _rotate_on_gpu(
        self,
        q: Tensor,
        k: Tensor,
        q_positions: Tensor,
        k_positions: Tensor | None,
        lengths: Tensor | int | None,
        out: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor]:
        """Rotate with the GPU kernel. Queries and keys at the same positions share their angles."""
        p, s, rows = self.check_inputs(q, k, q_positions, k_positions, lengths, out)
        angles = self.cos_sin(p, dtype=torch.float32, lengths=rows)
        same_positions = k_positions is None or k_positions is q_positions
        k_angles = angles if same_positions else self.cos_sin(s, dtype=torch.float32, lengths=rows)
        return kernels.rotate_on_gpu(q, k, (angles, k_angles), out, layout=self.layout)

    def encode(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        side: QueryOrKey,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Rotate queries or keys."""
        del side
        return self._rotate_by(x, self.cos_sin(positions, dtype=working_dtype(x), lengths=lengths))

    def encode_pair(
        self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor, *, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys; at the same positions they share their angles."""
        dtype = working_dtype(q)
        if k_positions is not q_positions or type(self).encode is not RotaryBase.encode or working_dtype(k) != dtype:
            return super().encode_pair(q, k, q_positions, k_positions, lengths=lengths)
        angles = self.cos_sin(q_positions, dtype=dtype, lengths=lengths)
        return self._rotate_by(q, angles), self._rotate_by(k, angles)

    def _rotate_by(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        cos, sin = (part.unsqueeze(1) if part.dim() == 3 else part for part in angles)
        return apply_rotary(x, cos, sin, layout=self.layout)

    def cos_sin(
        self,
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        dtype: torch.dtype,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
        """The cosine and sine of every angle."""
        if lengths is None or self._length_dependent_scaling is None:
            return cos_sin(positions, self.spectrum, dtype=dtype, pair_axes=self.pair_axes)
        return cos_sin(positions, self._length_dependent_scaling(lengths), dtype=dtype, pair_axes=self.pair_axes)

    def _check_default_length(self, length: int, **positions: Tensor | None) -> None:
        """Reject positions at or above the length to which the default frequencies belong."""
        for name, own in positions.items():
            if isinstance(own, Tensor):
                wanted = f"{type(self).__name__}: {name} must be below {length}, the schedule's default length"
                check_max_position(own, length - 1, wanted + ", got {came}; pass lengths, or a larger maximum")

    def _check_positions_fast(self, side: QueryOrKey, x: Tensor, positions: Tensor) -> Tensor:
        """The checked positions; in the common case only their shape is checked, and the kernel checks their values."""
        if not isinstance(positions, Tensor):
            return self.check_side(side, x, positions)  # raises the error
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
        """The constructor arguments."""
        width = f", rotary_width={self.rotary_width}" if self.rotary_width < self.head_width else ""
        return f"{self.head_width}{width}, layout={self.layout!r}"


def rotary_spectrum(owner: str, schedule: Schedule | None, *, width: int, base: float) -> Spectrum:
    """The spectrum of a schedule, or geometric frequencies without one; checks the base."""
    check_positive(owner, base=base)
    if schedule is None:
        return geometric_frequencies(width=width, base=base)
    if isinstance(schedule, type) or not callable(schedule):
        raise EncodingError(
            f"{owner}: schedule must be an instance, such as schedules.LinearScaling(4.0), got {schedule!r}"
        )
    return schedule(width=width, base=base)


class _RotaryFunction(torch.autograd.Function):
    """The CPU kernel with its gradient, a rotation by the negative angles."""

    @staticmethod
    def forward(
        ctx: Any, plan: kernels.RotaryPlan, q: Tensor, k: Tensor, p: Tensor, s: Tensor, sign: float
    ) -> tuple[Tensor, Tensor]:
        ctx.plan, ctx.sign = plan, sign
        ctx.save_for_backward(p, s)
        return kernels.rotate(plan, q, k, p, s, None, sign=sign)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor, None, None, None]:
        p, s = ctx.saved_tensors
        if any(map(is_mapped_gradient, gradients)):
            q, k = (_rotate_back(ctx.plan, x, at, -ctx.sign) for x, at in zip(gradients, (p, s), strict=True))
            return None, q, k, None, None, None
        q, k = _RotaryFunction.apply(ctx.plan, *gradients, p, s, -ctx.sign)  # type: ignore[no-untyped-call]
        return None, q, k, None, None, None


def _rotate_back(plan: kernels.RotaryPlan, x: Tensor, positions: Tensor, sign: float) -> Tensor:
    """The rotation of the kernel by ``sign`` times the angles, with torch."""
    frequencies, _, layout, gain, pair_axes = plan.arguments
    spectrum = Spectrum(frequencies=frequencies, attention_scaling=gain)
    cos, sin = cos_sin(positions, spectrum, dtype=working_dtype(x), pair_axes=pair_axes)
    if cos.dim() == 3:
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return apply_rotary(x, cos, sign * sin, layout=layout)
