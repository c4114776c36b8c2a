"""Stretches of tokens: the chunks, windows, blocks and buckets that a configuration names.

A model with a window of w tokens is, on w tokens or fewer, a model without a window. So a proof of it should be
longer than every stretch. Tiny models have short stretches; those of a model of full size may be thousands of
tokens long, and then the subject says which ones its proofs do not cross.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from orderproof.subjects.scaling import read
from orderproof.subjects.subject import SHORTEST, prime_length

SHORT = 4  # [tokens] a stretch of a tiny model
SHORT_SIDE = 2  # [patches] the side of a window of a tiny image model
LONGEST = 64  # [tokens] a longer stretch does not raise the default length: recurrences are recorded token by token

_STRETCH = re.compile(
    r"window|chunk_?(size|len)|bucket|max_distance|local_radius|local_attention$|_block_size$|^block_size$"
    r"|segment_means_seq_len|transformer_stride|d_conv$|conv_?kernel(_size|_dim)?$|conv1d_width|conv_L_cache"
    r"|index_topk|compressed_.*attention|conv_chunk|rel_extent"
)
_OTHER = re.compile(r"pattern|layers|_ind(ex|ic)|num_windows|hash_buckets|background|pretrained|use_|dropout|acoustic")
# where a number of buckets and a longest distance must differ, as one is the base of a logarithm
_SHORTER = {"num_buckets": 6, "max_distance": 5, "local_radius": 3}


def stretches(config: Any) -> dict[str, int]:
    """Every stretch [tokens] that a configuration names, by its key."""
    found = {}
    for key, value in sorted(config.to_dict().items()):
        if _STRETCH.search(key) and not _OTHER.search(key):
            sizes = value if isinstance(value, (list, tuple)) else [value]
            whole = [size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and size > 0]
            if whole:
                found[key] = max(whole)
    return found


def short(config: Any) -> dict[str, Any]:
    """The values that make every stretch short; those that are short already are left alone."""
    found: dict[str, Any] = {}
    for key, size in stretches(config).items():
        usual = SHORT_SIDE if hasattr(config, "image_size") else SHORT
        least = next((shorter for end, shorter in _SHORTER.items() if key.endswith(end)), usual)
        value = read(config, key)
        if size > least and isinstance(value, (list, tuple)):
            found[key] = [min(part, least) if isinstance(part, int) else part for part in value]
        elif size > least and value is not None and "kernel" not in key:
            found[key] = least
    return found


def crossing_length(config: Any, avoid: Collection[int]) -> tuple[int, str]:
    """The default length of proofs: a prime longer than every stretch up to `LONGEST`; and which are not crossed."""
    named = stretches(config)
    longest = max((size for size in named.values() if size <= LONGEST), default=0)
    length = prime_length(max(SHORTEST, longest + 1), avoid)
    beyond = [f"{key} {size}" for key, size in named.items() if size >= length]
    return length, f"not crossed at {length} tokens: {', '.join(beyond)}" if beyond else ""
