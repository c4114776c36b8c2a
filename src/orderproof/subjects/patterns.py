"""Which token sees which in a transformers model, by what its configuration says of each layer.

    full       every token, or in a causal model every token up to its own
    sliding    window w: keys with  query - w < key <= query ; in a model that sees both ways  |query - key| <= w
    chunked    chunk c: keys of the same c tokens, up to the query

Layers compose: output i depends on input j where some path leads from i down to j. A layer of any other kind, a
recurrence, a convolution, a choice of the best keys, may show less than everything, and nobody says what: then a
causal model may see all that came before and need see nothing but itself, and of the others nothing is known.
Source: transformers 5.23, `masking_utils`: sliding_window_overlay, sliding_window_bidirectional_overlay,
chunked_overlay.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.driver import Sight
from orderproof.subjects.stretches import stretches

WINDOWS = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
HARMLESS = re.compile(r"bucket|max_distance|rel_extent")  # stretches of a bias, which hide nothing
OTHERWISE = re.compile(  # classes that carry something from token to token in another way, or choose what they see
    r"Mamba|Rwkv|Recurrent|SSM|LSTM|GRU|Delta|Lightning|Retention|Indexer|LSH|Nystrom|Mra|Yoso|SparseAtt|Compress"
    r"|Linear_?Att"
)


MASKS_OF_ITS_OWN = re.compile(r"\bblock_sequence_ids=|\bdirectional_mask")


def sight_of(model: nn.Module, tokens: int, *, causal: bool) -> Sight | None:
    """What the tokens may and must see; None where the configuration does not tell."""
    config: Any = model.config
    text = config.get_text_config()
    everything = torch.ones(tokens, tokens, dtype=torch.bool)
    itself = torch.eye(tokens, dtype=torch.bool)
    whole = everything.tril() if causal else everything
    layers = _layers(text, causal=causal)
    if layers is None or not _plain(model, text):
        return Sight(whole, itself) if causal else None
    seen = itself
    for kind in layers:
        seen = (_pattern(kind, text, tokens, causal=causal).float() @ seen.float()) > 0
    return Sight(seen, seen)


def attends_to_all(model: nn.Module, *, causal: bool) -> bool:
    """Whether every layer is full attention, and nothing else carries anything from token to token."""
    text: Any = model.config.get_text_config()  # type: ignore[operator, union-attr]
    try:
        return set(_layers(text, causal=causal) or ()) == {"full_attention"} and _plain(model, text)
    except Exception:  # noqa: BLE001 - a configuration may refuse to be read as a whole
        return False


def _layers(config: Any, *, causal: bool) -> list[str] | None:
    """The pattern of each layer; None where one of them is of another kind."""
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        window = getattr(config, "sliding_window", None)
        slides = isinstance(window, int) and getattr(config, "use_sliding_window", True)
        count = config.num_hidden_layers if isinstance(getattr(config, "num_hidden_layers", None), int) else 1
        return ["sliding_attention" if slides else "full_attention"] * count
    known = all(
        kind == "full_attention" or isinstance(getattr(config, WINDOWS.get(kind, ""), None), int) for kind in kinds
    )
    return list(kinds) if known else None


def _pattern(kind: str, config: Any, tokens: int, *, causal: bool) -> Tensor:
    query, key = torch.arange(tokens).unsqueeze(-1), torch.arange(tokens)
    seen = (key <= query) if causal else torch.ones(tokens, tokens, dtype=torch.bool)
    if kind == "sliding_attention":
        window = int(config.sliding_window)
        return seen & ((key > query - window) if causal else (query - key).abs() <= window)
    if kind == "chunked_attention":
        chunk = int(config.attention_chunk_size)
        return seen & (key // chunk == query // chunk)
    return seen


def square_mask(real: Tensor) -> Tensor:
    """Which token sees which, by a mask of what is real: those before it and itself [row, 1, token, token].

    A pad sees itself: a row of the softmax with nothing in it is a matter of taste.
    """
    count = real.shape[1]
    seen = torch.ones(count, count, dtype=torch.bool).tril() & real.unsqueeze(1)
    seen = (seen | torch.eye(count, dtype=torch.bool)).unsqueeze(1)
    return torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)


@cache
def _source(kind: Any) -> str:
    return inspect.getsource(kind) if kind.__module__.startswith("transformers.models") else ""


def _plain(model: nn.Module, config: Any) -> bool:
    """Whether nothing but attention carries anything from token to token, and no other stretch is named."""
    named = {key for key in stretches(config) if not HARMLESS.search(key)}
    if named - {*WINDOWS.values(), "local_attention"} or getattr(config, "trigram_input", False):
        return False
    for part in model.modules():
        kind: Any = type(part)
        wide = isinstance(part, nn.modules.conv._ConvNd) and max(part.kernel_size) > 1
        if wide or OTHERWISE.search(kind.__name__):
            return False
        if MASKS_OF_ITS_OWN.search(_source(kind)):
            return False
    return True
