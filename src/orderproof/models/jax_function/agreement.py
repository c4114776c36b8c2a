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
from orderproof.models.translation_rounding import gap, largest, unit

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
            how = f"of shape {list(x.shape)}, where JAX gives {list(other.shape)}"
            raise SubjectError(f"{name}: the translation to torch gives an output {key!r} {how}; please report it")
        own, apart = gap(x, wide[key]), gap(other, wide[key])
        allowed = max(SHARE * own, UNITS * unit(x) * largest(x))
        if apart > allowed:
            raise SubjectError(
                f"{name}: the translation to torch gives another output {key!r} than JAX ({apart:.2g} apart, where "
                f"rounding explains {allowed:.2g}); please report it"
            )
