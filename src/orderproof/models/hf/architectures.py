"""Build `arch:NAME?key=value&...`: an architecture of transformers by name, with random weights or on meta."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

import torch

from orderproof.errors import OrderproofError, SubjectError, UsageError, first_line
from orderproof.library_messages import suppress_warnings
from orderproof.models.audio import is_audio_model
from orderproof.models.hf import build_subject
from orderproof.models.hf.assumptions import Assumptions
from orderproof.models.hf.decoder_adapter import has_text_decoder
from orderproof.models.hf.export_patches import transformers_library
from orderproof.models.hf.meta_device import build_on_meta
from orderproof.models.hf.model_class import (
    has_base_model,
    has_model_class,
    model_class,
    needs_inference_session,
    select_attention_backend,
    unsupported_modality,
)
from orderproof.models.hf.probe import EMBEDDINGS_NOTE, extra_inputs_of, probe_subject
from orderproof.models.hf.stated_values import (
    check_honoured,
    check_rope_types,
    split_attention,
    split_dtype,
    with_layer_count,
)
from orderproof.models.input_spec import NoTokenInputError
from orderproof.models.own_errors import raise_own_error
from orderproof.models.subject import Subject
from orderproof.models.tiny import fixed_sizes
from orderproof.models.tiny.batch_norm import calibrate_batch_norm
from orderproof.models.tiny.candidates import tiny_config_candidates
from orderproof.models.tiny.overrides import DEFAULT_CONFIG_ARGUMENTS, UNSUPPORTED_ARCHITECTURES
from orderproof.models.tiny.size_limit import TinyModelTooLarge, limit_parameters
from orderproof.models.vision.image_shapes import small_image_size
from orderproof.registry import did_you_mean
from orderproof.seeded_random import seeded_random
from orderproof.subject_spec import ARCH_PREFIX, unknown_architecture

SIZE_INDEPENDENT_ERRORS = (TypeError, AttributeError, KeyError)  # not fixed by another size if raised twice
TEXT_CONFIG_KEYS = ("text_config", "thinker_config", "vlm_config", "encoder")  # text models of composite models
SESSION_VISION_CONFIG_KEYS = ("vision_config", "detector_config")  # of models that are called with a video session


def load_architecture(
    spec: str, *, tiny: bool = False, attention: str | None = None, seed: int = 0, assume: Assumptions | None = None
) -> Subject:
    """Build `arch:NAME?key=value`: on meta, for proofs for all weights, or tiny on the CPU with random weights.

    Raises `UsageError` for an unknown name or value, `SubjectError` if it cannot be built or called.
    """
    name, overrides = parse_spec(spec)
    with suppress_warnings():
        if name in UNSUPPORTED_ARCHITECTURES:
            raise NoTokenInputError(f"{spec}: {UNSUPPORTED_ARCHITECTURES[name]}")
        default, notes = _default_config(name)
        chosen = model_class(default)
        if (other := unsupported_modality(chosen)) is not None and not (
            other == "audio" and tiny and is_audio_model(chosen)
        ):
            raise NoTokenInputError(f"{spec}: {chosen.__name__} reads {other}, neither text nor images")
        overrides, stated_attention = split_attention(overrides, spec)
        check_config_keys(name, default, overrides)
        overrides, dtype = split_dtype(overrides, spec)
        attention = attention or stated_attention
        check_rope_types(overrides, spec)
        overrides = with_layer_count(default, {**expand_attention_types(default, overrides), **overrides})
        build = _build_tiny if tiny else _build_on_meta
        return build(spec, default, overrides, attention, seed, notes=notes, assume=assume, dtype=dtype)


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Split `arch:NAME?key=value&key=value` into the name and its configuration values."""
    name, _, query = spec.removeprefix(ARCH_PREFIX).partition("?")
    overrides = {}
    for pair in filter(None, query.split("&")):
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{spec}: a configuration value is written key=value; got {pair!r}")
        overrides[key] = _parse_value(unquote(text))
    return name, overrides


def _parse_value(text: str) -> Any:
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except json.JSONDecodeError:
        return text


def known_architectures() -> tuple[str, ...]:
    """The names that transformers knows."""
    transformers_library()
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return tuple(sorted(CONFIG_MAPPING_NAMES))


def default_config(name: str) -> Any:
    """The default configuration of the audited component of an architecture. Raises `UsageError`, `SubjectError`."""
    return _default_config(name)[0]


