"""The configurations of an architecture that are compared: its own, and one for each rope scaling that it can state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orderproof.errors import OrderproofError
from orderproof.models.hf.architectures import default_config
from orderproof.models.tiny.fixed_sizes import HEAD_DIM
from orderproof.ports.causes.cause import ropes

PLAIN = "default"
ORIGINAL_LENGTH = 16  # [tokens] of the context before scaling
FACTOR = 4.0
_ORIGINAL = {"original_max_position_embeddings": ORIGINAL_LENGTH}


def _factors(rope: Mapping[str, Any], width: int) -> dict[str, Any]:
    """Factors of longrope for each pair of the rotated features of a head of this width."""
    pairs = int(width * rope.get("partial_rotary_factor", 1.0)) // 2
    return {
        "short_factor": [1.0 + 0.05 * pair for pair in range(pairs)],
        "long_factor": [2.0 + pair for pair in range(pairs)],
    }


SCALINGS: dict[str, Callable[[Mapping[str, Any], int], dict[str, Any]]] = {
    "linear": lambda rope, width: {"factor": FACTOR},
    "dynamic": lambda rope, width: {"factor": FACTOR},
    "yarn": lambda rope, width: {"factor": FACTOR, **_ORIGINAL},
    "llama3": lambda rope, width: {"factor": FACTOR, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **_ORIGINAL},
    "longrope": lambda rope, width: {"factor": FACTOR, **_ORIGINAL, **_factors(rope, width)},
}


def variants(name: str, head_width: int = 0) -> dict[str, dict[str, Any]]:
    """The configuration values of each variant of an architecture, by its name; its heads may have this width."""
    found: dict[str, dict[str, Any]] = {PLAIN: {}}
    try:
        config = default_config(name)
    except OrderproofError:
        return found
    rope = ropes(config).get("")
    if rope is None or "rope_theta" not in rope or "mrope_section" in rope:
        return found
    kept = {key: rope[key] for key in ("rope_theta", "partial_rotary_factor") if key in rope}
    width = HEAD_DIM // 2 if hasattr(config, "qk_rope_head_dim") else head_width or HEAD_DIM  # as tiny sizes are
    longest = {"max_position_embeddings": int(ORIGINAL_LENGTH * FACTOR)}
    for kind, values in SCALINGS.items():
        lengths = longest if kind != "dynamic" else {"max_position_embeddings": ORIGINAL_LENGTH}
        found[kind] = {"rope_parameters": {"rope_type": kind, **kept, **values(rope, width)}, **lengths}
    return found
