"""What a model wants beside its tokens: boxes, an image, the output of an encoder, a task.

These are fixed: drawn once from a seed, registered as buffers, and given in every call. The tokens stay the only input,
so every law is asked of the model *with these beside its tokens*, and the subject says so. What has a value for each
token (a box) is the same for all, so that no order enters through it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.subjects.shapes import CUT, pair, shapes_of
from orderproof.subjects.subject import seeded

COUNT = 5  # how many vectors a fixed sequence has: no usual number of tokens
BOX = (0.1, 0.2, 0.6, 0.7)  # left, top, right and bottom, as parts of a page


@dataclass(frozen=True)
class Recipe:
    """How an argument is made, and in which words it is told of."""

    make: Callable[[Any, nn.Module], Tensor | int]  # configuration and model -> the value of one row of a batch
    words: str
    for_each_token: bool = False


class Beside(nn.Module):
    """Fixed arguments of a model, by name."""

    def __init__(self, names: Sequence[str], config: Any, model: nn.Module) -> None:
        super().__init__()
        self.names = tuple(names)
        self.counts: dict[str, int] = {}
        self.written: dict[str, list[Any]] = {}  # whole numbers, which a recording may have to read
        self.first = _FIRST_ROW.get(str(config.model_type)) if "pixel_values" in self.names else None
        for name in self.names:
            value = RECIPES[name].make(config, model)
            if isinstance(value, int):
                self.counts[name] = value
            else:
                self.register_buffer(name, value)
                if not value.is_floating_point():
                    self.written[name] = value.tolist()

    @property
    def words(self) -> str:
        """`, beside a fixed image and the same box for every token`; nothing where nothing is fixed."""
        said = " and ".join(RECIPES[name].words for name in self.names)
        return f", beside {said}" if said else ""

    def forward(self, tokens: Tensor) -> dict[str, Tensor | int]:
        """The arguments for a batch of tokens [batch, token, ...] or of images."""
        made: dict[str, Tensor | int] = dict(self.counts)
        for name, buffer in self.named_buffers():
            value = buffer
            if name in self.written and not value.is_meta:
                value = torch.tensor(self.written[name])
            shape = [tokens.shape[0], *value.shape[1:]]
            if RECIPES[name].for_each_token:
                shape[1] = tokens.shape[1]
            made[name] = value.expand(shape).clone()  # some models write into it
        return made

    def rows_of(self, outputs: dict[str, Tensor], tokens: Tensor) -> dict[str, Tensor]:
        """The outputs with the rows of the tokens alone, where a model puts those of an image beside them."""
        if self.first is None:
            return outputs
        end = self.first + tokens.shape[1]
        return {name: x[:, self.first : end] if x.dim() == 3 and x.shape[1] > end else x for name, x in outputs.items()}


def asked_for(error: BaseException, chosen: Any, given: Sequence[str]) -> str | None:
    """The argument that an error of a model asks for by its name, where there is a recipe for it."""
    accepted = inspect.signature(chosen.forward).parameters
    said = set(re.findall(r"\w+", str(error).lower()))
    return next((name for name in RECIPES if name in said and name in accepted and name not in given), None)


def always(config: Any) -> tuple[str, ...]:
    """What a model needs without saying so by name."""
    return _UNSAID.get(str(config.model_type), ())


def _number(config: Any, *names: str, otherwise: int) -> int:
    return next((value for name in names if isinstance(value := getattr(config, name, None), int)), otherwise)


def _vectors(*names: str) -> Callable[[Any, nn.Module], Tensor]:
    """A sequence of vectors, as wide as the first of these keys says."""

    def make(config: Any, _model: nn.Module) -> Tensor:
        width = _number(config, *names, "hidden_size", "d_model", otherwise=1)
        return torch.randn((1, COUNT, width), generator=seeded(1))

    return make


def _box(config: Any, _model: nn.Module) -> Tensor:
    return torch.tensor(BOX).view(1, 1, 4)


def _image(config: Any, _model: nn.Module) -> Tensor:
    films = getattr(config, "num_frames", None) is not None
    shape = next(shape for shape in shapes_of(config) if len(shape) == (5 if films else 4))
    return torch.randn((1, *shape[1:]), generator=seeded(1))


def _seen(config: Any, _model: nn.Module) -> Tensor:
    width = _number(getattr(config, "vision_config", config), "embed_dim", otherwise=1)
    return torch.randn((1, 1, COUNT, width), generator=seeded(1))


def _task(config: Any, _model: nn.Module) -> Tensor:
    return torch.arange(1, 1 + _number(config, "task_seq_len", otherwise=COUNT)).unsqueeze(0)


def _grid(_config: Any, _model: nn.Module) -> Tensor:
    place = torch.arange(CUT * CUT)
    return torch.stack((place % CUT, place // CUT), dim=-1).unsqueeze(0)


def _context(config: Any, model: nn.Module) -> Tensor:
    width: int = next(part for part in model.encoder.modules() if isinstance(part, nn.Linear)).in_features  # type: ignore[union-attr]
    return torch.randn((1, COUNT, width), generator=seeded(1))


def _delay(config: Any, _model: nn.Module) -> Tensor:
    """How long after the sound a word is written, as a vector for all tokens."""
    return torch.randn((1, 1, int(config.hidden_size)), generator=seeded(1))


def _noise(config: Any, _model: nn.Module) -> Tensor:
    """Noise for each patch of an image: those with the most are hidden."""
    height, width = pair(config.image_size)
    tall, wide = pair(config.patch_size)
    return torch.rand((1, (height // tall) * (width // wide)), generator=seeded(1))


RECIPES: dict[str, Recipe] = {
    "bbox": Recipe(_box, "the same box for every token", for_each_token=True),
    "pixel_values": Recipe(_image, "a fixed image"),
    "visual_feats": Recipe(_vectors("visual_feat_dim"), "fixed features of an image"),
    "visual_pos": Recipe(_vectors("visual_pos_dim"), "their fixed places"),
    "image_encoder_embeddings": Recipe(_seen, "a fixed encoding of an image"),
    "image_attention_mask": Recipe(lambda _c, _m: torch.ones(1, 1, 1), "each token seeing it", for_each_token=True),
    "encoder_hidden_states": Recipe(
        _vectors("encoder_hidden_size", "cross_attention_hidden_size"), "the fixed output of an encoder"
    ),
    "context_hidden_states": Recipe(_context, "fixed vectors of context"),
    "patch_embeds": Recipe(_vectors("hidden_size_global"), "the fixed vectors of patches"),
    "task_inputs": Recipe(_task, "a fixed task"),
    "aspect_ratio_ids": Recipe(lambda _c, _m: torch.ones(1, 1, dtype=torch.long), "one aspect ratio"),
    "pixel_position_ids": Recipe(_grid, "the places of its patches"),
    "aspect_ratio_mask": Recipe(
        lambda c, _m: torch.ones(1, 1, _number(c, "max_num_tiles", otherwise=1), dtype=torch.long), "all tiles in use"
    ),
    "t_cond": Recipe(_delay, "a fixed delay"),
    "noise": Recipe(_noise, "fixed noise that says which patches are hidden"),
    "patch_lengths": Recipe(lambda _c, _m: torch.tensor([[1, 2, 3, 2, 3]]), "fixed lengths of its patches"),
    "num_patches": Recipe(lambda _c, _m: COUNT, f"{COUNT} patches"),
    "patch_ids": Recipe(lambda _c, _m: torch.zeros(1, 1, dtype=torch.long), "the same one", for_each_token=True),
}
_UNSAID = {
    "blt": ("patch_lengths",),
    "blt_local_decoder": ("patch_embeds",),
    "blt_local_encoder": ("num_patches", "patch_ids"),
    "idefics": ("image_encoder_embeddings", "image_attention_mask"),
    "tvp": ("pixel_values",),
    "vit_mae": ("noise",),
    "voxtral_realtime_text": ("t_cond",),
}
_FIRST_ROW = {"vilt": 0, "tvp": 10}  # where the text is in an output that has rows for an image too
