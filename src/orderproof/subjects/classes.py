"""The class that is built from a configuration: the one that transformers maps it to, or one that stands beside it.

A part of a composite model (the text model of CLIP, the decoder of TrOCR) has a configuration of its own and
often a class of its own, in the modelling file beside it.
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from typing import Any

from orderproof.errors import SubjectError, UsageError
from orderproof.subjects.quieting import transformers_library

_OTHER = {
    "input_values": "audio", "input_features": "audio", "audio_mel": "audio", "spectrogram": "audio",
    "past_values": "a time series", "states": "states and actions", "token_index": "molecules", "latents": "latents",
}  # fmt: skip
_SOUNDS = {  # models of speech and music that say they read text: tokens of sound, or text read aloud
    "BarkModel", "CanaryDecoder", "ClvpDecoder", "ClvpEncoder", "ClvpModelForConditionalGeneration",
    "CsmForConditionalGeneration", "DiaDecoder",
    "DiaEncoder", "EncodecModel", "FastSpeech2ConformerModel", "FastSpeech2ConformerWithHifiGan",
    "KyutaiSpeechToTextModel", "MoshiDepthDecoder", "MusicgenDecoder", "MusicgenMelodyDecoder", "MusicgenModel",
    "MusicgenMelodyModel", "Qwen3OmniMoeTalkerCodePredictorModel", "VitsModel",
}  # fmt: skip
_INPUTS = ("inputs_embeds", "input_ids", "pixel_values", "flattened_patches", "hidden_states")
ENCODERS = {"t5gemma"}  # encoder-decoders whose encoder is built only where is_encoder_decoder is false
_ENDS = ("Model", "Encoder", "Transformer", "Backbone", "ForCausalLM", "Decoder")


def model_class(config: Any) -> Any:
    """The class of the base model of a configuration; of the encoder alone where transformers has one."""
    transformers = transformers_library()
    encoder = config.is_encoder_decoder or config.model_type in ENCODERS
    names = ["AutoModelForTextEncoding", "AutoModel"] if encoder else ["AutoModel"]
    for name in names:
        found = _mapped(getattr(transformers, name)._model_mapping, config)
        if found is not None:
            return found[0] if isinstance(found, (tuple, list)) else found
    if (part := part_class(config)) is not None:
        return part
    raise SubjectError(f"transformers has no base model for {type(config).__name__}")


def _mapped(mapping: Any, config: Any) -> Any:
    """What a mapping of transformers gives for a configuration; None where it gives nothing, or a name in vain."""
    try:
        return mapping.get(type(config), None)
    except ValueError:  # the mapping names a class that the library does not export
        return None


def has_base_model(config: Any) -> bool:
    """Whether transformers lists a base model for a configuration."""
    return type(config) in transformers_library().AutoModel._model_mapping


def has_class(config: Any) -> bool:
    """Whether there is a class that is built from a configuration, or from a part of it."""
    return bool(getattr(config, "sub_configs", {})) or has_base_model(config) or part_class(config) is not None


def wants_a_session(config: Any) -> bool:
    """Whether a model is called with a session, a record of the frames seen so far, and not with data."""
    return has_base_model(config) and "inference_session" in inspect.signature(model_class(config).forward).parameters


def attention_of(chosen: Any, requested: str | None) -> str:
    """The attention backend to use: as requested, else SDPA where the class supports it, else eager."""
    if requested not in (None, "sdpa", "eager"):
        raise UsageError(f"attention must be 'sdpa' or 'eager'; got {requested!r}")
    supported = bool(getattr(chosen, "_supports_sdpa", False))
    if requested == "sdpa" and not supported:
        raise UsageError(f"{chosen.__name__} has no SDPA attention; use attention='eager'")
    return requested or ("sdpa" if supported else "eager")


def part_class(config: Any) -> Any | None:
    """The most model-like class whose configuration is of exactly this type."""
    found = [chosen for chosen in _classes_beside(type(config)) if _takes(chosen)]
    return min(found, key=_rank, default=None)


def foreign_input(chosen: Any) -> str | None:
    """What a class reads where that is neither text nor images, else None."""
    said = getattr(chosen, "input_modalities", "text")
    modalities = [said] if isinstance(said, str) else list(said)
    if not set(modalities) & {"text", "image", "video"}:
        return " and ".join("a time series" if name == "time" else str(name) for name in modalities)
    if chosen.__name__ in _SOUNDS:
        return "audio"
    return _OTHER.get(str(chosen.main_input_name))


def _classes_beside(config_class: Any) -> list[Any]:
    from transformers import PreTrainedModel

    package = config_class.__module__.rpartition(".")[0]
    if not package.startswith("transformers.models."):
        return []
    found = []
    for entry in pkgutil.iter_modules(import_module(package).__path__):
        if not entry.name.startswith("modeling_"):
            continue
        try:
            module = import_module(f"{package}.{entry.name}")
        except (ImportError, OSError):  # a package that this model needs is not installed
            continue
        chosen: Any
        for chosen in vars(module).values():
            if inspect.isclass(chosen) and issubclass(chosen, PreTrainedModel) and chosen.__module__ == module.__name__:
                if getattr(chosen, "config_class", None) is config_class:
                    found.append(chosen)
    return found


def _takes(chosen: Any) -> bool:
    if chosen.__name__.endswith("PreTrainedModel") or "forward" not in {
        name for base in chosen.__mro__ if base.__module__.startswith("transformers.models.") for name in vars(base)
    }:
        return False
    return bool(set(_INPUTS) & set(inspect.signature(chosen.forward).parameters))


def _rank(chosen: Any) -> tuple[int, int, int, str]:
    accepted = inspect.signature(chosen.forward).parameters
    reads = next((place for place, name in enumerate(_INPUTS) if name in accepted), len(_INPUTS))
    name = chosen.__name__
    end = next((place for place, end in enumerate(_ENDS) if name.endswith(end)), len(_ENDS))
    return (reads // 4, end + 3 * ("Head" in name or "With" in name), len(name), name)
