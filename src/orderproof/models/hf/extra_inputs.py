"""Inputs that a model requires in addition to its tokens: boxes, an image, the output of an encoder, a task.

They are fixed: drawn once from a seed, registered as buffers and passed in every call. The tokens stay the only input,
so every law is checked for the model *with these extra inputs*, and the load summary names them. An extra input with a
value per token (a box) is the same for all tokens, so that no order enters through it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.models.sample import seeded_generator
from orderproof.models.vision.image_shapes import PACKED_GRID_SIDE, candidate_image_shapes, height_width

SEQUENCE_LENGTH = 5  # of a fixed sequence; differs from every default number of tokens
BOX = (0.1, 0.2, 0.6, 0.7)  # left, top, right and bottom, as parts of a page


@dataclass(frozen=True)
class ExtraInput:
    """The builder of the value of an argument, and its description for the load summary."""

    build: Callable[[Any, nn.Module], Tensor | int]  # (config, model) -> the value for a batch of one
    description: str
    per_token: bool = False


class ExtraInputs(nn.Module):
    """Fixed arguments of a model by name."""

    def __init__(self, names: Sequence[str], config: Any, model: nn.Module) -> None:
        super().__init__()
        self.names = tuple(names)
        self.integer_inputs: dict[str, int] = {}
        self.integer_values: dict[str, list[Any]] = {}  # integer tensors as lists: constants in the graph
        self.text_start = _TEXT_START.get(str(config.model_type)) if "pixel_values" in self.names else None
        for name in self.names:
            value = EXTRA_INPUTS[name].build(config, model)
            if isinstance(value, int):
                self.integer_inputs[name] = value
            else:
                self.register_buffer(name, value)
                if not value.is_floating_point():
                    self.integer_values[name] = value.tolist()

    @property
    def summary(self) -> str:
        """`, with a fixed image and the same box for every token`; empty without extra inputs."""
        descriptions = " and ".join(EXTRA_INPUTS[name].description for name in self.names)
        return f", with {descriptions}" if descriptions else ""

    def forward(self, tokens: Tensor) -> dict[str, Tensor | int]:
        """The arguments for a batch of tokens [batch, token, ...] or of images."""
        arguments: dict[str, Tensor | int] = dict(self.integer_inputs)
        for name, buffer in self.named_buffers():
            value = buffer
            if name in self.integer_values and not value.is_meta:
                value = torch.tensor(self.integer_values[name])
            shape = [tokens.shape[0], *value.shape[1:]]
            if EXTRA_INPUTS[name].per_token:
                shape[1] = tokens.shape[1]
            arguments[name] = value.expand(shape).clone()  # some models write into it
        return arguments

    def text_outputs(self, outputs: dict[str, Tensor], tokens: Tensor) -> dict[str, Tensor]:
        """The outputs of the tokens, if a model concatenates the outputs of an image to them."""
        if self.text_start is None:
            return outputs
        start, end = self.text_start, self.text_start + tokens.shape[1]
        return {name: x[:, start:end] if x.dim() == 3 and x.shape[1] > end else x for name, x in outputs.items()}


def input_named_in_error(error: BaseException, model: Any, known: Sequence[str]) -> str | None:
    """The argument of a model that its error names, if it is in `EXTRA_INPUTS` and not in ``known``."""
    accepted = inspect.signature(model.forward).parameters
    words = set(re.findall(r"\w+", str(error).lower()))
    return next((name for name in EXTRA_INPUTS if name in words and name in accepted and name not in known), None)


def required_inputs(config: Any) -> tuple[str, ...]:
    """Extra inputs that a model requires although its errors do not name them."""
    return _REQUIRED_BY_MODEL_TYPE.get(str(config.model_type), ())


def _config_int(config: Any, *names: str, default: int) -> int:
    return next((value for name in names if isinstance(value := getattr(config, name, None), int)), default)


def _embedding_sequence(*names: str) -> Callable[[Any, nn.Module], Tensor]:
    """A sequence of vectors whose width is the first of these configuration keys."""

    def build(config: Any, _model: nn.Module) -> Tensor:
        width = _config_int(config, *names, "hidden_size", "d_model", default=1)
        return torch.randn((1, SEQUENCE_LENGTH, width), generator=seeded_generator(1))

    return build


def _box(config: Any, _model: nn.Module) -> Tensor:
    return torch.tensor(BOX).view(1, 1, 4)


def _image(config: Any, _model: nn.Module) -> Tensor:
    is_video = getattr(config, "num_frames", None) is not None
    shape = next(shape for shape in candidate_image_shapes(config) if len(shape) == (5 if is_video else 4))
    return torch.randn((1, *shape[1:]), generator=seeded_generator(1))


def _image_embeddings(config: Any, _model: nn.Module) -> Tensor:
    width = _config_int(getattr(config, "vision_config", config), "embed_dim", default=1)
    return torch.randn((1, 1, SEQUENCE_LENGTH, width), generator=seeded_generator(1))


def _task_ids(config: Any, _model: nn.Module) -> Tensor:
    return torch.arange(1, 1 + _config_int(config, "task_seq_len", default=SEQUENCE_LENGTH)).unsqueeze(0)


def _patch_positions(_config: Any, _model: nn.Module) -> Tensor:
    index = torch.arange(PACKED_GRID_SIDE * PACKED_GRID_SIDE)
    return torch.stack((index % PACKED_GRID_SIDE, index // PACKED_GRID_SIDE), dim=-1).unsqueeze(0)


def _context(config: Any, model: nn.Module) -> Tensor:
    width: int = next(part for part in model.encoder.modules() if isinstance(part, nn.Linear)).in_features  # type: ignore[union-attr]
    return torch.randn((1, SEQUENCE_LENGTH, width), generator=seeded_generator(1))


def _delay_embedding(config: Any, _model: nn.Module) -> Tensor:
    """The delay between sound and text, as one vector for all tokens."""
    return torch.randn((1, 1, int(config.hidden_size)), generator=seeded_generator(1))


def _masking_noise(config: Any, _model: nn.Module) -> Tensor:
    """Noise for each patch of an image; the patches with the largest values are masked."""
    height, width = height_width(config.image_size)
    tall, wide = height_width(config.patch_size)
    return torch.rand((1, (height // tall) * (width // wide)), generator=seeded_generator(1))


EXTRA_INPUTS: dict[str, ExtraInput] = {
    "bbox": ExtraInput(_box, "the same box for every token", per_token=True),
    "pixel_values": ExtraInput(_image, "a fixed image"),
    "visual_feats": ExtraInput(_embedding_sequence("visual_feat_dim"), "fixed features of an image"),
    "visual_pos": ExtraInput(_embedding_sequence("visual_pos_dim"), "their fixed positions"),
    "image_encoder_embeddings": ExtraInput(_image_embeddings, "a fixed encoding of an image"),
    "image_attention_mask": ExtraInput(lambda _c, _m: torch.ones(1, 1, 1), "visible to each token", per_token=True),
    "encoder_hidden_states": ExtraInput(
        _embedding_sequence("encoder_hidden_size", "cross_attention_hidden_size"), "the fixed output of an encoder"
    ),
    "context_hidden_states": ExtraInput(_context, "fixed vectors of context"),
    "patch_embeds": ExtraInput(_embedding_sequence("hidden_size_global"), "the fixed vectors of patches"),
    "task_inputs": ExtraInput(_task_ids, "a fixed task"),
    "aspect_ratio_ids": ExtraInput(lambda _c, _m: torch.ones(1, 1, dtype=torch.long), "one aspect ratio"),
    "pixel_position_ids": ExtraInput(_patch_positions, "the positions of its patches"),
    "aspect_ratio_mask": ExtraInput(
        lambda c, _m: torch.ones(1, 1, _config_int(c, "max_num_tiles", default=1), dtype=torch.long),
        "all tiles in use",
    ),
    "t_cond": ExtraInput(_delay_embedding, "a fixed delay"),
    "noise": ExtraInput(_masking_noise, "fixed noise that selects the masked patches"),
    "patch_lengths": ExtraInput(lambda _c, _m: torch.tensor([[1, 2, 3, 2, 3]]), "fixed lengths of its patches"),
    "num_patches": ExtraInput(lambda _c, _m: SEQUENCE_LENGTH, f"{SEQUENCE_LENGTH} patches"),
    "patch_ids": ExtraInput(lambda _c, _m: torch.zeros(1, 1, dtype=torch.long), "the same patch id", per_token=True),
}
_REQUIRED_BY_MODEL_TYPE = {
    "blt": ("patch_lengths",),
    "blt_local_decoder": ("patch_embeds",),
    "blt_local_encoder": ("num_patches", "patch_ids"),
    "idefics": ("image_encoder_embeddings", "image_attention_mask"),
    "tvp": ("pixel_values",),
    "vit_mae": ("noise",),
    "voxtral_realtime_text": ("t_cond",),
}
_TEXT_START = {"vilt": 0, "tvp": 10}  # start of the text in outputs that also contain an image
