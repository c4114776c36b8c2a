"""The effective configuration of a model: what differs from the default of its class, and how it computes."""

from __future__ import annotations

from typing import Any

from orderproof.models.own_errors import raise_own_error

MAX_VALUE_LENGTH = 60  # characters of a value
_NOT_SETTINGS = ("transformers_version", "architectures", "_name_or_path", "dtype", "torch_dtype")


def effective_config(model: Any) -> dict[str, str]:
    """Values that differ from those of the default configuration, as text with the default; and backend and dtype."""
    config = model.config
    try:
        usual = type(config)().to_dict()
    except Exception as error:  # noqa: BLE001 - third-party code: a configuration may have no default
        raise_own_error(error)
        usual = {}
    values = {
        key: _text(value) + (f" (default {_text(usual[key])})" if key in usual else "")
        for key, value in sorted(config.to_dict().items())
        if key not in _NOT_SETTINGS and not key.endswith("_config") and (key not in usual or usual[key] != value)
    }
    backend = getattr(config, "_attn_implementation", None)
    dtype = next(({"dtype": _text(p.dtype)} for p in model.parameters() if p.is_floating_point()), {})
    return {**({"attention": str(backend)} if backend else {}), **dtype, **values}


def _text(value: Any) -> str:
    text = str(value).removeprefix("torch.")
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 3]}..."
