"""Padding of any axis: by a number, or by entries of the axis."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.operators.movement import is_empty
from orderproof.models.onnx_file.values import Value


@operator("Pad")
def pad(call: Operation) -> Value:
    """Elements before and after each axis."""
    x, widths = call.tensor(0), call.listed("pads", 1) or []
    axes = [int(d) % x.ndim for d in call.listed("axes", 3) or range(x.ndim)]
    mode, fill = call.attribute("mode", "constant"), call.optional(2)
    value = call.attribute("value", 0.0) if fill is None else fill.item()
    by_axis = {d: (widths[k], widths[k + len(axes)]) for k, d in enumerate(axes)}
    last = list(reversed(range(x.ndim)))
    while mode != "constant" and len(last) > max(x.ndim - 2, 1) and by_axis.get(last[-1], (0, 0)) == (0, 0):
        last.pop()  # torch reflects and repeats the last axes only, all but the first one or two
    flat = [n for d in last for n in by_axis.get(d, (0, 0))]
    if mode == "constant":
        return F.pad(x, flat, value=value)
    if x.ndim > 1 and len(flat) <= 2 * max(x.ndim - 2, 1) and not is_empty(x) and x.is_floating_point():
        return F.pad(x, flat, mode={"reflect": "reflect", "edge": "replicate", "wrap": "circular"}[mode])
    for d, (before, after) in by_axis.items():
        x = x.index_select(d, _places(mode, x.shape[d], before, after))
    return x


def _places(mode: str, size: Any, before: Any, after: Any) -> Tensor:
    """The places of an axis that a padded axis repeats."""
    place = torch.arange(-before, size + after)
    if mode == "edge":
        return place.clamp(0, size - 1)
    if mode == "wrap":
        return torch.remainder(place, size)
    mirrored: Tensor = size - 1 - (size - 1 - place.abs()).abs()
    return mirrored
