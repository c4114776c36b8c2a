"""Names of arguments that take caches, ask for them or count their tokens; they break ties between calls."""

from __future__ import annotations

import re

CACHE_NAMES = (
    "past_key_values", "past_key_value", "past", "layer_past", "past_kv", "kv_cache", "kv_caches", "cache", "caches",
    "past_kvs", "cache_params", "mems",
)  # fmt: skip
OFFSET_NAMES = ("start_pos", "offset", "cache_len", "past_length", "past_len", "start", "seq_offset", "pos", "step")
_STATE = re.compile(r"(^|_)(cache|caches|past|kv|state|states|hx|cx|h0|c0|h|c|hidden|memory|mems|prev)(_|\d|$)")
_FLAG = re.compile(r"^(use|return|output|keep|with|store)_.*(cache|caches|past|kv|state|present)s?$")


def is_cache_name(name: str) -> bool:
    """True for a name that libraries give to a cache."""
    return name in CACHE_NAMES or name.startswith("past_") or name.endswith(("_cache", "_caches", "_past"))


def is_state_name(name: str) -> bool:
    """True for a name that a cache or a recurrent state may have."""
    return is_cache_name(name) or _STATE.search(name) is not None


def is_flag_name(name: str) -> bool:
    """True for a flag that asks for a cache: `use_cache`, `return_state`."""
    return _FLAG.match(name) is not None
