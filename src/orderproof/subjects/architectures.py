"""`arch:NAME?key=value&...`: an architecture of transformers by its name, without anybody's weights."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any
from urllib.parse import unquote

import torch

from orderproof.errors import OrderproofError, SubjectError, UsageError
from orderproof.subjects import huggingface, shrinking
from orderproof.subjects.images import small_image
from orderproof.subjects.quieting import silence, transformers_library
from orderproof.subjects.subject import Subject
from orderproof.subjects.weightless import build_weightless

PREFIX = "arch:"


def load_architecture(spec: str, *, tiny: bool = False, attention: str | None = None, seed: int = 0) -> Subject:
    """Build `arch:NAME?key=value`: on meta, for every weight, or tiny on the CPU with random weights."""
    name, given = parse(spec)
    with silence():
        default = default_config(name)
        check_keys(name, default, given)
        given = {**layer_pattern(default, given), **given}
        if tiny:
            return _tiny(spec, default, shrinking.shrunk(default, given), attention, seed)
        return _weightless(spec, default, given, attention, seed)


def parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Split `arch:NAME?key=value&key=value` into the name and its configuration values."""
    name, _, query = spec.removeprefix(PREFIX).partition("?")
    given = {}
    for pair in filter(None, query.split("&")):
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{spec}: a configuration value is written key=value; got {pair!r}")
        given[key] = _value(unquote(text))
    return name, given


def _value(text: str) -> Any:
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except json.JSONDecodeError:
        return text


def near(wanted: str, known: Iterable[str]) -> str:
    """`; did you mean a, b?` or nothing."""
    close = get_close_matches(wanted, sorted(known), n=4, cutoff=0.5)
    return f"; did you mean {', '.join(close)}?" if close else ""


def known_architectures() -> tuple[str, ...]:
    """The names that transformers knows."""
    transformers_library()
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return tuple(sorted(CONFIG_MAPPING_NAMES))


def default_config(name: str) -> Any:
    """The default configuration of an architecture; of its text part where it has several."""
    known = known_architectures()
    if name not in known:
        raise UsageError(
            f"transformers {transformers_library().__version__} has no architecture {name!r}{near(name, known)}"
        )
    from transformers import CONFIG_MAPPING

    try:
        config_class: Any = CONFIG_MAPPING[name]
        parts: Mapping[str, Any] = getattr(config_class, "sub_configs", {})
        text = parts.get("text_config")
        if text is not None and getattr(text, "model_type", None):
            config_class = text
        config = config_class()
    except Exception as error:  # a third-party constructor: anything may come
        raise SubjectError(f"{PREFIX}{name}: no default configuration: {first_line(error)}") from error
    huggingface.model_class(config)
    return config


def check_keys(name: str, config: Any, given: Mapping[str, Any]) -> None:
    """Refuse configuration keys the architecture does not have."""
    known = {key for key in config.to_dict() if not key.startswith("_")} | set(getattr(config, "attribute_map", {}))
    if is_dataclass(config):
        known |= {entry.name for entry in fields(config)}
    for key in given:
        if key not in known:
            raise UsageError(f"{PREFIX}{name}: its configuration has no key {key!r}{near(key, known)}")


def layer_pattern(config: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds of layers spelled out for a given number of layers, where the configuration does not do that itself."""
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    types = getattr(config, "attention_types", None)
    counts = [value for key, value in given.items() if renamed.get(key, key) == "num_layers"]
    if not types or not counts or not isinstance(counts[0], int):
        return {}
    kinds = types[0][0]
    return {"attention_types": [[[kinds[place % len(kinds)] for place in range(counts[0])], 1]]}


def configured(default: Any, values: Mapping[str, Any], spec: str) -> Any:
    """A configuration with these values set."""
    renamed: Mapping[str, str] = getattr(default, "attribute_map", {})
    config_class: Any = type(default)
    try:
        return config_class(**{renamed.get(key, key): value for key, value in values.items()})
    except Exception as error:  # a third-party constructor: anything may come
        raise UsageError(f"{spec}: these configuration values do not fit: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """An error of another library, in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _build(config: Any, attention: str, spec: str) -> Any:
    try:
        return huggingface.model_class(config)._from_config(config, attn_implementation=attention, dtype=torch.float32)
    except OrderproofError:
        raise
    except Exception as error:  # a third-party constructor: anything may come
        raise SubjectError(f"{spec}: the model cannot be built: {first_line(error)}") from error


def _tiny(spec: str, default: Any, values: Mapping[str, Any], attention: str | None, seed: int) -> Subject:
    config = configured(default, values, spec)
    backend = huggingface.attention_of(huggingface.model_class(config), attention)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _build(config, backend, spec)
    shrinking.perturb(model, seed)
    return huggingface.subject_of(model, name=spec, detail=f"{backend}, float32, tiny random weights (seed {seed})")


def _weightless(spec: str, default: Any, given: dict[str, Any], attention: str | None, seed: int) -> Subject:
    config = configured(default, given, spec)
    if hasattr(config, "image_size") and hasattr(config, "patch_size") and "image_size" not in given:
        side = small_image(config, huggingface.integers_of(config.to_dict()))
        config = configured(default, {**given, "image_size": side}, spec)
    backend = huggingface.attention_of(huggingface.model_class(config), attention)
    model, values = build_weightless(partial(_build, config, backend, spec))
    kept = {key: value for key, value in given.items() if key not in _size_keys(default)}
    tiny = shrinking.shrunk(config, kept, faithful=True)
    return huggingface.subject_of(
        model,
        name=spec,
        detail=f"{backend}, float32, without weights",
        values=values,
        twin=partial(_twin, spec, default, tiny, backend, seed),
    )


def _twin(spec: str, default: Any, values: Mapping[str, Any], attention: str, seed: int) -> Subject:
    with silence():
        return _tiny(spec, default, values, attention, seed)


def _size_keys(config: Any) -> set[str]:
    """Keys that say how large a model is, under every name its configuration gives them."""
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    return {name for key in shrinking.SIZE_KEYS for name in (key, renamed.get(key, key))}
