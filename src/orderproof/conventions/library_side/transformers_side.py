"""Attention and rotations of transformers: the interfaces that its models share, with its mask functions."""

from __future__ import annotations

import inspect
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

PACKAGE = "transformers"
REQUIREMENTS = ("transformers==5.23.0", "torch==2.13.0", "numpy==2.4.6")
ARRAYS = "torch"
LENGTH, WIDTH = 16, 8  # of a table


def _module(query: Tensor, key: Tensor, options: dict[str, Any]) -> Any:
    groups = query.shape[1] // key.shape[1]
    return SimpleNamespace(
        num_key_value_groups=groups, is_causal=options.get("causal", False), training=False, head_dim=query.shape[-1],
        sinks=options.get("sinks"),
    )  # fmt: skip


def _sdpa(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    module: Any = _module(query, key, options)
    given = (module, query, key, value, options.get("mask"))
    found: Tensor = sdpa_attention_forward(*given, scaling=options.get("scale"))[0]
    return found.transpose(1, 2)


def _eager(query: Tensor, key: Tensor, value: Tensor, *, family: str = "llama", **options: Any) -> Tensor:
    function = import_module(f"transformers.models.{family}.modeling_{family}").eager_attention_forward
    module: Any = _module(query, key, options)
    default = None if family == "gemma2" else query.shape[-1] ** -0.5  # llama has no default
    more = {"softcap": options.get("soft_cap")} if family == "gemma2" else {}
    if family == "gpt_oss" and module.sinks is None:
        module.sinks = torch.full((query.shape[1],), -torch.inf, dtype=query.dtype)
    mask, scale = options.get("mask"), options.get("scale", default)
    found: Tensor = function(module, query, key, value, mask, scaling=scale, **more)[0]
    return found.transpose(1, 2)


def _with_mask_function(query: Tensor, key: Tensor, value: Tensor, *, interface: str, **options: Any) -> Tensor:
    """Attention under the mask that a model of transformers makes of a padding mask and a window."""
    from transformers import LlamaConfig, masking_utils

    causal, window = options.get("causal", False), options.get("window")
    config = LlamaConfig(hidden_size=8, num_attention_heads=1)
    config._attn_implementation, config.sliding_window = interface, window
    rows, past = query.shape[0], key.shape[2] - query.shape[2]
    given: dict[str, Any] = {"config": config, "attention_mask": options.get("mask")}
    if past < 0 or (past and not causal):
        raise TypeError("there are fewer keys than queries")
    sliding = "sliding_window_" * (window is not None)
    make = getattr(masking_utils, f"create_{sliding}causal_mask" if causal else f"create_bidirectional_{sliding}mask")
    taken = inspect.signature(make).parameters
    given["inputs_embeds" if "inputs_embeds" in taken else "input_embeds"] = torch.zeros(
        rows, query.shape[2], 8, dtype=query.dtype
    )
    if causal:
        given |= {"past_key_values": _cache_of(key, past), "position_ids": None}
    if "cache_position" in taken:  # version 4
        given["cache_position"] = torch.arange(past, key.shape[2])
    mask = make(**given)
    if interface == "eager":
        return _eager(query, key, value, mask=mask)
    return _sdpa(query, key, value, causal=causal and mask is None and past == 0, mask=mask)


def _cache_of(key: Tensor, past: int) -> Any:
    """A cache that has seen the first keys; None without."""
    from transformers import DynamicCache

    if not past:
        return None
    cache = DynamicCache()
    cache.update(key[:, :, :past], key[:, :, :past], 0)
    return cache


def _rotation(x: Tensor, positions: Tensor, *, family: str, prefix: str) -> Tensor:
    """The rotation of a family, with the defaults of its configuration."""
    models = f"transformers.models.{family}"
    module = import_module(f"{models}.modeling_{family}")
    config = getattr(import_module(f"{models}.configuration_{family}"), f"{prefix}Config")
    table = getattr(module, f"{prefix}RotaryEmbedding")(config(hidden_size=x.shape[-1], num_attention_heads=1))
    rows = positions if positions.ndim == 2 else positions[None]
    found: Tensor = module.apply_rotary_pos_emb(x, x, *table(x, rows))[0]
    return found


def _gptj_rotation(x: Tensor, positions: Tensor, *, table: int | None = None) -> Tensor:
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

    rows = positions if positions.ndim == 2 else positions[None]
    angles = create_sinusoidal_positions(table or int(positions.max()) + 1, x.shape[-1])[rows].to(x.dtype)
    sin, cos = angles.split(angles.shape[-1] // 2, -1)
    found: Tensor = apply_rotary_pos_emb(x.transpose(1, 2), sin, cos)
    return found.transpose(1, 2)


def _bart_table() -> Any:
    from transformers.models.bart.modeling_bart import BartLearnedPositionalEmbedding

    module = BartLearnedPositionalEmbedding(LENGTH, WIDTH)
    return lambda positions: module(positions[None], position_ids=positions)[0]


def _opt_table() -> Any:
    from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding

    module = OPTLearnedPositionalEmbedding(LENGTH, WIDTH)
    return lambda positions: module(torch.ones(1, len(positions)), position_ids=positions[None])[0]


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    axes, flags, made = "[row, head, token, width]", "mask scale grouped", "mask causal window grouped"
    make = partial(partial, _with_mask_function)
    return {
        "sdpa": ("attention", f"{flags} causal", axes, _sdpa),
        "eager": ("attention", flags, axes, _eager),
        "eager_gemma2": ("attention", f"{flags} soft_cap", axes, partial(_eager, family="gemma2")),
        "eager_gpt_oss": ("attention", f"{flags} sinks", axes, partial(_eager, family="gpt_oss")),
        "sdpa_with_its_mask": ("attention", made, axes, make(interface="sdpa")),
        "eager_with_its_mask": ("attention", made, axes, make(interface="eager")),
        "llama_rotary": ("rotation", "rows", axes, partial(_rotation, family="llama", prefix="Llama")),
        "gpt_neox_rotary": ("rotation", "rows", axes, partial(_rotation, family="gpt_neox", prefix="GPTNeoX")),
        "cohere_rotary": ("rotation", "rows", axes, partial(_rotation, family="cohere", prefix="Cohere")),
        "gptj_rotary": ("rotation", "rows table", axes, _gptj_rotation),
        "bart_positions": ("positions", "", "[token, width]", _bart_table()),
        "opt_positions": ("positions", "", "[token, width]", _opt_table()),
    }
