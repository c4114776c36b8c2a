"""The decoder of an encoder-decoder, for measured laws: called with tokens and a fixed output of the encoder.

Proofs cover the encoder only. The decoder has a cache and a causal mask, which the encoder has not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from orderproof.errors import UnsupportedCallError
from orderproof.models.hf.adapter import HFAdapter
from orderproof.models.hf.describe import describe
from orderproof.models.hf.export_patches import transformers_library
from orderproof.models.hf.extra_inputs import SEQUENCE_LENGTH, ExtraInputs
from orderproof.models.input_spec import InputSpec
from orderproof.models.sample import Sample, seeded_generator

WIDTH_KEYS = ("d_model", "hidden_size")


class DecoderWithFixedEncoder(nn.Module):
    """An encoder-decoder called with the tokens of its decoder and a fixed output of its encoder."""

    encoder_states: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        config = model.config
        parts = (config, getattr(config, "encoder", None))
        width = next(w for p in parts for n in WIDTH_KEYS if isinstance(w := getattr(p, n, None), int))
        states = torch.randn((1, SEQUENCE_LENGTH, width), generator=seeded_generator(1)).to(model.dtype)
        self.register_buffer("encoder_states", states)
        accepted = inspect.signature(model.forward).parameters
        encoder_ids = accepted.get("input_ids")  # required by FSMT, although the encoder has run
        self.needs_input_ids = encoder_ids is not None and encoder_ids.default is inspect.Parameter.empty
        self.argument_names = {
            name: f"decoder_{name}" for name in ("input_ids", "attention_mask", "position_ids")
            if f"decoder_{name}" in accepted
        } | {name: name for name in ("past_key_values", "use_cache") if name in accepted}  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        """Forward other attributes (configuration, attention backends) to the model."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)

    def forward(self, **arguments: Any) -> Any:
        """Call the model; arguments have the names that they have in a decoder-only model."""
        from transformers.modeling_outputs import BaseModelOutput

        states = self.encoder_states.expand(len(arguments["input_ids"]), -1, -1)
        renamed = {self.argument_names[name]: value for name, value in arguments.items()}
        if self.needs_input_ids:
            renamed["input_ids"] = arguments["input_ids"]
        encoder_outputs = BaseModelOutput(last_hidden_state=states)
        object.__setattr__(encoder_outputs, "router_logits", None)  # NLLB-MoE reads it
        return self.model(encoder_outputs=encoder_outputs, **renamed)


class DecoderAdapter(HFAdapter):
    """The decoder of an encoder-decoder, called with a fixed output of its encoder."""

    usual_sides = frozenset()  # a row starts with one token, not with a prompt of its own length

    def __init__(
        self, model: Any, draw: Callable[[int, int], Sample], *, length: int, max_positions: int | None
    ) -> None:
        decoder = DecoderWithFixedEncoder(model).eval()
        description = describe(decoder, model_kind="causal_lm")
        description = replace(
            description, forward_arguments=frozenset(decoder.argument_names), accepts_kwargs=False, context_spans={},
            first_position_id=0, pad_token_id=None,
            has_positions=max_positions is not None or description.has_positions,
        )  # fmt: skip
        super().__init__(
            decoder, description, InputSpec("input_ids", draw), ExtraInputs((), model.config, model),
            length=length, max_positions=max_positions,
        )  # fmt: skip

    def cache_kinds(self) -> tuple[str, ...]:
        """None: its own cache also holds the keys of the encoder."""
        return ()

    def generation_caches(self) -> tuple[str, ...]:
        """None: only models of one stack generate here."""
        return ()

    def reload_methods(self) -> Mapping[str, Callable[[], Self]]:
        """Copied only: the whole model is saved and built."""
        return {"copied": super().reload_methods()["copied"]}

    def loaded_in(self, dtype: torch.dtype) -> Self:
        raise UnsupportedCallError("it is a component: the whole model is saved")


def has_text_decoder(config: Any) -> bool:
    """True if transformers builds an encoder-decoder of text from a configuration."""
    transformers = transformers_library()
    mapping = transformers.AutoModelForSeq2SeqLM._model_mapping
    return bool(config.is_encoder_decoder) and type(config) in mapping and base_model_class(config) is not None


def base_model_class(config: Any) -> Any | None:
    """The base class of a configuration, with encoder and decoder if it has both; None if transformers has none."""
    mapping = transformers_library().AutoModel._model_mapping
    if type(config) not in mapping:
        return None
    chosen = mapping[type(config)]
    return chosen[0] if isinstance(chosen, (tuple, list)) else chosen


def build_decoder_adapter(
    config: Any,
    build: Callable[[Any], Any],
    draw: Callable[[int, int], Sample],
    *,
    length: int,
    max_positions: int | None,
) -> DecoderAdapter:
    """The adapter of a decoder; ``build`` builds the whole model from its class. Raises `UnsupportedCallError`."""
    chosen = base_model_class(config)
    if chosen is None or "decoder_input_ids" not in inspect.signature(chosen.forward).parameters:
        raise UnsupportedCallError("transformers has no encoder-decoder class for this configuration")
    return DecoderAdapter(build(chosen).eval(), draw, length=length, max_positions=max_positions)
