"""`arch:NAME?key=value&...`: an architecture of transformers by its name, without anybody's weights."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any
from urllib.parse import unquote

import torch

from orderproof.errors import OrderproofError, SubjectError, UsageError, first_line
from orderproof.subjects import huggingface, shrinking
from orderproof.subjects.bounding import TooLarge, bounded
from orderproof.subjects.classes import (
    attention_of,
    foreign_input,
    has_base_model,
    has_class,
    model_class,
    wants_a_session,
)
from orderproof.subjects.decoding import has_decoder
from orderproof.subjects.exceptions import GIVEN, NOT_ALONE
from orderproof.subjects.first_run import beside_of, readable
from orderproof.subjects.images import NoTokens
from orderproof.subjects.ladder import ladder
from orderproof.subjects.quieting import silence, transformers_library
from orderproof.subjects.settling import settle
from orderproof.subjects.shapes import small_image
from orderproof.subjects.sounds import reads_sound
from orderproof.subjects.subject import Subject
from orderproof.subjects.weightless import build_weightless

PREFIX = "arch:"
NOT_OF_SIZE = (TypeError, AttributeError, KeyError)  # the same twice, they are no matter of size
TEXT_PARTS = (
    "text_config",
    "thinker_config",
    "vlm_config",
    "encoder",
)  # keys under which composite models keep their text model
IMAGE_PARTS = ("vision_config", "detector_config")  # of models that are called with a film in the making


def load_architecture(spec: str, *, tiny: bool = False, attention: str | None = None, seed: int = 0) -> Subject:
    """Build `arch:NAME?key=value`: on meta, for every weight, or tiny on the CPU with random weights."""
    name, given = parse(spec)
    with silence():
        if name in NOT_ALONE:
            raise NoTokens(f"{spec}: {NOT_ALONE[name]}")
        default = default_config(name)
        chosen = model_class(default)
        if (other := foreign_input(chosen)) is not None and not (other == "audio" and tiny and reads_sound(chosen)):
            raise NoTokens(f"{spec}: {chosen.__name__} reads {other}, neither text nor images")
        check_keys(name, default, given)
        given = {**layer_pattern(default, given), **given}
        if tiny:
            return _tiny(spec, default, given, attention, seed)
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
        config = read_part(CONFIG_MAPPING[name](**GIVEN.get(name, {})))
    except Exception as error:  # a third-party constructor: anything may come
        raise SubjectError(f"{PREFIX}{name}: no default configuration: {first_line(error)}") from error
    model_class(config)
    return config


def read_part(config: Any) -> Any:
    """The part that is audited: the text model of a composite, and the backbone of what is a head on a backbone."""
    for key in TEXT_PARTS:
        part = getattr(config, key, None) if key in getattr(config, "sub_configs", {}) else None
        if part is not None and getattr(part, "model_type", None) and has_class(part):
            return read_part(part)
    for key in IMAGE_PARTS if wants_a_session(config) else ():
        if (part := getattr(config, key, None)) is not None and has_class(part):
            return read_part(part)
    backbone = getattr(config, "backbone_config", None)
    if backbone is not None and not has_base_model(config) and has_base_model(backbone):
        return backbone
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


def _build(config: Any, attention: str | None, spec: str) -> Any:
    """The model of a configuration, with the attention asked for, else with the best that all of its parts have."""
    chosen = model_class(config)
    backend = attention_of(chosen, attention)
    try:
        return chosen._from_config(config, attn_implementation=backend, dtype=torch.float32)
    except OrderproofError:
        raise
    except Exception as error:  # a third-party constructor: anything may come
        if attention is None and backend != "eager" and "does not support an attention implementation" in str(error):
            return _build(config, "eager", spec)
        raise SubjectError(f"{spec}: the model cannot be built: {first_line(error)}") from error


def _tiny(
    spec: str, default: Any, given: Mapping[str, Any], attention: str | None, seed: int, *, faithful: bool = False
) -> Subject:
    """The first version on the ladder that can be built and run; what is wrong with the last, where none can."""
    attention_of(model_class(default), attention)
    failed: Exception | None = None
    before: BaseException | None = None
    for values in ladder(default, given, faithful=faithful):
        try:
            return _drawn(spec, configured(default, values, spec), attention, seed)
        except NoTokens:
            raise
        except Exception as error:  # third-party code: anything may come, and another size may do
            cause = error.__cause__
            if isinstance(cause, ImportError) or (isinstance(cause, NOT_OF_SIZE) and repr(cause) == repr(before)):
                raise
            before = cause
            if failed is None or not isinstance(error, (TooLarge, UsageError)):
                failed = error
    assert failed is not None
    raise failed


def _drawn(spec: str, config: Any, attention: str | None, seed: int) -> Subject:
    """A model with random weights, that was run once."""
    given = copy.deepcopy(config)  # some encoders make it one of an encoder alone
    with torch.random.fork_rng(devices=[]), bounded():
        torch.manual_seed(seed)
        model = _build(config, attention, spec)
    shrinking.perturb(model, seed)
    detail = f"{model.config._attn_implementation}, float32, tiny random weights (seed {seed})"
    subject = readable(model, partial(huggingface.subject_of, model, name=spec, detail=detail))
    settle(subject)
    if has_decoder(given):

        def build(chosen: Any) -> Any:
            backend = attention_of(chosen, attention)
            with torch.random.fork_rng(devices=[]), silence():
                torch.manual_seed(seed)
                whole = chosen._from_config(given, attn_implementation=backend, dtype=torch.float32)
            shrinking.perturb(whole, seed)
            return whole

        huggingface.add_decoder(subject, given, build)
    return subject


def _weightless(spec: str, default: Any, given: dict[str, Any], attention: str | None, seed: int) -> Subject:
    config = configured(default, given, spec)
    if hasattr(config, "image_size") and hasattr(config, "patch_size") and "image_size" not in given:
        side = small_image(config, huggingface.integers_of(config.to_dict()))
        config = configured(default, {**given, "image_size": side}, spec)
    model, values = build_weightless(partial(_build, config, attention, spec))
    backend = model.config._attn_implementation
    kept = {key: value for key, value in given.items() if key not in _size_keys(default)}
    twin = partial(_twin, spec, config, kept, backend, seed)
    return huggingface.subject_of(
        model,
        name=spec,
        detail=f"{backend}, float32, without weights",
        values=values,
        twin=twin,
        **_called_like(twin),
    )


def _called_like(twin: Callable[[], Subject]) -> dict[str, Any]:
    """How the tiny twin of a model is called, and where it is cut; nothing without a twin to ask."""
    try:
        subject = twin()
        numbers = getattr(subject.module, "argument", "") == "input_ids"
        cut = None if subject.cut is None else subject.cut.removeprefix("model.")
        return {"numbers": numbers, "beside": beside_of(subject).names, "like": cut}
    except Exception:  # noqa: BLE001 - third-party code: anything may come
        return {}


def _twin(spec: str, config: Any, kept: Mapping[str, Any], attention: str, seed: int) -> Subject:
    with silence():
        return _tiny(spec, config, kept, attention, seed, faithful=True)


def _size_keys(config: Any) -> set[str]:
    """Keys that say how large a model is, under every name its configuration gives them."""
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    return {name for key in shrinking.SIZE_KEYS for name in (key, renamed.get(key, key))}
