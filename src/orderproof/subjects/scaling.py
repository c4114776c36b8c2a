"""Tiny versions of an architecture in proportion: every width divided by the same number, so that what fits, fits.

Where fixed small sizes (`shrinking`) break a relation between keys that only the modelling file knows (sections of
rotary features, stages that double), dividing all of them keeps it. Counts are cut, not divided: layers, experts,
rows of tables. Parts with a configuration of their own are scaled likewise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

LAYERS, EXPERTS, CHOSEN, ROWS, WORDS, QUERIES = 2, 4, 2, 128, 99, 8
GRIDS = (3, 8, 16, 0)  # [patches] sides of an image: few, enough for four stages that halve it, as it is
MOST_LAYERS = 4  # so many where there are as many kinds of them
NARROW = 64  # a width to come down to
HEAD = 8  # [features] the least width of a head: a rotation about three axes needs a pair for each, and turns no less

_LAYERS = re.compile(r"^(num_hidden_layers|n_layers?|num_layers|depth|layers|num_(encoder|decoder)_layers|.*_layers)$")
_NO_COUNT = re.compile(
    r"kv_shared|dense_layers|window|global_layers|feat_extract|aux|nextn|prediction|adapter|conv_lay"
)
_HEADS = re.compile(r"^(?P<part>.*?)(num_attention_heads|num_heads)$")
_WIDTH = re.compile(
    r"hidden|dim|width|channels|embed|embd|intermediate|inner|_size$|rank|filters|d_|ffn?_|head_size|feats"
)
_NO_WIDTH = re.compile(
    r"patch|kernel|image|window|chunk|block|vocab|max_|^num_(?!filters|pos_feats)|^n_(?!embd|inner)|token|batch|stride"
    r"|groups|layer(?!_input)|num_heads|n_heads|state|d_conv|extent|_ind|factor|crop|grid|position|bucket|in_channels|num_channels"
)
_EXPERTS = re.compile(r"^(num_experts|num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts)$")
_CHOSEN = re.compile(r"^(num_experts_per_tok|moe_topk|num_experts_per_token|moe_k|top_k_experts)$")
_ROWS = re.compile(
    r"^(max_(?!2d).*position.*|n_positions|n_ctx|max_source_positions|max_target_positions|max_seq_len)$"
)
_STAGES = re.compile(
    r"^(depths|num_blocks|blocks_per_stage|stage_num_blocks|num_block_repeats|block_sizes|layer_depths)$"
)
_PLACES = re.compile(r"indices|indexes|idxs|_index$|look_.*layers|_layers$|layer_ids")
_IMAGE = ("image_size", "input_size", "crop_size", "pretrain_image_size", "img_size")
_PATCH = ("patch_stride", "patch_size", "tubelet_size", "patch_sizes")
_QUERIES = re.compile(r"^num_(object_)?queries$")
_TOKEN = re.compile(r"token_id|token_index|_token_idx|^pad_id$")


def divisors(config: Any) -> Iterator[int]:
    """By what to divide, the most first: the power of two that brings the width to `NARROW`, then less."""
    by = 1
    while by * 2 * NARROW <= _widest(config):
        by *= 2
    while by >= 1:
        yield by
        by //= 2


def grids(config: Any) -> tuple[int, ...]:
    """Sides of images [patches] to try; none where a configuration knows no images."""
    return GRIDS if any(read(config, name) for name in _IMAGE) or has_image_part(config) else ()


def has_image_part(config: Any) -> bool:
    """Whether a part with a configuration of its own knows the size of its images."""
    parts = (part for entry in fields(config) if hasattr(part := read(config, entry.name), "model_type"))
    return any(grids(part) for part in parts)


def scaled(config: Any, by: int, grid: int = 0) -> dict[str, Any]:
    """Configuration values of a version narrower by this factor, with few layers, experts and table rows.

    With ``grid``, images have so many patches a side.
    """
    names = [entry.name for entry in fields(config) if entry.init]
    own = {name: read(config, name) for name in names if name in config.to_dict()}
    count = next(
        (own[n] for n in ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "depth") if _int(own.get(n))), None
    )
    places = kept_layers(own, count)
    values: dict[str, Any] = {}
    for name, value in own.items():
        if hasattr(value, "model_type") and hasattr(value, "to_dict"):
            values[name] = type(value)(**_part(value, by, grid))
        elif value is not None:
            small = _scaled(name, value, by, count, places)
            if small is not None and small != value:
                values[name] = small
    values.update(_images(own, grid))
    values.update(_fewer_heads({**own, **values}))
    words = values.get("vocab_size", own.get("vocab_size"))
    for name, value in own.items():
        if isinstance(words, int) and _TOKEN.search(name) and _int(value) and value >= words:
            values[name] = 0 if name == "pad_token_id" else words - 1
    return values


def _fewer_heads(sizes: Mapping[str, Any]) -> dict[str, int]:
    """Numbers of heads that leave each head `HEAD` features, where the narrower width was left to be shared by all."""
    found: dict[str, int] = {}
    if _int(sizes.get("head_dim")):
        return found
    for name, heads in sizes.items():
        match = _HEADS.match(name)
        width: Any = sizes.get(f"{match['part']}hidden_size") if match else None
        shared = sizes.get(name.replace("attention", "key_value"), heads)
        if not _int(heads) or not _int(width) or shared != heads or width // HEAD >= heads or width % HEAD:
            continue
        found[name] = width // HEAD
        if name.replace("attention", "key_value") in sizes:
            found[name.replace("attention", "key_value")] = width // HEAD
    return found


def _part(config: Any, by: int, grid: int) -> dict[str, Any]:
    """The same of a part, with as many stages as its whole reads."""
    values = scaled(config, by, grid)
    asked: list[str] = read(config, "out_features") or []
    known: list[str] = read(config, "stage_names") or []
    if not set(asked) <= set(known[1:]):
        return values
    if "num_hidden_layers" in values:
        count = max(len(asked), values["num_hidden_layers"])
        stages = range(count - len(asked) + 1, count + 1)
        return {**values, "num_hidden_layers": count, "out_features": [f"stage{place}" for place in stages]}
    return {**values, "out_features": list(asked)}


def read(config: Any, name: str) -> Any:
    """A value of a configuration; None where it has none, or one for each layer."""
    try:
        return getattr(config, name, None)
    except Exception:  # noqa: BLE001 - transformers refuses to read a key that differs from layer to layer
        return None


def kept_layers(own: Mapping[str, Any], count: int | None) -> list[int]:
    """Which layers stay: the first of each kind, and two at least."""
    if not count:
        return []
    kinds = [own[name] for name in ("layer_types", "layers_block_type") if isinstance(own.get(name), (list, tuple))]
    found: list[int] = []
    if kinds and len(kinds[0]) == count:
        found = sorted({kinds[0].index(kind) for kind in kinds[0]})[:MOST_LAYERS]
    for place in range(count):
        if len(found) >= LAYERS:
            break
        if place not in found:
            found.append(place)
    return sorted(found)


def _images(own: Mapping[str, Any], grid: int) -> dict[str, Any]:
    """Image and film sizes with so many patches a side."""
    patch = next((_last(own[name]) for name in _PATCH if own.get(name)), 4)
    values: dict[str, Any] = {}
    for name in _IMAGE:
        if grid and own.get(name):
            side = grid * patch
            values[name] = type(own[name])([side, side]) if isinstance(own[name], (list, tuple)) else side
    for name in ("num_frames", "frames_per_clip"):
        if _int(own.get(name)) and own.get("tubelet_size"):
            values[name] = 2 * (own["tubelet_size"] if _int(own["tubelet_size"]) else own["tubelet_size"][0])
    return values


def _last(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return max(_numbers(value) or [4])
    return int(value)


def _scaled(name: str, value: Any, by: int, count: int | None, places: list[int]) -> Any:
    if _int(value):
        return _number(name, value, by, len(places) or LAYERS)
    if isinstance(value, (list, tuple)):
        return type(value)(_list(name, list(value), by, count, places))
    if isinstance(value, dict):
        inner = {key: _scaled(str(key), part, by, count, places) for key, part in value.items() if part is not None}
        return {key: part if inner.get(key) is None else inner[key] for key, part in value.items()}
    return None


def _number(name: str, value: int, by: int, layers: int) -> int:
    for pattern, most in ((_EXPERTS, EXPERTS), (_CHOSEN, CHOSEN), (_ROWS, ROWS), (_QUERIES, QUERIES)):
        if pattern.match(name):
            return min(value, most)
    if "vocab" in name and "offset" not in name:
        return min(value, WORDS)
    if name in ("n_group", "topk_group", "n_groups"):
        return min(value, 1)
    if name == "first_k_dense_replace":
        return min(value, 1)
    if _LAYERS.match(name) and not _NO_COUNT.search(name):
        return min(value, layers)
    if _WIDTH.search(name) and not _NO_WIDTH.search(name) and value % by == 0 and value >= 4 * by:
        return value // by
    return value


def _list(name: str, value: list[Any], by: int, count: int | None, places: list[int]) -> list[Any]:
    numbers = all(_int(part) for part in value)
    if numbers and _STAGES.match(name):
        return [min(part, 1) for part in value]
    if count and len(value) == count and places:
        return [value[place] for place in places]
    if numbers and name == "mrope_section":
        return [part // by for part in value] if all(part % by == 0 for part in value) else value
    if numbers and count and _PLACES.search(name):
        return list(dict.fromkeys(min(part, len(places) - 1) for part in value if part >= 0)) or value
    if numbers and _WIDTH.search(name) and not _NO_WIDTH.search(name):
        return [part // by if part % by == 0 and part >= 4 * by else part for part in value]
    return value


def _int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _widest(config: Any) -> int:
    own = [
        read(config, name) for name in ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "encoder_hidden_dim")
    ]
    lists = [
        max(value) for name in ("hidden_sizes", "embed_dims", "embed_dim") if (value := _numbers(read(config, name)))
    ]
    parts = [_widest(part) for entry in fields(config) if hasattr(part := read(config, entry.name), "model_type")]
    return max([value for value in own if _int(value)] + lists + parts, default=NARROW)


def _numbers(value: Any) -> list[int]:
    return [part for part in value if _int(part)] if isinstance(value, (list, tuple)) else []
