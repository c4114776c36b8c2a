"""Other masks in the attention modules of a changed reference, in place of those that the model makes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MaskOf = Callable[[Tensor], Tensor]  # what is added to the scores [row, 1, query, key] -> the same of a port
_ATTENTION = re.compile(r"(attn|attention)$")


def replace_masks(model: Any, mask_of: MaskOf, layers: set[int] | None = None) -> None:
    """Give the attention modules of these layers, or of all, the masks that a function makes of their own."""

    def with_mask(_part: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        hidden: Any = options.get("hidden_states", next(iter(arguments), None))
        own = _added_to_scores(options.get("attention_mask"), hidden)
        return arguments, {**options, "attention_mask": mask_of(own)}

    hooked = list[str]()
    for name, part in model.named_modules():
        inside = any(name.startswith(f"{each}.") for each in hooked)  # it gets its mask from the module around it
        if _ATTENTION.search(name) and not inside and (layers is None or getattr(part, "layer_idx", None) in layers):
            part.register_forward_pre_hook(with_mask, with_kwargs=True)
            hooked.append(name)


def _added_to_scores(mask: Any, hidden: Tensor) -> Tensor:
    """A mask as numbers; the causal one where there is none, since a kernel knows it."""
    if isinstance(mask, Tensor) and mask.dtype != torch.bool:
        return mask
    count = hidden.shape[1]
    visible = mask if isinstance(mask, Tensor) else torch.ones(1, 1, count, count, dtype=torch.bool).tril()
    return torch.zeros(visible.shape, dtype=hidden.dtype).masked_fill(~visible, torch.finfo(hidden.dtype).min)
