"""Attention and rotations of x-transformers."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.library import AnyFunction, Library
from orderproof.conventions.positions.function import LENGTH, WIDTH, PositionTable
from orderproof.conventions.rotation.function import RotaryFunction
from orderproof.library_messages import suppress_warnings


def _attend(query: Tensor, key: Tensor, value: Tensor, *, flash: bool = False, **options: Any) -> Tensor:
    from x_transformers.attend import Attend  # type: ignore[import-untyped]

    cap = options.get("soft_cap")
    module = Attend(
        heads=query.shape[1], causal=options.get("causal", False), scale=options.get("scale"), flash=flash,
        softclamp_logits=cap is not None, logit_softclamp_value=cap or 50.0,
    )  # fmt: skip
    found: Tensor = module.eval()(query, key, value, mask=options.get("mask"))[0]
    return found


def _rotation(x: Tensor, positions: Tensor) -> Tensor:
    from x_transformers.x_transformers import (  # type: ignore[import-untyped]
        RotaryEmbedding,
        apply_rotary_pos_emb,
    )

    found: Tensor = apply_rotary_pos_emb(x, RotaryEmbedding(x.shape[-1])(positions)[0])
    return found


def _table(name: str) -> PositionTable:
    with suppress_warnings():  # its decorators are deprecated
        from x_transformers import x_transformers  # type: ignore[import-untyped]

    learned = x_transformers.AbsolutePositionalEmbedding(WIDTH, LENGTH)
    module = learned if name == "learned_positions" else x_transformers.ScaledSinusoidalEmbedding(WIDTH)

    def look_up(positions: Tensor) -> Tensor:
        found: Tensor = module(torch.zeros(1, len(positions), WIDTH), pos=positions)
        return found

    return PositionTable(name, f"x-transformers {version('x-transformers')}", "[token, width]", look_up)


def _functions() -> tuple[AnyFunction, ...]:
    named, axes = f"x-transformers {version('x-transformers')}", "[row, head, token, width]"
    make = partial(AttentionFunction, version=named, layout=axes)
    flags = frozenset({"mask", "causal", "scale", "grouped"})
    return (
        make("attend", takes=flags | {"soft_cap"}, attend=_attend),
        make("attend_flash", takes=flags, attend=partial(_attend, flash=True)),
        RotaryFunction("rotary", named, axes, _rotation),
        _table("learned_positions"),
        _table("sinusoidal_positions"),
    )


LIBRARY = Library("x_transformers", "x_transformers", _functions)