def _default_config(name: str) -> tuple[Any, tuple[str, ...]]:
    """The same, and a note if a component is audited."""
    known = known_architectures()
    if name not in known:
        raise unknown_architecture(name, known)
    from transformers import CONFIG_MAPPING

    try:
        whole = CONFIG_MAPPING[name](**DEFAULT_CONFIG_ARGUMENTS.get(name, {}))
        config = audited_config(whole)
    except Exception as error:  # a third-party constructor: anything may come
        raise SubjectError(f"{ARCH_PREFIX}{name}: no default configuration: {first_line(error)}") from error
    model_class(config)
    return config, () if config is whole else (f"audited component of {name}: {config.model_type}",)


def audited_config(config: Any) -> Any:
    """The configuration of the audited component: the text model of a composite model, or the backbone under a head."""
    for key in TEXT_CONFIG_KEYS:
        part = getattr(config, key, None) if key in getattr(config, "sub_configs", {}) else None
        if part is not None and getattr(part, "model_type", None) and has_model_class(part):
            return audited_config(part)
    for key in SESSION_VISION_CONFIG_KEYS if needs_inference_session(config) else ():
        if (part := getattr(config, key, None)) is not None and has_model_class(part):
            return audited_config(part)
    backbone = getattr(config, "backbone_config", None)
    if backbone is not None and not has_base_model(config) and has_base_model(backbone):
        return backbone
    return config


