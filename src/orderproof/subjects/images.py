"""Image models: the tokens are the patches, so the input that counts is what the patch embedding gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import SubjectError, UsageError
from orderproof.subjects.subject import Sample, labels, seeded

BATCH = 2
SIDES = (3, 5, 7, 11, 13)  # [patches] a side, in the order tried


def small_image(config: Any, avoid: set[int]) -> int:
    """An image side [pixels] so small that there are few patches, their number being no other size."""
    patch = _pair(config.patch_size)[0]
    side = next((side for side in SIDES if side * side not in avoid and side * side + 1 not in avoid), SIDES[-1])
    return int(side * patch)


@dataclass(frozen=True)
class Reading:
    """How a model is given its tokens: the argument, how it is drawn, and for images where tokens are made."""

    argument: str
    draw: Callable[[int, int], Sample]
    cut: str | None = None
    patches: int | None = None


def read_images(name: str, model: Any, device: str) -> Reading:
    """Draw pixel values for an image model, and find the submodule that turns them into tokens."""
    height, width = _pair(model.config.image_size)
    shape = (BATCH, int(getattr(model.config, "num_channels", 3)), height, width)
    cut, patches = find_cut(name, model, shape)
    return Reading("pixel_values", Pixels(name, shape, patches, device).draw, cut, patches)


def find_cut(name: str, model: Any, shape: tuple[int, ...]) -> tuple[str, int]:
    """The path of the patch embedding inside the subject's module, and how many tokens it gives."""
    for path, part in model.named_modules():
        if not path.endswith("patch_embeddings") and not path.endswith("patch_embedding"):
            continue
        with torch.no_grad():
            device = next(part.parameters()).device
            out = part(torch.zeros(shape, device=device))
        if isinstance(out, Tensor) and out.dim() == 3:
            return f"model.{path}", int(out.shape[1])
    raise SubjectError(
        f"{name}: {type(model).__name__} has no patch embedding that gives [batch, token, width]; "
        "wrap the part after it in a module of yours and give example inputs"
    )


@dataclass(frozen=True)
class Pixels:
    """Random images; their number of tokens is fixed by their size."""

    name: str
    shape: tuple[int, ...]
    patches: int
    device: str

    def draw(self, length: int, seed: int) -> Sample:
        """Random pixel values."""
        if length != self.patches:
            raise UsageError(
                f"{self.name}: an image has {self.patches} patches, so length must be {self.patches}; got {length}"
            )
        if self.device == "meta":
            return Sample((torch.empty(self.shape, device="meta"),), labels(length))
        return Sample((torch.randn(self.shape, generator=seeded(seed)),), labels(length))


def _pair(value: Any) -> tuple[int, int]:
    return (int(value[0]), int(value[1])) if isinstance(value, (list, tuple)) else (int(value), int(value))
