"""The user's attention function: its arguments are known by their names, and its layout by calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.layouts import LAYOUTS, Layout
from orderproof.conventions.question import same
from orderproof.errors import SubjectError, UnsupportedCallError, first_line
from orderproof.models.own_errors import raise_own_error

TENSORS = {
    "query": ("query", "queries", "q", "xq"), "key": ("key", "keys", "k", "xk"), "value": ("value", "values", "v", "xv")
}  # fmt: skip
NAMES = {
    "mask": ("mask", "attn_mask", "attention_mask", "attn_bias", "bias", "key_padding_mask", "padding_mask"),
    "causal": ("causal", "is_causal", "use_causal_mask"),
    "scale": ("scale", "softmax_scale", "sm_scale", "scaling"),
    "window": ("window", "window_size", "sliding_window", "local_window_size"),
    "soft_cap": ("softcap", "soft_cap", "logit_cap", "logits_soft_cap", "softclamp_value"),
    "sinks": ("sinks", "sink", "attention_sinks", "sink_bias"),
    "lengths": ("lengths", "seq_lens", "seqlens", "key_lengths", "kv_lengths", "key_value_seq_lengths"),
    "query_lengths": ("query_lengths", "q_lengths", "query_seq_lengths"),
}


def own_attention(function: Callable[..., Any], name: str, version: str) -> AttentionFunction | None:
    """The function in the common form; None if it has no arguments of queries, keys and values.

    Raises `SubjectError` if no layout of queries, keys and values gives attention.
    """
    accepted = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    tensors = [p.name for names in TENSORS.values() for p in accepted if p.name.lower() in names]
    if len(tensors) != len(TENSORS):
        return None
    options = {each: next((p.name for p in accepted if p.name in names), None) for each, names in NAMES.items()}
    taken = {each: argument for each, argument in options.items() if argument is not None}
    failure = ""
    for name_of_layout, layout in LAYOUTS.items():

        def attend(
            query: Tensor, key: Tensor, value: Tensor, *, grouped: bool = False, layout: Layout = layout, **chosen: Any
        ) -> Tensor:
            del grouped  # fewer heads of keys need no word
            if unknown := set(chosen) - set(taken):
                raise UnsupportedCallError(f"it takes no {', '.join(sorted(unknown))}")
            if query.shape[1] > 1 and not layout.has_heads:
                raise UnsupportedCallError("it has no heads")
            named = dict(zip(tensors, map(layout.given, (query, key, value)), strict=True))
            found = function(**named, **{taken[each]: value for each, value in chosen.items()})
            return layout.back(found[0] if isinstance(found, tuple | list) else found)

        try:
            if _attends(attend, 1 + layout.has_heads):
                takes = frozenset({*taken, "grouped", "scores", "gradients"})
                return AttentionFunction(name, version, name_of_layout, takes, attend)
            failure = failure or "equal scores do not give the mean of the values"
        except Exception as error:  # noqa: BLE001 - the user's function: anything may come
            raise_own_error(error)
            failure = failure or first_line(error)
    raise SubjectError(
        f"{name}: expected an attention function of {', '.join(map(str, tensors))} in one of the layouts "
        f"{'; '.join(LAYOUTS)}; {failure}"
    )


def _attends(attend: Callable[..., Tensor], heads: int) -> bool:
    """True if queries of zeros give the mean over the tokens of each head."""
    queries = torch.zeros(1, heads, 3, WIDTH)
    value = torch.arange(heads * 3 * WIDTH, dtype=torch.float32).view(1, heads, 3, WIDTH)
    return same(attend(queries, queries.clone(), value), value.mean(2, keepdim=True).expand_as(value), 1e-2)
