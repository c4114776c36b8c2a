"""The fields of a `ModelDescription` that a user can set, and the check of the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderproof.errors import UsageError
from orderproof.models.hf.attention_pattern import LAYER_TYPES
from orderproof.registry import did_you_mean

TEXT_KINDS = ("encoder", "causal_lm")
OPTIONAL_ARGUMENTS = ("position_ids", "attention_mask")

Assumptions = Mapping[str, Any]
ASSUMABLE: Mapping[str, type | tuple[str, ...]] = {  # a field -> its values or its type
    "model_kind": TEXT_KINDS,
    "layer_types": LAYER_TYPES,
    "has_positions": bool,
    "ignored_arguments": OPTIONAL_ARGUMENTS,
    "first_position_id": int,
    "position_table_size": int,
    "config_max_positions": int,
    "family_max_positions": int,
    "pad_token_id": int,
}


def check_assumptions(assume: Assumptions | None) -> dict[str, Any]:
    """The values that a user sets. Raises `UsageError` for an unknown name or a value of another type."""
    for name, value in (assume or {}).items():
        if name not in ASSUMABLE:
            raise UsageError(f"expected one of {', '.join(ASSUMABLE)}; got {name!r}{did_you_mean(name, ASSUMABLE)}")
        expected = ASSUMABLE[name]
        if isinstance(expected, type):
            fits, wanted = type(value) is expected, expected.__name__
        else:
            values = [value] if name == "model_kind" else value
            fits = isinstance(values, (list, tuple, set, frozenset)) and all(each in expected for each in values)
            wanted = ("one of " if name == "model_kind" else "a list of ") + ", ".join(expected)
        if not fits:
            raise UsageError(f"{name}: expected {wanted}; got {value!r}")
    return dict(assume or {})
