"""The class that is built from a configuration: the one that transformers maps it to, or one from the same package.

A component of a composite model (the text model of CLIP, the decoder of TrOCR) has its own configuration and often a
class in the same modelling file that no mapping lists.
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from typing import Any

from orderproof.errors import SubjectError, UsageError
from orderproof.models.hf.export_patches import transformers_library

_UNSUPPORTED_INPUTS = {
    "input_values": "audio", "input_features": "audio", "audio_mel": "audio", "spectrogram": "audio",
    "past_values": "a time series", "states": "states and actions", "token_index": "molecules", "latents": "latents",
}  # fmt: skip
_AUDIO_CLASSES = {  # models of speech and music whose input modality is declared as text
    "BarkModel", "CanaryDecoder", "ClvpDecoder", "ClvpEncoder", "ClvpModelForConditionalGeneration",
    "CsmForConditionalGeneration", "DiaDecoder",
    "DiaEncoder", "EncodecModel", "FastSpeech2ConformerModel", "FastSpeech2ConformerWithHifiGan",
    "KyutaiSpeechToTextModel", "MoshiDepthDecoder", "MusicgenDecoder", "MusicgenMelodyDecoder", "MusicgenModel",
    "MusicgenMelodyModel", "Qwen3OmniMoeTalkerCodePredictorModel", "VitsModel",
}  # fmt: skip
_SUPPORTED_INPUTS = ("inputs_embeds", "input_ids", "pixel_values", "flattened_patches", "hidden_states")
BUILT_AS_ENCODERS = {"t5gemma"}  # encoder-decoders whose encoder requires is_encoder_decoder=False
_PREFERRED_SUFFIXES = ("Model", "Encoder", "Transformer", "Backbone", "ForCausalLM", "Decoder")


def model_class(config: Any) -> Any:
    """The base model class of a configuration, or its encoder class if there is one. Raises `SubjectError`."""
    transformers = transformers_library()
    encoder = config.is_encoder_decoder or config.model_type in BUILT_AS_ENCODERS
    names = ["AutoModelForTextEncoding", "AutoModel"] if encoder else ["AutoModel"]
    for name in names:
        chosen = _lookup_class(getattr(transformers, name)._model_mapping, config)
        if chosen is not None:
            return chosen[0] if isinstance(chosen, (tuple, list)) else chosen
    if (part := component_class(config)) is not None:
        return part
    raise SubjectError(f"transformers has no base model for {type(config).__name__}")


def _lookup_class(mapping: Any, config: Any) -> Any:
    """The entry of a mapping of transformers for a configuration; None if there is none, or it cannot be imported."""
    try:
        return mapping.get(type(config), None)
    except ValueError:  # the mapping names a class that the library does not export
        return None


def has_base_model(config: Any) -> bool:
    """True if transformers lists a base model for a configuration."""
    return type(config) in transformers_library().AutoModel._model_mapping


def has_model_class(config: Any) -> bool:
    """True if a class can be built from a configuration or a component of it."""
    return bool(getattr(config, "sub_configs", {})) or has_base_model(config) or component_class(config) is not None


def needs_inference_session(config: Any) -> bool:
    """True if a model is called with an inference session (the frames so far) instead of data."""
    return has_base_model(config) and "inference_session" in inspect.signature(model_class(config).forward).parameters


def select_attention_backend(chosen: Any, requested: str | None) -> str:
    """The requested attention backend, else SDPA if the class supports it, else eager. Raises `UsageError`."""
    if requested not in (None, "sdpa", "eager"):
        raise UsageError(f"attention must be 'sdpa' or 'eager'; got {requested!r}")
    supported = bool(getattr(chosen, "_supports_sdpa", False))
    if requested == "sdpa" and not supported:
        raise UsageError(f"{chosen.__name__} has no SDPA attention; use attention='eager'")
    return requested or ("sdpa" if supported else "eager")


def component_class(config: Any) -> Any | None:
    """The best-ranked class of the package whose configuration has exactly this type; None without one."""
    classes = [chosen for chosen in _classes_in_package(type(config)) if _accepts_supported_input(chosen)]
    return min(classes, key=_class_rank, default=None)


def unsupported_modality(chosen: Any) -> str | None:
    """The input modality of a class if it is neither text nor images, else None."""
    declared = getattr(chosen, "input_modalities", "text")
    modalities = [declared] if isinstance(declared, str) else list(declared)
    if not set(modalities) & {"text", "image", "video"}:
        return " and ".join("a time series" if name == "time" else str(name) for name in modalities)
    if chosen.__name__ in _AUDIO_CLASSES:
        return "audio"
    return _UNSUPPORTED_INPUTS.get(str(chosen.main_input_name))


def _classes_in_package(config_class: Any) -> list[Any]:
    from transformers import PreTrainedModel

    package = config_class.__module__.rpartition(".")[0]
    if not package.startswith("transformers.models."):
        return []
    classes = []
    for entry in pkgutil.iter_modules(import_module(package).__path__):
        if not entry.name.startswith("modeling_"):
            continue
        try:
            module = import_module(f"{package}.{entry.name}")
        except (ImportError, OSError):  # a dependency of this model is not installed
            continue
        chosen: Any
        for chosen in vars(module).values():
            if inspect.isclass(chosen) and issubclass(chosen, PreTrainedModel) and chosen.__module__ == module.__name__:
                if getattr(chosen, "config_class", None) is config_class:
                    classes.append(chosen)
    return classes


def _accepts_supported_input(chosen: Any) -> bool:
    if chosen.__name__.endswith("PreTrainedModel") or "forward" not in {
        name for base in chosen.__mro__ if base.__module__.startswith("transformers.models.") for name in vars(base)
    }:
        return False
    return bool(set(_SUPPORTED_INPUTS) & set(inspect.signature(chosen.forward).parameters))


def _class_rank(chosen: Any) -> tuple[int, int, int, str]:
    accepted = inspect.signature(chosen.forward).parameters
    input_rank = next((i for i, name in enumerate(_SUPPORTED_INPUTS) if name in accepted), len(_SUPPORTED_INPUTS))
    name = chosen.__name__
    suffix_rank = next((i for i, end in enumerate(_PREFERRED_SUFFIXES) if name.endswith(end)), len(_PREFERRED_SUFFIXES))
    return (input_rank // 4, suffix_rank + 3 * ("Head" in name or "With" in name), len(name), name)
