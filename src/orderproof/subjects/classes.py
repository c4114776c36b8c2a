"""The class that is built from a configuration, where no auto mapping of transformers names one.

A part of a composite model (the text model of CLIP, the decoder of TrOCR) has a configuration of its own and
often a class of its own, in the modelling file beside it.
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from typing import Any

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
_ENDS = ("Model", "Encoder", "Transformer", "Backbone", "ForCausalLM", "Decoder")


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
