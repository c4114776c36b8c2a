"""Context spans: the chunks, windows, blocks and buckets in a configuration, in tokens.

On w tokens or fewer, a model with a window of w tokens behaves as one without. A proof should therefore be longer than
every span. Tiny models have short spans; those of a model of full size may be thousands of tokens long, and then the
load summary names the spans that proofs do not cross.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from orderproof.models.subject import MIN_DEFAULT_LENGTH, prime_length
from orderproof.models.tiny.proportional_sizes import config_value

SHORT_SPAN = 4  # [tokens] in a tiny model
SHORT_WINDOW_SIDE = 2  # [patches] side of a window in a tiny image model
MAX_CROSSED_SPAN = 64  # [tokens] longer spans do not raise the default length: recurrences are traced token by token

_SPAN_KEY = re.compile(
    r"window|chunk_?(size|len)|bucket|max_distance|local_radius|local_attention$|_block_size$|^block_size$"
    r"|segment_means_seq_len|transformer_stride|d_conv$|conv_?kernel(_size|_dim)?$|conv1d_width|conv_L_cache"
    r"|index_topk|compressed_.*attention|conv_chunk|rel_extent"
)
_NOT_SPAN_KEY = re.compile(
    r"pattern|layers|_ind(ex|ic)|num_windows|hash_buckets|background|pretrained|use_|dropout|acoustic"
)
# spans that must differ: the maximal distance over the number of buckets is the base of a logarithm
_SHORTER_SPANS = {"num_buckets": 6, "max_distance": 5, "local_radius": 3}


def context_spans(config: Any) -> dict[str, int]:
    """The context spans of a configuration [tokens], by key."""
    spans = {}
    for key, value in sorted(config.to_dict().items()):
        if _SPAN_KEY.search(key) and not _NOT_SPAN_KEY.search(key):
            sizes = value if isinstance(value, (list, tuple)) else [value]
            lengths = [size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and size > 0]
            if lengths:
                spans[key] = max(lengths)
    return spans


def short_span_values(config: Any) -> dict[str, Any]:
    """Configuration values that shorten every longer span."""
    values: dict[str, Any] = {}
    for key, size in context_spans(config).items():
        default = SHORT_WINDOW_SIDE if hasattr(config, "image_size") else SHORT_SPAN
        short = next((span for suffix, span in _SHORTER_SPANS.items() if key.endswith(suffix)), default)
        value = config_value(config, key)
        if size > short and isinstance(value, (list, tuple)):
            values[key] = [min(part, short) if isinstance(part, int) else part for part in value]
        elif size > short and value is not None and "kernel" not in key:
            values[key] = short
    return values


def default_proof_length(config: Any, avoid: Collection[int]) -> tuple[int, str]:
    """The default length of proofs, a prime above every span up to `MAX_CROSSED_SPAN`, and the spans not crossed."""
    spans = context_spans(config)
    longest = max((size for size in spans.values() if size <= MAX_CROSSED_SPAN), default=0)
    length = prime_length(max(MIN_DEFAULT_LENGTH, longest + 1), avoid)
    beyond = [f"{key} {size}" for key, size in spans.items() if size >= length]
    return length, f"not crossed at {length} tokens: {', '.join(beyond)}" if beyond else ""
