"""Tiny models of an architecture in proportion: every width divided by the same number.

Fixed small sizes (`fixed_sizes`) may break a relation between keys that only the modelling file knows (sections of
rotary features, stages that double); a common divisor keeps it. Counts (layers, experts, rows of tables) are limited,
not divided. Components with their own configuration are scaled likewise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

LAYER_COUNT, EXPERT_COUNT, EXPERTS_PER_TOKEN, VOCAB_SIZE, QUERY_COUNT = 2, 4, 2, 99, 8
POSITION_COUNT = 70  # past the usual chunks of 64 tokens; no width, so that features are not taken for tokens
IMAGE_GRID_SIDES = (3, 8, 16, 0)  # [patches] small; enough for four stages that halve it; 0: unchanged
MAX_LAYERS = 4  # limit on one layer per layer type
TARGET_WIDTH = 64
MIN_HEAD_DIM = 8  # [features] a rotation about three axes needs a pair for each

_LAYERS = re.compile(r"^(num_hidden_layers|n_layers?|num_layers|depth|layers|num_(encoder|decoder)_layers|.*_layers)$")
_NOT_LAYERS = re.compile(
    r"kv_shared|dense_layers|window|global_layers|feat_extract|aux|nextn|prediction|adapter|conv_lay"
)
_HEADS = re.compile(r"^(?P<part>.*?)(num_attention_heads|num_heads)$")
_WIDTH = re.compile(
    r"hidden|dim|width|channels|embed|embd|intermediate|inner|_size$|rank|filters|d_|ffn?_|head_size|feats"
)
_NOT_WIDTH = re.compile(
    r"patch|kernel|image|window|chunk|block|vocab|max_|^num_(?!filters|pos_feats)|^n_(?!embd|inner)|token|batch|stride"
    r"|groups|layer(?!_input)|num_heads|n_heads|state|d_conv|extent|_ind|factor|crop|grid|position|bucket|in_channels|num_channels"
)
_EXPERTS = re.compile(r"^(num_experts|num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts)$")
_EXPERTS_PER_TOKEN = re.compile(r"^(num_experts_per_tok|moe_topk|num_experts_per_token|moe_k|top_k_experts)$")
_POSITIONS = re.compile(
    r"^(max_(?!2d).*position.*|n_positions|n_ctx|max_source_positions|max_target_positions|max_seq_len)$"
)
_STAGES = re.compile(
    r"^(depths|num_blocks|blocks_per_stage|stage_num_blocks|num_block_repeats|block_sizes|layer_depths)$"
)
_LAYER_INDICES = re.compile(r"indices|indexes|idxs|_index$|look_.*layers|_layers$|layer_ids")
_IMAGE_SIZE_KEYS = ("image_size", "input_size", "crop_size", "pretrain_image_size", "img_size")
_PATCH_SIZE_KEYS = ("patch_stride", "patch_size", "tubelet_size", "patch_sizes")
_QUERIES = re.compile(r"^num_(object_)?queries$")
_TOKEN_ID = re.compile(r"token_id|token_index|_token_idx|^pad_id$")


def width_divisors(config: Any) -> Iterator[int]:
    """Divisors of the widths: the power of two that reaches `TARGET_WIDTH`, then smaller ones."""
    divisor = 1
    while divisor * 2 * TARGET_WIDTH <= _max_width(config):
        divisor *= 2
    while divisor >= 1:
        yield divisor
        divisor //= 2


def image_grid_sides(config: Any) -> tuple[int, ...]:
    """Sides of images [patches] to try; none for a configuration without images."""
    return (
        IMAGE_GRID_SIDES
        if any(config_value(config, name) for name in _IMAGE_SIZE_KEYS) or has_image_part(config)
        else ()
    )


def has_image_part(config: Any) -> bool:
    """True if a component with its own configuration has an image size."""
    parts = (part for entry in fields(config) if hasattr(part := config_value(config, entry.name), "model_type"))
    return any(image_grid_sides(part) for part in parts)


def proportional_values(config: Any, divisor: int, grid: int = 0) -> dict[str, Any]:
    """Configuration values with all widths divided, and few layers, experts and table rows.

    ``grid`` is the number of patches per image side; 0 leaves image sizes unchanged.
    """
    names = [entry.name for entry in fields(config) if entry.init]
    own = {name: config_value(config, name) for name in names if name in config.to_dict()}
    count = next(
        (own[n] for n in ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "depth") if _is_int(own.get(n))),
        None,
    )
    kept = kept_layer_indices(own, count)
    values: dict[str, Any] = {}
    for name, value in own.items():
        if hasattr(value, "model_type") and hasattr(value, "to_dict"):
            values[name] = type(value)(**_component_values(value, divisor, grid))
        elif value is not None:
            small = _scale_value(name, value, divisor, count, kept)
            if small is not None and small != value:
                values[name] = small
    values.update(_image_sizes(own, grid))
    values.update(_head_counts({**own, **values}))
    vocab_size = values.get("vocab_size", own.get("vocab_size"))
    for name, value in own.items():
        if isinstance(vocab_size, int) and _TOKEN_ID.search(name) and _is_int(value) and value >= vocab_size:
            values[name] = 0 if name == "pad_token_id" else vocab_size - 1
    return values


def _head_counts(sizes: Mapping[str, Any]) -> dict[str, int]:
    """Head counts that leave each head `MIN_HEAD_DIM` features, if the head width follows from the model width."""
    counts: dict[str, int] = {}
    if _is_int(sizes.get("head_dim")):
        return counts
    for name, heads in sizes.items():
        match = _HEADS.match(name)
        width: Any = sizes.get(f"{match['part']}hidden_size") if match else None
        shared = sizes.get(name.replace("attention", "key_value"), heads)
        if (
            not _is_int(heads)
            or not _is_int(width)
            or shared != heads
            or width // MIN_HEAD_DIM >= heads
            or width % MIN_HEAD_DIM
        ):
            continue
        counts[name] = width // MIN_HEAD_DIM
        if name.replace("attention", "key_value") in sizes:
            counts[name.replace("attention", "key_value")] = width // MIN_HEAD_DIM
    return counts


def _component_values(config: Any, divisor: int, grid: int) -> dict[str, Any]:
    """The same for a component, with as many stages as the composite model reads."""
    values = proportional_values(config, divisor, grid)
    outputs: list[str] = config_value(config, "out_features") or []
    stages: list[str] = config_value(config, "stage_names") or []
    if not set(outputs) <= set(stages[1:]):
        return values
    if "num_hidden_layers" in values:
        count = max(len(outputs), values["num_hidden_layers"])
        last = range(count - len(outputs) + 1, count + 1)
        return {**values, "num_hidden_layers": count, "out_features": [f"stage{index}" for index in last]}
    return {**values, "out_features": list(outputs)}


def config_value(config: Any, name: str) -> Any:
    """A value of a configuration; None if it has none, or one per layer."""
    try:
        return getattr(config, name, None)
    except Exception:  # noqa: BLE001 - transformers refuses to read a key that differs from layer to layer
        return None


def kept_layer_indices(own: Mapping[str, Any], count: int | None) -> list[int]:
    """The indices of the layers to keep: the first of each layer type, at least `LAYER_COUNT`."""
    if not count:
        return []
    kinds = [own[name] for name in ("layer_types", "layers_block_type") if isinstance(own.get(name), (list, tuple))]
    kept: list[int] = []
    if kinds and len(kinds[0]) == count:
        kept = sorted({kinds[0].index(kind) for kind in kinds[0]})[:MAX_LAYERS]
    for index in range(count):
        if len(kept) >= LAYER_COUNT:
            break
        if index not in kept:
            kept.append(index)
    return sorted(kept)


def _image_sizes(own: Mapping[str, Any], grid: int) -> dict[str, Any]:
    """Sizes of images and videos with ``grid`` patches per side."""
    patch = next((_largest(own[name]) for name in _PATCH_SIZE_KEYS if own.get(name)), 4)
    values: dict[str, Any] = {}
    for name in _IMAGE_SIZE_KEYS:
        if grid and own.get(name):
            side = grid * patch
            values[name] = type(own[name])([side, side]) if isinstance(own[name], (list, tuple)) else side
    for name in ("num_frames", "frames_per_clip"):
        if _is_int(own.get(name)) and own.get("tubelet_size"):
            values[name] = 2 * (own["tubelet_size"] if _is_int(own["tubelet_size"]) else own["tubelet_size"][0])
    return values


def _largest(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return max(_integers(value) or [4])
    return int(value)


def _scale_value(name: str, value: Any, divisor: int, count: int | None, kept: list[int]) -> Any:
    if _is_int(value):
        return _scale_integer(name, value, divisor, len(kept) or LAYER_COUNT)
    if isinstance(value, (list, tuple)):
        return type(value)(_scale_list(name, list(value), divisor, count, kept))
    if isinstance(value, dict):
        inner = {
            key: _scale_value(str(key), part, divisor, count, kept) for key, part in value.items() if part is not None
        }
        return {key: part if inner.get(key) is None else inner[key] for key, part in value.items()}
    return None


def _scale_integer(name: str, value: int, divisor: int, layers: int) -> int:
    for pattern, limit in (
        (_EXPERTS, EXPERT_COUNT),
        (_EXPERTS_PER_TOKEN, EXPERTS_PER_TOKEN),
        (_POSITIONS, POSITION_COUNT),
        (_QUERIES, QUERY_COUNT),
    ):
        if pattern.match(name):
            return min(value, limit)
    if "vocab" in name and "offset" not in name:
        return min(value, VOCAB_SIZE)
    if name in ("n_group", "topk_group", "n_groups"):
        return min(value, 1)
    if name == "first_k_dense_replace":
        return min(value, 1)
    if _LAYERS.match(name) and not _NOT_LAYERS.search(name):
        return min(value, layers)
    if _WIDTH.search(name) and not _NOT_WIDTH.search(name) and value % divisor == 0 and value >= 4 * divisor:
        return value // divisor
    return value


def _scale_list(name: str, value: list[Any], divisor: int, count: int | None, kept: list[int]) -> list[Any]:
    all_integers = all(_is_int(part) for part in value)
    if all_integers and _STAGES.match(name):
        return [min(part, 1) for part in value]
    if count and len(value) == count and kept:
        return [value[index] for index in kept]
    if all_integers and name == "mrope_section":
        return [part // divisor for part in value] if all(part % divisor == 0 for part in value) else value
    if all_integers and count and _LAYER_INDICES.search(name):
        return list(dict.fromkeys(min(part, len(kept) - 1) for part in value if part >= 0)) or value
    if all_integers and _WIDTH.search(name) and not _NOT_WIDTH.search(name):
        return [part // divisor if part % divisor == 0 and part >= 4 * divisor else part for part in value]
    return value


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _max_width(config: Any) -> int:
    own = [
        config_value(config, name)
        for name in ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "encoder_hidden_dim")
    ]
    lists = [
        max(value)
        for name in ("hidden_sizes", "embed_dims", "embed_dim")
        if (value := _integers(config_value(config, name)))
    ]
    parts = [
        _max_width(part) for entry in fields(config) if hasattr(part := config_value(config, entry.name), "model_type")
    ]
    return max([value for value in own if _is_int(value)] + lists + parts, default=TARGET_WIDTH)


def _integers(value: Any) -> list[int]:
    return [part for part in value if _is_int(part)] if isinstance(value, (list, tuple)) else []
