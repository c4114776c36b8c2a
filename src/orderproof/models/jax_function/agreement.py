"""Agreement of a translated program with JAX, up to the rounding of the program's own numbers.

Both round float32, in another order. The same program in float64 shows how much: what JAX computes may be a few times
as far from it as what the translation computes, or some units in the last place.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError

SHARE = 8.0  # times the rounding of the translation: sums are taken in another order
UNITS = 16  # in the last place of the largest number of the output


def check_agreement(name: str, module: nn.Module, inputs: Sequence[Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise `SubjectError` for outputs that differ from those of JAX by more than rounding."""
    with torch.no_grad():
        found = module(*inputs)
        wide = copy.deepcopy(module).double()(*(x.double() if x.is_floating_point() else x for x in inputs))
    for key, x in found.items():
        other = expected[key]
        if x.shape != other.shape:
            raise SubjectError(f"{name}: {_differs(key)} of shape {list(x.shape)}, not {list(other.shape)}; {REPORT}")
        own, gap = _gap(x, wide[key]), _gap(other, wide[key])
        allowed = max(SHARE * own, UNITS * _unit(x) * _largest(x))
        if gap > allowed:
            raise SubjectError(
                f"{name}: {_differs(key)} ({gap:.2g} apart, where rounding explains {allowed:.2g}); {REPORT}"
            )


REPORT = "please report it"


def _differs(key: str) -> str:
    return f"the translation to torch gives another output {key!r} than JAX"


def _unit(x: Tensor) -> float:
    return torch.finfo(x.dtype).eps if x.is_floating_point() else 0.0


def _largest(x: Tensor) -> float:
    finite = x[x.isfinite()]
    return float(finite.double().abs().max()) if finite.numel() else 0.0


def _gap(x: Tensor, other: Tensor) -> float:
    """The largest difference; infinite between a number and none."""
    x, other = x.double(), other.double()
    same = (x == other) | (x.isnan() & other.isnan())
    gaps = torch.where(same, 0.0, (x - other).abs()).nan_to_num(nan=float("inf"))
    return float(gaps.max()) if gaps.numel() else 0.0
