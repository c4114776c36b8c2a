"""The settings that the configuration of an architecture can state, and variants that cover every pair of them.

Each variant is a name with a query, as in `arch:NAME?key=value`, so that it is built, audited and stored as any other
row of the atlas. Two settings that only fail together are found, because every pair of values is in a variant.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import combinations, product
from typing import Any

from allpairspy import AllPairs

from orderproof.errors import OrderproofError
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.architectures import config_with_values, default_config
from orderproof.models.hf.model_class import model_class
from orderproof.models.hf.stated_values import check_honoured
from orderproof.models.tiny.candidates import tiny_config_candidates
from orderproof.models.tiny.fixed_sizes import HEAD_DIM
from orderproof.models.tiny.proportional_sizes import config_value

ROPE_TYPES: dict[str, dict[str, Any]] = {
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 4.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 32},
    "llama3": {
        "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
    },
    "longrope": {"factor": 4.0, "original_max_position_embeddings": 32},
    "proportional": {"partial_rotary_factor": 0.5},
}  # fmt: skip
SWITCHES = (  # keys of booleans that change attention or positions
    "is_decoder", "alibi", "new_decoder_architecture", "multi_query", "use_mem_rope", "use_bidirectional_attention",
    "rotary", "use_sliding_window", "attention_bias", "scale_attn_by_inverse_layer_idx", "relative_attention",
    "position_biased_input", "share_att_key", "parallel_attn", "use_parallel_residual", "qk_layernorm", "use_qk_norm",
    "reorder_and_upcast_attn", "attention_k_eq_v", "learnable_sink_init",
)  # fmt: skip
POSITION_TYPES = ("absolute", "relative_key", "relative_key_query", "rotary")
POPULAR = (
    "albert", "bamba", "bart", "bert", "bloom", "cohere2", "deberta-v2", "deepseek_v3", "distilbert", "falcon",
    "gemma2", "gemma3_text", "gpt2", "gpt_neox", "gpt_oss", "gptj", "llama", "mamba2", "minimax", "mistral", "mixtral",
    "modernbert", "opt", "phi3", "qwen2", "qwen3", "qwen3_next", "roberta", "t5", "xlm-roberta",
)  # fmt: skip
ELSEWHERE = ("attn_implementation", "dtype")  # settings that are not in the configuration
UNSET = None  # the value of the default configuration


def variants(name: str) -> tuple[str, ...]:
    """Names with queries that cover every pair of settings, the default configuration first. Raises `UsageError`."""
    with suppress_warnings():
        config = default_config(name)
        choices = dict(_accepted_choices(config))
    if not choices:
        return (name,)
    if len(choices) == 1:
        (values,) = choices.values()
        rows: list[list[Any]] = [[value] for value in values]
    else:
        with suppress_warnings():
            refused = _refused_pairs(config, choices)
        rows = [list(row) for row in AllPairs(list(choices.values()), filter_func=partial(_has_no_pair, refused))]
        rows = _with_defaults(rows, list(choices).index("dtype"))
    queries = (_query(dict(zip(choices, row, strict=True))) for row in rows)
    return tuple(dict.fromkeys([name, *(f"{name}?{query}" if query else name for query in queries)]))


def _refused_pairs(config: Any, choices: dict[str, list[Any]]) -> set[str]:
    """The pairs of values that a tiny configuration refuses together: a variant with one would cover nothing."""
    stated = {key: values[1:] for key, values in choices.items() if key not in ELSEWHERE}
    return {
        pair
        for first, second in combinations(stated, 2)
        for x, y in product(stated[first], stated[second])
        for pair in _value_pairs([x if key == first else y if key == second else UNSET for key in choices])
        if not _is_accepted(config, {first: x, second: y})
    }


def _has_no_pair(refused: set[str], row: list[Any]) -> bool:
    """True if a row, or its first values, has none of these pairs of values."""
    return refused.isdisjoint(_value_pairs(row))


def _value_pairs(row: list[Any]) -> list[str]:
    """The pairs of values that are set, with their columns."""
    return [repr(pair) for pair in combinations([(k, x) for k, x in enumerate(row) if x is not UNSET], 2)]


def _with_defaults(rows: list[list[Any]], column: int) -> list[list[Any]]:
    """The rows with the default in a column wherever other rows have the pairs of values that are lost.

    A covering design takes any value where one is free. In bfloat16 a difference below 0.25 may be rounding, and each
    comparison is repeated in float64, so such a variant finds less and takes longer.
    """
    counts = Counter(pair for row in rows for pair in _pairs(row, column))
    kept = []
    for row in rows:
        pairs = _pairs(row, column)
        free = all(counts[pair] > 1 for pair in pairs)
        if free:
            counts.subtract(pairs)
        kept.append([UNSET if free and k == column else value for k, value in enumerate(row)])
    return kept


def _pairs(row: list[Any], column: int) -> list[str]:
    """The pairs of the value in a column, if it is not the default, and each other value."""
    return [] if row[column] is UNSET else [repr((row[column], k, value)) for k, value in enumerate(row) if k != column]


def _query(values: dict[str, Any]) -> str:
    """The values that are set, as a query."""
    text = {key: value if isinstance(value, str) else json.dumps(value, separators=(",", ":")) for key, value in
            values.items() if value is not UNSET}  # fmt: skip
    return "&".join(f"{key}={value}" for key, value in text.items())


def _accepted_choices(config: Any) -> Iterator[tuple[str, list[Any]]]:
    """The settings without the values that a tiny configuration refuses: a variant with one would cover nothing."""
    for key, values in _choices(config):
        accepted = [x for x in values if x is UNSET or key in ELSEWHERE or _is_accepted(config, {key: x})]
        if len(accepted) > 1:
            yield key, accepted


def _is_accepted(config: Any, values: dict[str, Any]) -> bool:
    """True if a tiny configuration can have these values; no model is built."""
    for candidate in tiny_config_candidates(config, values):
        try:
            check_honoured(config_with_values(config, candidate, config.model_type), values, config.model_type)
        except OrderproofError:
            continue
        return True
    return False


def _choices(config: Any) -> Iterator[tuple[str, list[Any]]]:
    """The settings and their values; the first value is the default."""
    if getattr(model_class(config), "_supports_sdpa", False):
        yield "attn_implementation", [UNSET, "eager"]
    yield "dtype", [UNSET, "bfloat16"]
    if ropes := _rope_parameters(config):
        yield "rope_parameters", [UNSET, *ropes]
    for key in SWITCHES:
        value = config.to_dict().get(key)  # not a property, which cannot be stated
        if isinstance(value, bool):
            yield key, [UNSET, not value]
    if config_value(config, "position_embedding_type") in POSITION_TYPES:
        now = config.position_embedding_type
        yield "position_embedding_type", [UNSET, *(kind for kind in POSITION_TYPES[:3] if kind != now)]
    yield from _layers(config)
    if isinstance(config_value(config, "num_key_value_heads"), int):
        yield "num_key_value_heads", [UNSET, 1, 4]


def _rope_parameters(config: Any) -> list[dict[str, Any]]:
    """Rotary frequencies of every type; those of layers of full attention, if each layer type has its own."""
    rope = config_value(config, "rope_parameters")
    if not isinstance(rope, dict):
        return []
    own = rope.get("full_attention", rope)
    if own.get("rope_type") != "default":
        return []
    scaled = [{**own, "rope_type": kind, **more, **_factors(kind, own)} for kind, more in ROPE_TYPES.items()]
    return [{**rope, "full_attention": each} for each in scaled] if "full_attention" in rope else scaled


def _factors(kind: str, rope: dict[str, Any]) -> dict[str, list[float]]:
    """The factors of each frequency of a head of a tiny model."""
    count = int(HEAD_DIM * rope.get("partial_rotary_factor", 1.0)) // 2
    long = [1.0 + 3.0 * k / max(count - 1, 1) for k in range(count)]
    return {"short_factor": [1.0] * count, "long_factor": long} if kind == "longrope" else {}


def _layers(config: Any) -> Iterator[tuple[str, list[Any]]]:
    """Layer types in both orders, and windows of two lengths."""
    types = config_value(config, "layer_types")
    kinds = list(dict.fromkeys(types)) if isinstance(types, (list, tuple)) else []
    if len(kinds) > 1:
        yield "layer_types", [UNSET, kinds[1::-1], kinds[:2], [kinds[0]] * 2, [kinds[1]] * 2]
    if "sliding_window" in config.to_dict() and (config.sliding_window or not kinds):
        yield "sliding_window", [UNSET, 3]
    if "attn_layer_indices" in config.to_dict():
        yield "attn_layer_indices", [UNSET, [0]]


def selected_variants(names: tuple[str, ...]) -> tuple[str, ...]:
    """The variants of these architectures, or of the popular ones. Raises `UsageError`."""
    found: list[str] = []
    for name in names or POPULAR:
        try:
            found += variants(name)
        except OrderproofError:
            if names:
                raise
    return tuple(found)
