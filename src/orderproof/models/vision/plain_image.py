"""Plain modules that take an image: the output of a patch embedding is the input of proofs, or the image itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter, ModelOutput, copy_sharing_parameters
from orderproof.errors import SubjectError, UnsupportedCallError
from orderproof.models.process_state import preserved_settings
from orderproof.models.sample import BATCH_SIZE, Sample, seeded_generator
from orderproof.models.subject import Subject, count_parameters
from orderproof.models.trial_call import check_trial_call
from orderproof.models.vision.patch_embedding import (
    CONVOLUTIONS,
    ImageSampler,
    install_two_step,
    is_only_path,
    is_patch_convolution,
    output_tensors,
    record_submodule_calls,
)
from orderproof.subject_spec import TOKEN_AXIS_OPTION

PATCHES, GRID = 3, 4  # dimensions of an output [row, patch, width], or [row, width, height, width]
PLANES_OF_IMAGES = (1, 3)  # grey, or colours; other inputs of four dimensions may have tokens
WHOLE_ROWS_REASON = (
    "no part of it returns the patches [row, patch, width] of the image, through which alone the image reaches the "
    f"output, so only laws of whole rows of the batch apply; {TOKEN_AXIS_OPTION} names another token axis"
)
SAME = 1e-5  # the difference of equal patches that rounding explains


def is_image(tensors: tuple[Tensor, ...]) -> bool:
    """True for one input [row, channel, height, width]."""
    return len(tensors) == 1 and tensors[0].dim() == 4 and tensors[0].is_floating_point()


def image_subject(module: nn.Module, image: Tensor, name: str) -> Subject:
    """The subject of a module that takes an image.

    Its tokens are the patches [row, patch, width] that a part of it returns, through which alone the image reaches the
    output, or that a convolution makes whose output the forward flattens. Without such a part only laws of whole rows
    apply.

    Raises:
        SubjectError: It cannot be called, or it has no such part and the input may be something else than an image.

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
            found = _patches(module, draw) or _patches_in_two_steps(module, draw)
        except Exception as error:
            raise SubjectError(f"{name}: calling it with {shape} raised {type(error).__name__}: {error}") from error
    planes = shape[1]
    if found is None and planes not in PLANES_OF_IMAGES:
        raise SubjectError(
            f"{name}: no token axis found in inputs of shape {tuple(image.shape)}; name it with "
            f"{TOKEN_AXIS_OPTION}, or give a module whose part returns patches [row, patch, width]"
        )
    whole = Subject(
        name=name, model_kind="module", module=module, token_axes=(1,), parameter_count=count_parameters(module),
        layer_count=None, default_length=planes, max_length=planes, device="cpu",
        draw=lambda _length, seed: Sample((draw(seed),), tuple(f"plane {k}" for k in range(planes))),
        load_summary=f"{str(image.dtype).removeprefix('torch.')}, as given", whole_rows_reason=WHOLE_ROWS_REASON,
        notes=(WHOLE_ROWS_REASON,), build_adapter=lambda: ImageAdapter(module, draw),
    )  # fmt: skip
    if found is None:
        return whole
    count = int(found.out.shape[1])
    return replace(
        whole, module=found.module, token_axes=(None,), default_length=count, max_length=count,
        draw=ImageSampler(name, shape, count, sample).draw, patch_embedding_path=found.path, whole_rows_reason="",
        notes=(f"the tokens are the {count} patches that {found.path.removesuffix('.rows')} returns",),
    )  # fmt: skip


class ImageAdapter(ModelAdapter):
    """Calls of a module with one image."""

    has_token_axis = False
    output_name = "output"

    def __init__(self, module: nn.Module, draw: Callable[[int], Tensor]) -> None:
        self.module, self._draw = module, draw

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        """Random images [row, plane, height, width]."""
        del tokens
        drawn: list[Tensor] = []
        while sum(map(len, drawn)) < rows:
            drawn.append(self._draw(seed + 1000 * len(drawn)))
        return torch.cat(drawn)[:rows]

    def call(self, tokens: Tensor, **_: Any) -> ModelOutput:
        """The first tensor in the output."""
        tensors = output_tensors(self.module(tokens))
        if not tensors:
            raise UnsupportedCallError("expected a tensor in its output")
        return ModelOutput(tensors[0])


class _Patches(NamedTuple):
    """Patches [row, patch, width], and the part of a module that returns them."""

    module: nn.Module
    path: str
    out: Tensor


def _patches(module: nn.Module, draw: Any) -> _Patches | None:
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
            return _Patches(module, call.path, call.out)
    return None


def _patches_in_two_steps(module: nn.Module, draw: Any) -> _Patches | None:
    """The patches that a convolution makes as a grid, in a copy of the module that makes a sequence of them first."""
    pixels = draw()
    copied = copy_sharing_parameters(module)
    calls = record_submodule_calls(copied, copied, pixels)
    parts = (c for c in calls if isinstance(c.part, CONVOLUTIONS) and c.out.dim() == GRID and c.path)
    grid = next((c for c in parts if is_patch_convolution(c.part) and c.out[0, 0].numel() > 1), None)
    if grid is None or len(grid.out) != len(pixels):
        return None
    path, _, _ = install_two_step(copied, grid, 1, lambda: copied(pixels))
    if not is_only_path(copied.get_submodule(path), copied, draw):
        return None
    return _Patches(copied, path, grid.out.flatten(2).transpose(1, 2))
