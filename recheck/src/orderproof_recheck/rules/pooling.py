"""Pooling, and other resolutions of the last dimensions.

Pooling reads a window of places as a convolution does. Which places adaptive pooling and upsampling read is not
followed: all of them count.
"""

from __future__ import annotations

import re
from typing import Any

from orderproof_recheck.facts import Predicates
from orderproof_recheck.logic.formulas import FALSE
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, integer
from orderproof_recheck.operator import Operator, Permuted, operators
from orderproof_recheck.rules.convolution import each, of_all_places, windowed
from orderproof_recheck.rules.movement import ONE, size_of
from orderproof_recheck.steps import Derived, Step


def window_dims(step: Step) -> range:
    """The last dimensions of the operand, as many as the name of the operator says: 2 for avg_pool2d."""
    found = re.search(r"(\d)d", step.name)
    rank, places = len(step.fact(0).axes), int(found[1]) if found is not None else 0
    require(0 < places < rank, "an operand without rows or channels")
    return range(rank - places, rank)


def pool(step: Step) -> list[Derived]:
    """The mean or the largest element of a window, and its place."""
    places, largest = len(window_dims(step)), "max" in step.name
    width = each(step, step.argument(1, "kernel_size"), places)
    stride = step.argument(2, "stride")
    strides = width if stride is None or stride == [] else each(step, stride, places)
    padding = each(step, step.argument(3, "padding", 0), places)
    dilation = each(step, step.argument(4, "dilation", 1) if largest else 1, places)
    require(all(0 <= 2 * p <= w for p, w in zip(padding, width, strict=True)), "a window of padding")
    extents = [integer(w) for w in width]
    up = step.argument(5 if largest else 4, "ceil_mode", False) is True
    found = windowed(step, step.fact(0), extents, strides, padding, dilation, channels=False, rounds_up=up)[
        0
    ].predicates
    gaps = any(p > 0 and d > 1 for p, d in zip(padding, dilation, strict=True))
    ordinary = FALSE if largest and gaps else found.ordinary  # a window with gaps may read padding only: -inf
    return _with_places(step, Predicates(same=found.same, ordinary=ordinary))


def _with_places(step: Step, values: Predicates) -> list[Derived]:
    """The values, and their places, which are ordinary integers."""
    return [Derived(values), *(Derived(Predicates(same=values.same)) for _ in step.claims[1:])]


def resized(step: Step) -> list[Derived]:
    """Adaptive pooling and upsampling: every place of the last dimensions counts as read."""
    dims = window_dims(step)
    wanted = step.argument(1, "output_size")
    scales = step.argument(2 if "nearest" in step.name else 3, "scale_factors") if wanted is None else None
    sizes = wanted if isinstance(wanted, list) else [wanted] * len(dims)
    factors = scales if isinstance(scales, list) else [scales] * len(dims)
    for shape in step.shapes:
        for d, size, factor in zip(dims, sizes, factors, strict=True):
            require(step.equal(shape[d], _size(step, d, size, factor)), "its result has another shape")
    return _with_places(step, of_all_places(step, dims))


def _size(step: Step, dim: int, size: Any, factor: Any) -> Term:
    own = size_of(step.fact(0), dim)
    if size is not None:
        return step.term(size)
    if factor is None:
        return own
    require(isinstance(factor, float) and own.is_integer, "a size that is scaled is open")
    return integer(int(own.constant * factor))


def to_one_number(step: Step) -> bool:
    """True if the last dimensions are pooled to one number: then the order of the elements does not matter."""
    return all(step.shape[d] is ONE for d in window_dims(step))


_PLACES = ("1d", "2d", "3d")
POOLING: dict[str, Operator] = {
    **operators((f"avg_pool{d}" for d in _PLACES), pool, Permuted(by_index=window_dims)),
    **operators((f"max_pool{d}" for d in _PLACES), pool, Permuted(by_index=window_dims)),
    **operators((f"max_pool{d}_with_indices" for d in _PLACES), pool, Permuted(by_index=window_dims)),
    **operators(
        (*(f"adaptive_{kind}_pool{d}" for kind in ("avg", "max") for d in _PLACES), "_adaptive_avg_pool2d",
         "_adaptive_avg_pool3d"),
        resized, Permuted((0,), window_dims, is_in_any_order=to_one_number),
    ),
    **operators(
        (*(f"upsample_nearest{d}" for d in _PLACES), *(f"_upsample_nearest_exact{d}" for d in _PLACES),
         "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
         "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
        resized, Permuted(by_index=window_dims),
    ),
}  # fmt: skip
