"""Advice about a mask of which a proof knows too little: one that is a parameter, or that hides in part."""

from __future__ import annotations

from torch import nn

from orderproof.number_limits import masking_threshold
from orderproof.recording.captured_graph import CapturedGraph

LEAST = 1e3  # the size of a negative number that may be meant as a mask
_FILLS = {"masked_fill", "where", "full", "full_like", "new_full", "fill", "mul", "scalar_tensor"}


def mask_hint(module: nn.Module, captured: CapturedGraph) -> str:
    """A sentence with what to change; empty if no mask is of these kinds."""
    for name, parameter in module.named_parameters():
        if parameter.requires_grad or parameter.is_meta or not parameter.is_floating_point() or parameter.dim() < 2:
            continue
        if float(parameter.detach().min()) <= -masking_threshold(parameter.dtype):
            return (
                f"the parameter {name} holds a mask, and a proof is for every weight: register it as a buffer, or "
                "prove the law with `orderproof prove --weights these`"
            )
    for node in captured.graph.nodes:
        name = str(node.target).removeprefix("aten.").partition(".")[0]
        value = node.meta.get("val")
        limit = masking_threshold(value.dtype) if hasattr(value, "dtype") else 0.0
        for number in node.args if name in _FILLS else ():
            if isinstance(number, int | float) and -limit < number <= -LEAST:
                return (
                    f"a mask of {number:g} does not hide scores that are as large: fill with float('-inf') or "
                    "torch.finfo(scores.dtype).min"
                )
    return ""
