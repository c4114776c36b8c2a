"""The kind of a transformers model: vision, causal language model or encoder.

The configuration states it for some models. For the others it is inferred from the class name, the source of its masks
or a list of model types.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from orderproof.models.hf.class_source import class_source
from orderproof.models.vision.patch_embedding import FLATTENED_PATCHES, PIXEL_ARGUMENTS
from orderproof.models.vision.patch_grid import takes_patch_grid

# causal language models by their auto class that mask nothing unless their configuration says so
BIDIRECTIONAL_CAUSAL_LMS = {"xlnet", "bert-generation", "blip_text_model", "cpmant"}
_CROSS_ATTENTION_MASK = re.compile(r"create_bidirectional_mask\([^()]*encoder_hidden_states=[^()]*\)")


def infer_model_kind(config: Any, model: Any, *, encoder: bool = False) -> tuple[str, str]:
    """The kind "vision", "causal_lm" or "encoder", and what it was inferred from if nothing states it.

    ``encoder``: the model is the encoder taken out of an encoder-decoder.
    """
    from transformers.models.auto import modeling_auto

    name = type(model).__name__
    if is_vision_model(type(model)):
        return "vision", ""
    if config.is_encoder_decoder and (encoder or "Encoder" in name):
        return "encoder", "" if encoder else f"the class name {name}"
    builds_causal_mask = source_builds_causal_mask(model) if config.is_encoder_decoder else None
    if builds_causal_mask is False:
        return "encoder", f"the source of {name}"
    if getattr(config, "use_bidirectional_attention", None) is True or getattr(config, "is_causal", True) is False:
        return "encoder", ""
    if config.model_type in BIDIRECTIONAL_CAUSAL_LMS:
        return "encoder", f"a list of model types ({config.model_type})"
    generating = {
        *modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        *modeling_auto.MODEL_FOR_CAUSAL_IMAGE_MODELING_MAPPING_NAMES,
    }
    masked = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if (config.model_type in generating and not masked) or getattr(config, "is_decoder", False):
        return "causal_lm", ""
    if builds_causal_mask or source_builds_causal_mask(model):
        return "causal_lm", f"the source of {name}"
    return "encoder", "" if masked else f"the source of {name}"


def source_builds_causal_mask(model: Any) -> bool:
    """True if the class that masks the tokens of a model builds a causal mask.

    That is the outermost class that builds any mask: encoders of other inputs within it (proteins, images) build their
    own. A mask for the output of an encoder does not mask its tokens.
    """
    sources = ""
    for part in model.modules():
        classes = [each for each in type(part).__mro__ if "transformers.models" in each.__module__]
        source = _CROSS_ATTENTION_MASK.sub("", "".join(map(class_source, classes)))
        sources += source
        causal = re.search(r"(causal|recurrent_attention)_mask\(", source) is not None
        if causal or "bidirectional_mask(" in source:
            return causal and not any(sign in source for sign in ("bidirectional_mask(", "block_sequence_ids="))
    return "self.is_causal = True" in sources


def is_vision_model(model_class: Any) -> bool:
    """True if a class takes pixels, and no text."""
    accepted = inspect.signature(model_class.forward).parameters
    pixels = getattr(model_class, "main_input_name", None) in PIXEL_ARGUMENTS or any(
        name in accepted for name in (*PIXEL_ARGUMENTS, FLATTENED_PATCHES)
    )
    return (pixels or takes_patch_grid(model_class)) and "input_ids" not in accepted