def check_config_keys(name: str, config: Any, overrides: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a key that the configuration does not have."""
    known = {key for key in config.to_dict() if not key.startswith("_")} | set(getattr(config, "attribute_map", {}))
    if is_dataclass(config):
        known |= {entry.name for entry in fields(config)}
    for key in overrides:
        if key not in known:
            raise UsageError(
                f"{ARCH_PREFIX}{name}: its configuration has no key {key!r}{did_you_mean(key, known, limit=4)}"
            )


def expand_attention_types(config: Any, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """`attention_types` for another number of layers (GPT-Neo), which the configuration does not derive."""
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    types = getattr(config, "attention_types", None)
    counts = [value for key, value in overrides.items() if renamed.get(key, key) == "num_layers"]
    if not types or not counts or not isinstance(counts[0], int):
        return {}
    kinds = types[0][0]
    return {"attention_types": [[[kinds[layer % len(kinds)] for layer in range(counts[0])], 1]]}


def config_with_values(default: Any, values: Mapping[str, Any], spec: str) -> Any:
    """A configuration with these values set."""
    renamed: Mapping[str, str] = getattr(default, "attribute_map", {})
    config_class: Any = type(default)
    try:
        return config_class(**{renamed.get(key, key): value for key, value in values.items()})
    except Exception as error:  # a third-party constructor: anything may come
        raise UsageError(f"{spec}: these configuration values do not fit: {first_line(error)}") from error


def _build_model(config: Any, attention: str | None, spec: str, dtype: torch.dtype = torch.float32) -> Any:
    """The model of a configuration, with the requested attention backend or the best that all components support."""
    chosen = model_class(config)
    backend = select_attention_backend(chosen, attention)
    try:
        return chosen._from_config(config, attn_implementation=backend, dtype=dtype)
    except OrderproofError:
        raise
    except Exception as error:  # a third-party constructor: anything may come
        if attention is None and backend != "eager" and "does not support an attention implementation" in str(error):
            return _build_model(config, "eager", spec, dtype)
        raise SubjectError(f"{spec}: the model cannot be built: {first_line(error)}") from error


def dtype_name(dtype: torch.dtype) -> str:
    """The name without the module: bfloat16."""
    return str(dtype).removeprefix("torch.")


def _backend_notes(model: Any, attention: str | None) -> tuple[str, ...]:
    backend = model.config._attn_implementation
    if attention is not None or backend == select_attention_backend(type(model), None):
        return ()
    return (f"attention backend {backend}, because a component supports no other",)


def _build_tiny(
    spec: str, default: Any, overrides: Mapping[str, Any], attention: str | None, seed: int, *,
    keep_kv_groups: bool = False, notes: tuple[str, ...] = (), assume: Assumptions | None = None,
    dtype: torch.dtype = torch.float32,
) -> Subject:  # fmt: skip
    """The first tiny candidate that can be built and run. Raises the error of a candidate if none can."""
    select_attention_backend(model_class(default), attention)
    failed: Exception | None = None
    before: BaseException | None = None
    for values in tiny_config_candidates(default, overrides, keep_kv_groups=keep_kv_groups):
        try:
            config = config_with_values(default, values, spec)
            check_honoured(config, overrides, spec)
            return _build_random(spec, config, attention, seed, notes=notes, assume=assume, dtype=dtype)
        except NoTokenInputError:
            raise
        except Exception as error:  # third-party code: anything may come, and another size may do
            cause = error.__cause__
            if isinstance(cause, ImportError) or (
                isinstance(cause, SIZE_INDEPENDENT_ERRORS) and repr(cause) == repr(before)
            ):
                raise
            before = cause
            if failed is None or not isinstance(error, (TinyModelTooLarge, UsageError)):
                failed = error
    assert failed is not None
    raise failed


def _build_random(
    spec: str, config: Any, attention: str | None, seed: int, *, notes: tuple[str, ...], assume: Assumptions | None,
    dtype: torch.dtype = torch.float32,
) -> Subject:  # fmt: skip
    """A model with random weights that has been run once."""
    original = copy.deepcopy(config)  # some encoders turn it into the configuration of an encoder
    with seeded_random(seed), limit_parameters():
        model = _build_model(config, attention, spec, dtype)
    fixed_sizes.add_weight_noise(model, seed)
    backend, notes = model.config._attn_implementation, (*notes, *_backend_notes(model, attention))
    summary = f"{backend}, {dtype_name(dtype)}, tiny random weights (seed {seed})"
    build_with = partial(
        build_subject.build_subject, model, name=spec, load_summary=summary, notes=notes, assume=assume
    )
    subject = probe_subject(model, build_with)
    subject.original_config = original
    calibrate_batch_norm(subject)
    if has_text_decoder(original):

        def build(chosen: Any) -> Any:
            backend = select_attention_backend(chosen, attention)
            with seeded_random(seed), suppress_warnings():
                whole = chosen._from_config(original, attn_implementation=backend, dtype=dtype)
            fixed_sizes.add_weight_noise(whole, seed)
            return whole

        build_subject.attach_decoder_adapter(subject, original, build)
    return subject


def _build_on_meta(
    spec: str, default: Any, overrides: Mapping[str, Any], attention: str | None, seed: int, *,
    notes: tuple[str, ...], assume: Assumptions | None, dtype: torch.dtype = torch.float32,
) -> Subject:  # fmt: skip
    """A model without weights, called like its tiny twin."""
    config = config_with_values(default, overrides, spec)
    check_honoured(config, overrides, spec)
    if hasattr(config, "image_size") and hasattr(config, "patch_size") and "image_size" not in overrides:
        side = small_image_size(config, build_subject.config_integers(config.to_dict()))
        config = config_with_values(default, {**overrides, "image_size": side}, spec)
    model, values = build_on_meta(partial(_build_model, config, attention, spec, dtype))
    backend = model.config._attn_implementation
    kept = {key: value for key, value in overrides.items() if key not in _size_keys(default)}
    twin = partial(_build_twin, spec, config, kept, backend, seed, assume, dtype)
    inputs, twin_notes = _inputs_from_twin(twin)
    return build_subject.build_subject(
        model, name=spec, load_summary=f"{backend}, {dtype_name(dtype)}, without weights", buffer_values=values,
        build_tiny_twin=twin, notes=(*notes, *_backend_notes(model, attention), *twin_notes), assume=assume,
        **inputs,
    )  # fmt: skip


def _inputs_from_twin(build_twin: Callable[[], Subject]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The inputs of the tiny twin as arguments of `build_subject`, and notes; no arguments if it cannot be built."""
    try:
        twin = build_twin()
    except Exception as error:  # noqa: BLE001 - third-party code: anything may come
        if not isinstance(error, OrderproofError):
            raise_own_error(error)
        return {}, (f"no tiny twin, so the inputs follow from the signature alone ({first_line(error)})",)
    path = None if twin.patch_embedding_path is None else twin.patch_embedding_path.removeprefix("model.")
    inputs = {
        "use_embeddings": getattr(twin.module, "argument", "") == "inputs_embeds",
        "extra_input_names": extra_inputs_of(twin).names,
        "patch_embedding_path": path,
    }
    return inputs, tuple(note for note in twin.notes if note.startswith(EMBEDDINGS_NOTE))


def _build_twin(
    spec: str, config: Any, overrides: Mapping[str, Any], attention: str, seed: int, assume: Assumptions | None,
    dtype: torch.dtype,
) -> Subject:  # fmt: skip
    with suppress_warnings():
        return _build_tiny(spec, config, overrides, attention, seed, keep_kv_groups=True, assume=assume, dtype=dtype)


def _size_keys(config: Any) -> set[str]:
    """The configuration keys of sizes, under every name that the configuration has for them."""
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    return {name for key in fixed_sizes.SIZE_KEYS for name in (key, renamed.get(key, key))}
