"""Plain modules that take an image: the output of a patch embedding is the input of proofs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError
from orderproof.models.process_state import preserved_settings
from orderproof.models.sample import BATCH_SIZE, seeded_generator
from orderproof.models.subject import Subject, count_parameters
from orderproof.models.trial_call import check_trial_call
from orderproof.models.vision.patch_embedding import (
    ImageSampler,
    SubmoduleCall,
    is_only_path,
    record_submodule_calls,
)
from orderproof.subject_spec import TOKEN_AXIS_OPTION

PATCHES = 3  # dimensions of an output [row, patch, width]
SAME = 1e-5  # the difference of equal patches that rounding explains


def is_image(tensors: tuple[Tensor, ...]) -> bool:
    """True for one input [row, channel, height, width]."""
    return len(tensors) == 1 and tensors[0].dim() == 4 and tensors[0].is_floating_point()


def image_subject(module: nn.Module, image: Tensor, name: str) -> Subject:
    """The subject of a module that turns an image into patches.

    Raises:
        SubjectError: It cannot be called, or no part of it returns the patches [row, patch, width] of the image,
            through which alone the image reaches the output.

    """
    shape = (max(int(image.shape[0]), BATCH_SIZE), *image.shape[1:])
    mean, deviation = float(image.mean()), float(image.std()) if image.numel() > 1 else 1.0

    def draw(seed: int = 0) -> Tensor:
        return torch.randn(shape, generator=seeded_generator(seed)).to(image.dtype) * (deviation or 1.0) + mean

    def sample(_shape: Any = None, seed: int = 0) -> Tensor:
        return draw(seed)

    check_trial_call(name, module, lambda: module(draw()))
    with preserved_settings(name), torch.no_grad():
        try:
            found = _patches(module, draw)
        except Exception as error:
            raise SubjectError(f"{name}: calling it with {shape} raised {type(error).__name__}: {error}") from error
    if found is None:
        raise SubjectError(
            f"{name}: no token axis found in inputs of shape {tuple(image.shape)}; name it with "
            f"{TOKEN_AXIS_OPTION}, or give a module whose part returns patches [row, patch, width]"
        )
    count = int(found.out.shape[1])
    return Subject(
        name=name, model_kind="module", module=module, token_axes=(None,), parameter_count=count_parameters(module),
        layer_count=None, default_length=count, max_length=count, device="cpu",
        draw=ImageSampler(name, shape, count, sample).draw, patch_embedding_path=found.path,
        load_summary=f"{str(image.dtype).removeprefix('torch.')}, as given",
        notes=(f"the tokens are the {count} patches that {found.path} returns",),
    )  # fmt: skip


def _patches(module: nn.Module, draw: Any) -> SubmoduleCall | None:
    """The first call of a part that returns patches, and is the only path of the image.

    Patches of an image of one colour are equal: no position has been added to them, and no other entry.
    """
    pixels = draw()
    plain = record_submodule_calls(module, module, pixels[..., :1, :1].expand(pixels.shape).contiguous())
    for call, of_one_colour in zip(record_submodule_calls(module, module, pixels), plain, strict=False):
        out = of_one_colour.out
        fits = call.path and out.dim() == PATCHES and out.shape[0] == pixels.shape[0] and out.shape[1] > 1
        if not fits or call.path != of_one_colour.path or call.out.shape != out.shape:
            continue
        if torch.allclose(out, out[:, :1].expand(out.shape), rtol=SAME, atol=SAME) and is_only_path(
            call.part, module, draw
        ):
            return call
    return None
