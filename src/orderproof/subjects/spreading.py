"""A transformers model whose sequence is split over ranks: attention that gathers the keys of all of them.

transformers lets a model run on an attention function that is registered by a name. The one that is registered here
gathers keys, values and global positions from all ranks, and lets a query see the keys of no later position. That is
all there is to attention in models of full attention alone; windows, sinks, biases and whatever else an attention
function is given besides are refused, as are models that carry something from token to token in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from orderproof.blocks.spread.gathering import gathered
from orderproof.errors import Unsupported
from orderproof.subjects.patterns import attends_to_all
from orderproof.subjects.quieting import silence

NAME = "orderproof_gathered"
PLAIN = {"dropout", "scaling", "position_ids", "is_causal", "use_cache", "output_attentions", "output_hidden_states"}


@contextmanager
def spread(model: Any, places: Tensor, *, causal: bool) -> Iterator[None]:
    """Within it the model gets the tokens at these places, and attends to those of all ranks."""
    from transformers import AttentionInterface

    if not attends_to_all(model, causal=causal):
        raise Unsupported("only full attention can be spread over ranks")
    calls = 0

    def attention(
        module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None, **given: Any
    ) -> tuple[Tensor, None]:
        nonlocal calls
        calls += 1
        besides = sorted(name for name, x in given.items() if x is not None and x is not False and name not in PLAIN)
        if attention_mask is not None or besides or key.shape[2] != query.shape[2] or query.shape[2] != len(places):
            raise Unsupported(f"its attention takes more than keys and values: {', '.join(besides) or 'a mask'}")
        key, value, order = gathered(key, 2), gathered(value, 2), gathered(places, 0)
        groups = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
        mask = order <= places.unsqueeze(-1) if causal else None
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=given.get("scaling"))
        return mixed.transpose(1, 2).contiguous(), None

    before = model.config._attn_implementation
    AttentionInterface.register(NAME, attention)
    try:
        with silence():
            model.set_attn_implementation(NAME)
        yield
        if not calls:
            raise Unsupported("its attention is not one that can be replaced by name")
    finally:
        with silence():
            model.set_attn_implementation(before)
        AttentionInterface._global_mapping.pop(NAME, None)
