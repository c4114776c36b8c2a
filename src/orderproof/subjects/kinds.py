"""Whether a transformers model reads an image, predicts the next token, or reads a whole text."""

from __future__ import annotations

import inspect
import re
from typing import Any

from orderproof.subjects.gridded import takes_grid
from orderproof.subjects.images import PATCHES, PIXELS

# causal LMs by name, but they mask nothing unless they are told to
BIDIRECTIONAL = {"xlnet", "bert-generation", "blip_text_model", "cpmant"}
_OF_ENCODER = re.compile(r"create_bidirectional_mask\([^()]*encoder_hidden_states=[^()]*\)")


def kind_of(config: Any, model: Any, *, encoder: bool = False) -> str:
    """Whether a model reads an image, predicts the next token, or reads a whole text.

    ``encoder``: it was taken out of an encoder-decoder as its encoder.
    """
    from transformers.models.auto import modeling_auto

    if reads_images(type(model)):
        return "vision"
    encoder = encoder or "Encoder" in type(model).__name__
    if config.is_encoder_decoder and (encoder or not makes_causal_masks(model)):
        return "encoder"
    if getattr(config, "use_bidirectional_attention", None) is True:
        return "encoder"
    if getattr(config, "is_causal", True) is False:
        return "encoder"
    bidirectional = {*modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, *BIDIRECTIONAL}
    generating = {
        *modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        *modeling_auto.MODEL_FOR_CAUSAL_IMAGE_MODELING_MAPPING_NAMES,
    }
    if config.model_type in BIDIRECTIONAL:
        return "encoder"
    causal = config.model_type in generating - bidirectional or getattr(config, "is_decoder", False)
    return "causal_lm" if causal or makes_causal_masks(model) else "encoder"


def makes_causal_masks(model: Any) -> bool:
    """Whether the class that masks the tokens of a model makes causal masks, whatever its configuration says.

    That is the outermost one that makes any: encoders of something else within it (of a protein, an image) make
    their own. A mask of what an encoder gave it is none of its tokens.
    """
    said = ""
    for part in model.modules():
        kinds = [kind for kind in type(part).__mro__ if "transformers.models" in kind.__module__]
        source = _OF_ENCODER.sub("", "".join(inspect.getsource(kind) for kind in kinds))
        said += source
        causal = re.search(r"(causal|recurrent_attention)_mask\(", source) is not None
        if causal or "bidirectional_mask(" in source:
            return causal and not any(sign in source for sign in ("bidirectional_mask(", "block_sequence_ids="))
    return "self.is_causal = True" in said


def reads_images(chosen: Any) -> bool:
    """Whether a class takes pixels, and no text."""
    accepted = inspect.signature(chosen.forward).parameters
    pixels = getattr(chosen, "main_input_name", None) in PIXELS or any(name in accepted for name in (*PIXELS, PATCHES))
    return (pixels or takes_grid(chosen)) and "input_ids" not in accepted
