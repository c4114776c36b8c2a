"""Sequence-parallel attention for transformers models: each rank gathers the keys of all ranks.

transformers runs a model with an attention function that is registered by name. The function registered here gathers
keys, values and global positions from all ranks and masks keys at later positions. This covers full attention only:
other arguments of the attention function (windows, sinks, biases) are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from orderproof.errors import UnsupportedCallError
from orderproof.library_messages import suppress_warnings

ATTENTION_NAME = "orderproof_gathered"
SUPPORTED_ARGUMENTS = {
    "dropout",
    "scaling",
    "position_ids",
    "is_causal",
    "use_cache",
    "output_attentions",
    "output_hidden_states",
}


@contextmanager
def sequence_parallel_attention(model: Any, positions: Tensor, *, causal: bool) -> Iterator[None]:
    """Let a model with full attention attend to the tokens of all ranks; it is called with those at ``positions``.

    Raises `UnsupportedCallError` if the attention function gets arguments that it does not support, or is not called.
    """
    from transformers import AttentionInterface

    from orderproof.blocks.sequence_parallel.all_gather import all_gather

    calls = 0

    def attention(
        module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None, **options: Any
    ) -> tuple[Tensor, None]:
        nonlocal calls
        calls += 1
        unsupported = sorted(
            name for name, x in options.items() if x is not None and x is not False and name not in SUPPORTED_ARGUMENTS
        )
        lengths_differ = key.shape[2] != query.shape[2] or query.shape[2] != len(positions)
        if attention_mask is not None or unsupported or lengths_differ:
            raise UnsupportedCallError(
                f"its attention takes more than keys and values: {', '.join(unsupported) or 'a mask'}"
            )
        key, value, order = all_gather(key, 2), all_gather(value, 2), all_gather(positions, 0)
        groups = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
        mask = order <= positions.unsqueeze(-1) if causal else None
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=options.get("scaling"))
        return mixed.transpose(1, 2).contiguous(), None

    before = model.config._attn_implementation
    AttentionInterface.register(ATTENTION_NAME, attention)
    try:
        with suppress_warnings():
            model.set_attn_implementation(ATTENTION_NAME)
        yield
        if not calls:
            raise UnsupportedCallError("its attention is not one that can be replaced by name")
    finally:
        with suppress_warnings():
            model.set_attn_implementation(before)
        AttentionInterface._global_mapping.pop(ATTENTION_NAME, None)
