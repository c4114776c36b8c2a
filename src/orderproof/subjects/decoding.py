"""The decoder of an encoder-decoder, for measured laws: its tokens are asked about, the encoder's output is fixed.

Proofs are of the encoder alone. A decoder has what an encoder has not: a cache, and a mask that hides what is to come.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

from orderproof.errors import Unsupported
from orderproof.subjects.beside import COUNT, Beside
from orderproof.subjects.driven import PretrainedDriver
from orderproof.subjects.quieting import transformers_library
from orderproof.subjects.subject import Sample, seeded

WIDTHS = ("d_model", "hidden_size")


class Decoding(nn.Module):
    """An encoder-decoder called with the tokens of its decoder, beside a fixed output of its encoder."""

    seen: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        config = model.config
        parts = (config, getattr(config, "encoder", None))
        width = next(w for p in parts for n in WIDTHS if isinstance(w := getattr(p, n, None), int))
        self.register_buffer("seen", torch.randn((1, COUNT, width), generator=seeded(1)))
        accepted = inspect.signature(model.forward).parameters
        unread = accepted.get("input_ids")  # asked for by name in FSMT, though the encoder has run
        self.unread = unread is not None and unread.default is inspect.Parameter.empty
        self.named = {
            name: f"decoder_{name}" for name in ("input_ids", "attention_mask", "position_ids")
            if f"decoder_{name}" in accepted
        } | {name: name for name in ("past_key_values", "use_cache") if name in accepted}  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        """Its configuration, and what it says of backends, are those of the model."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)

    def forward(self, **given: Any) -> Any:
        """Call the model; arguments are named as those of a model that is a decoder alone."""
        from transformers.modeling_outputs import BaseModelOutput

        seen = self.seen.expand(len(given["input_ids"]), -1, -1)
        named = {self.named[name]: value for name, value in given.items()}
        if self.unread:
            named["input_ids"] = given["input_ids"]
        read = BaseModelOutput(last_hidden_state=seen)
        object.__setattr__(read, "router_logits", None)  # which NLLB-MoE passes on
        return self.model(encoder_outputs=read, **named)


class DecoderDriver(PretrainedDriver):
    """How the decoder of an encoder-decoder is called."""

    def __init__(self, model: Any, draw: Callable[[int, int], Sample], *, length: int, longest: int | None) -> None:
        decoding = Decoding(model).eval()
        beside = Beside((), model.config, model)
        super().__init__(
            decoding, "input_ids", draw, beside=beside, kind="causal_lm", length=length, longest=longest,
            first_position=0, pad=None, stretches=(), patches=None,
        )  # fmt: skip
        self.accepted = set(decoding.named)
        self.swallows = frozenset()

    def caches(self) -> tuple[str, ...]:
        """Its own alone: it holds what was read of the encoder too."""
        return ()

    def loaded(self, dtype: torch.dtype) -> Self:
        raise Unsupported("it is a part: what is saved is the whole model")


def has_decoder(config: Any) -> bool:
    """Whether transformers builds a whole encoder-decoder of text from a configuration."""
    transformers = transformers_library()
    mapping = transformers.AutoModelForSeq2SeqLM._model_mapping
    return bool(config.is_encoder_decoder) and type(config) in mapping and _base(config) is not None


def _base(config: Any) -> Any | None:
    mapping = transformers_library().AutoModel._model_mapping
    if type(config) not in mapping:
        return None
    found = mapping[type(config)]
    return found[0] if isinstance(found, (tuple, list)) else found


def decoder_of(
    config: Any, build: Callable[[Any], Any], draw: Callable[[int, int], Sample], *, length: int, longest: int | None
) -> DecoderDriver:
    """The driver of a decoder; `build` makes the whole model of the class it is given. Raises `Unsupported`."""
    chosen = _base(config)
    if chosen is None or "decoder_input_ids" not in inspect.signature(chosen.forward).parameters:
        raise Unsupported("transformers has no whole model with a decoder for this configuration")
    return DecoderDriver(build(chosen).eval(), draw, length=length, longest=longest)
