"""Attention and rotations of transformers: the interfaces that its models share."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.library import AnyFunction, Library
from orderproof.conventions.positions.function import LENGTH, PositionTable
from orderproof.conventions.positions.function import WIDTH as TABLE_WIDTH
from orderproof.conventions.rotation.function import RotaryFunction


def _module(query: Tensor, key: Tensor, options: dict[str, Any]) -> Any:
    groups = query.shape[1] // key.shape[1]
    return SimpleNamespace(num_key_value_groups=groups, is_causal=options.get("causal", False), training=False)


def _sdpa(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    module: Any = _module(query, key, options)
    given = (module, query, key, value, options.get("mask"))
    found: Tensor = sdpa_attention_forward(*given, scaling=options.get("scale"))[0]
    return found.transpose(1, 2)


def _eager(query: Tensor, key: Tensor, value: Tensor, *, scale: float = WIDTH**-0.5, **options: Any) -> Tensor:
    from transformers.models.llama.modeling_llama import eager_attention_forward

    module: Any = _module(query, key, options)
    found: Tensor = eager_attention_forward(module, query, key, value, options.get("mask"), scaling=scale)[0]
    return found.transpose(1, 2)


def _eager_with_cap(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward

    module: Any = _module(query, key, options)
    module.head_dim = WIDTH
    scale, cap = options.get("scale"), options.get("soft_cap")
    found: Tensor = eager_attention_forward(module, query, key, value, options.get("mask"), scaling=scale, softcap=cap)[
        0
    ]
    return found.transpose(1, 2)


def _llama_rotation(x: Tensor, positions: Tensor) -> Tensor:
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    width = x.shape[-1]
    table = LlamaRotaryEmbedding(LlamaConfig(hidden_size=width, num_attention_heads=1, head_dim=width))
    found: Tensor = apply_rotary_pos_emb(x, x, *table(x, positions[None]))[0]
    return found


def _gptj_rotation(x: Tensor, positions: Tensor) -> Tensor:
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

    table = create_sinusoidal_positions(int(positions.max()) + 1, x.shape[-1])[positions][None].to(x.dtype)
    sin, cos = table.split(table.shape[-1] // 2, -1)
    found: Tensor = apply_rotary_pos_emb(x.transpose(1, 2), sin, cos)
    return found.transpose(1, 2)


def _bart_table() -> Any:
    from transformers.models.bart.modeling_bart import BartLearnedPositionalEmbedding

    module = BartLearnedPositionalEmbedding(LENGTH, TABLE_WIDTH)
    return lambda positions: module(positions[None], position_ids=positions)[0]


def _opt_table() -> Any:
    from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding

    module = OPTLearnedPositionalEmbedding(LENGTH, TABLE_WIDTH)
    return lambda positions: module(torch.ones(1, len(positions)), position_ids=positions[None])[0]


def _functions() -> tuple[AnyFunction, ...]:
    import transformers

    version, axes = f"transformers {transformers.__version__}", "[row, head, token, width]"
    make, rotary = partial(AttentionFunction, version=version, layout=axes), partial(RotaryFunction, version=version)
    flags = frozenset({"mask", "scale", "grouped"})
    return (
        make("sdpa", takes=flags | {"causal"}, attend=_sdpa),
        make("eager", takes=flags, attend=_eager),
        make("eager_gemma2", takes=flags | {"soft_cap"}, attend=_eager_with_cap),
        rotary("llama_rotary", layout=axes, rotate=_llama_rotation),
        rotary("gptj_rotary", layout=axes, rotate=_gptj_rotation),
        PositionTable("bart_positions", version, "[token, width]", _bart_table()),
        PositionTable("opt_positions", version, "[token, width]", _opt_table()),
    )


LIBRARY = Library("transformers", "transformers", _functions)
