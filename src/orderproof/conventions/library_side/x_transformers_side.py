"""Attention and rotations of x-transformers."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import torch
from torch import Tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its decorators are deprecated
    from x_transformers import x_transformers  # type: ignore[import-untyped]
    from x_transformers.attend import Attend  # type: ignore[import-untyped]

PACKAGE = "x_transformers"
REQUIREMENTS = ("x-transformers==2.31.10", "torch==2.13.0", "numpy==2.4.6")
ARRAYS = "torch"
LENGTH, WIDTH = 16, 8  # of a table


def _attend(query: Tensor, key: Tensor, value: Tensor, *, flash: bool = False, **options: Any) -> Tensor:
    cap = options.get("soft_cap")
    module = Attend(
        heads=query.shape[1], causal=options.get("causal", False), scale=options.get("scale"), flash=flash,
        softclamp_logits=cap is not None, logit_softclamp_value=cap or 50.0,
    )  # fmt: skip
    found: Tensor = module.eval()(query, key, value, mask=options.get("mask"))[0]
    return found


def _rotation(x: Tensor, positions: Tensor) -> Tensor:
    angles = x_transformers.RotaryEmbedding(x.shape[-1])(positions)[0]
    found: Tensor = x_transformers.apply_rotary_pos_emb(x, angles)
    return found


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    axes, flags = "[row, head, token, width]", "mask causal scale grouped"
    tables = {
        "learned_positions": x_transformers.AbsolutePositionalEmbedding(WIDTH, LENGTH),
        "sinusoidal_positions": x_transformers.ScaledSinusoidalEmbedding(WIDTH),
    }

    def look_up(positions: Tensor, *, module: Any) -> Tensor:
        found: Tensor = module(torch.zeros(1, len(positions), WIDTH), pos=positions)
        return found

    return {
        "attend": ("attention", f"{flags} soft_cap", axes, _attend),
        "attend_flash": ("attention", flags, axes, partial(_attend, flash=True)),
        "rotary": ("rotation", "rows", axes, _rotation),
        **{
            name: ("positions", "", "[token, width]", partial(look_up, module=module))
            for name, module in tables.items()
        },
    }
