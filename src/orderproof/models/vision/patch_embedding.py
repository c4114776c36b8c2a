"""The patch embedding of an image model: the tokens are patches, so its output is the input of proofs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError, UsageError
from orderproof.library_messages import suppress_warnings
from orderproof.models.input_spec import InputSpec, NoTokenInputError
from orderproof.models.sample import Sample, seeded_generator, token_labels
from orderproof.models.vision.image_shapes import candidate_image_shapes
from orderproof.models.vision.patch_grid import FixedGridModel
from orderproof.models.vision.two_step_embedding import TwoStepPackedEmbedding, TwoStepPatchEmbedding
from orderproof.seeded_random import seeded_random

PIXEL_ARGUMENTS = ("pixel_values", "pixel_values_videos")  # arguments that take images or videos
FLATTENED_PATCHES = "flattened_patches"  # takes a sequence of patches, each preceded by its row and its column
OTHER_PIXEL_ARGUMENTS = (FLATTENED_PATCHES, "hidden_states", "input")  # other names of pixel_values
CONVOLUTIONS = (nn.Conv2d, nn.Conv3d)

ExtraInputsFn = Callable[[Tensor], Mapping[str, Any]]  # pixels -> further arguments of the model


def no_extra_inputs(_pixels: Tensor) -> Mapping[str, Any]:
    """No further arguments."""
    return {}


@dataclass(frozen=True)
class SubmoduleCall:
    """One call of a submodule, and its output."""

    path: str
    part: nn.Module
    out: Tensor


def image_input(
    name: str,
    model: Any,
    device: str,
    *,
    may_modify: bool = True,
    extra_inputs: ExtraInputsFn = no_extra_inputs,
    known_path: str | None = None,
) -> InputSpec:
    """Random pixel values for an image model, and the path of the submodule that turns them into tokens.

    With ``may_modify`` a convolution may be replaced by one in two steps. ``known_path`` is the path found in the tiny
    twin of a model on meta. Raises `SubjectError` or `NoTokenInputError`.
    """
    argument = pixel_argument(model)
    call = partial(_call_model, model, argument, extra_inputs)
    draw = partial(_sample_pixels, argument=argument, device=device)
    shape, calls = _find_input_shape(name, model, call, draw)

    def carries_the_image(path: str) -> bool:
        unchecked = device == "meta" or isinstance(model, FixedGridModel)
        return unchecked or is_only_path(model.get_submodule(path), call, partial(draw, shape))

    run = partial(call, draw(shape))
    find = partial(find_patch_embedding, name, model, calls, images=shape[0], may_modify=may_modify, run=run)
    path, patch_count, summary = find(known_path=known_path)
    complete, first = carries_the_image(path), _first_convolution(calls, None)
    if not complete and may_modify and first is not None and not path.endswith(".rows"):
        path, patch_count, summary = find(known_path=f"{first.path}.rows")
        complete = carries_the_image(path)
    if not complete:
        raise NoTokenInputError(
            f"{name}: the image reaches the output of {type(model).__name__} not by way of {path} alone"
        )
    return InputSpec(argument, ImageSampler(name, shape, patch_count, draw).draw, f"model.{path}", patch_count, summary)


def pixel_argument(model: Any) -> str:
    """The argument that takes the pixels."""
    accepted = inspect.signature(model.forward).parameters
    return next((key for key in (*PIXEL_ARGUMENTS, *OTHER_PIXEL_ARGUMENTS) if key in accepted), PIXEL_ARGUMENTS[0])


def _find_input_shape(
    name: str, model: Any, call: Callable[[Tensor], Any], draw: Callable[..., Tensor]
) -> tuple[tuple[int, ...], list[SubmoduleCall]]:
    """The first shape of pixel values that the model takes, and the outputs of its submodules.

    A model that packs the patches of several images into one sequence gets one image.
    """
    failed: Exception | None = None
    for shape in model.shapes if isinstance(model, FixedGridModel) else candidate_image_shapes(model.config):
        try:
            calls = record_submodule_calls(model, call, draw(shape))
            if calls[-1].out.shape[0] != 1 or isinstance(model, FixedGridModel):
                return shape, calls
            single = (1, *shape[1:])
            return single, record_submodule_calls(model, call, draw(single))
        except Exception as error:  # noqa: BLE001 - third-party code: anything may come, and another shape may do
            failed = failed or error
    raise SubjectError(
        f"{name}: the model could not be called with an image: {type(failed).__name__}: {failed}"
    ) from failed


def record_submodule_calls(model: Any, call: Callable[[Tensor], Any], pixels: Tensor) -> list[SubmoduleCall]:
    """The calls of submodules in a call with an image, in the order in which they return.

    A part that returns its input, as `nn.Identity`, computes nothing from which a proof could start.
    """
    calls: list[SubmoduleCall] = []
    paths = {part: path for path, part in model.named_modules()}

    def note(part: nn.Module, inputs: Any, out: Any) -> None:
        first = out[0] if isinstance(out, tuple) and out else getattr(out, "last_hidden_state", out)
        if isinstance(first, Tensor) and not any(first is given for given in inputs):
            calls.append(SubmoduleCall(paths[part], part, first))

    handles = [part.register_forward_hook(note) for part in paths]
    try:
        call(pixels)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _call_model(model: Any, argument: str, extra_inputs: ExtraInputsFn, pixels: Tensor) -> Any:
    with torch.no_grad(), suppress_warnings(), seeded_random(0):  # for models that draw a random mask
        return model(**{argument: pixels}, **extra_inputs(pixels))


def _sample_pixels(shape: tuple[int, ...], argument: str, device: str, seed: int = 0) -> Tensor:
    if device == "meta":
        return torch.empty(shape, device="meta")
    drawn = torch.randn(shape, generator=seeded_generator(seed))
    if argument == FLATTENED_PATCHES and len(shape) == 3:
        side = math.isqrt(shape[1])
        drawn[..., 0], drawn[..., 1] = (torch.arange(shape[1]) // side), (torch.arange(shape[1]) % side)
    return drawn


def find_patch_embedding(
    name: str,
    model: Any,
    calls: list[SubmoduleCall],
    *,
    images: int,
    may_modify: bool,
    run: Callable[[], Any],
    known_path: str | None = None,
) -> tuple[str, int, str]:
    """The path of the patch embedding, the number of its tokens, and a remark for the load summary.

    An embedding whose output is a grid is replaced by one in two steps. Without a patch embedding, the tokens are the
    positions after the first convolution.
    """
    if isinstance(model, FixedGridModel):
        return (*_find_packed_patch_embedding(name, model, calls), "")
    leaf = _first_convolution(calls, known_path)
    for call in calls:
        rows = call.out.dim() == 3 and call.out.shape[0] == images and call.out.shape[1] > 1
        embeds = "patch" in call.path and any(True for _ in call.part.parameters()) and not _has_position_table(call)
        if rows and (call.path == known_path if known_path else embeds or _is_flattened_convolution(call, leaf)):
            return call.path, int(call.out.shape[1]), ""
    if may_modify and leaf is not None and leaf.out.shape[0] % images == 0 and leaf.out[0, 0].numel() > 1:
        return install_two_step(model, leaf, leaf.out.shape[0] // images, run)
    raise NoTokenInputError(
        f"{name}: {type(model).__name__} has no patch embedding that gives [batch, token, width]; "
        "wrap the part after it in a module of yours and give example inputs"
    )


def _first_convolution(calls: list[SubmoduleCall], known_path: str | None) -> SubmoduleCall | None:
    """The first convolution, or the one that was replaced in the twin."""
    path = known_path.removesuffix(".rows") if known_path and known_path.endswith(".rows") else None
    convolutions = (c for c in calls if isinstance(c.part, CONVOLUTIONS) and c.out.dim() in (4, 5))
    return next((c for c in convolutions if path in (None, c.path)), None)


def install_two_step(model: Any, leaf: SubmoduleCall, frames: int, run: Callable[[], Any]) -> tuple[str, int, str]:
    """Replace a convolution by one in two steps; the result of `find_patch_embedding`."""
    grid = tuple(leaf.out.shape[2:])
    tokens = leaf.out[0, 0].numel()
    before = run()
    split = TwoStepPatchEmbedding(leaf.part, (tokens,) + (1,) * (len(grid) - 1), frames)
    parent, _, last = leaf.path.rpartition(".")
    setattr(model.get_submodule(parent), last, split)
    patches = is_patch_convolution(leaf.part)
    if not patches or not _same_output(before, run):
        split.grid = grid
    sides = " x ".join(str(side) for side in ((frames, *grid) if frames > 1 else grid))
    summary = "" if patches else f", tokens: {sides} positions after the first convolution"
    return f"{leaf.path}.rows", frames * tokens, summary


def is_only_path(part: nn.Module, call: Callable[[Tensor], Any], draw: Callable[..., Tensor]) -> bool:
    """True if the image reaches the output through this submodule only, called once.

    The submodule returns its output for another image: then the model must return its output for that image. Otherwise
    proofs from this submodule on would keep the rest of the image fixed.
    """
    first, second = draw(seed=2), draw(seed=3)
    outputs: list[Any] = []
    handle = part.register_forward_hook(lambda _part, _inputs, out: outputs.append(out))
    try:
        expected = output_tensors(call(second))
    finally:
        handle.remove()
    if len(outputs) != 1:
        return False
    handle = part.register_forward_hook(lambda _part, _inputs, _out: outputs[0])
    try:
        actual = output_tensors(call(first))
    finally:
        handle.remove()
    return len(actual) == len(expected) and all(
        torch.equal(x.nan_to_num(), y.nan_to_num()) for x, y in zip(expected, actual, strict=True)
    )


def output_tensors(output: Any) -> list[Tensor]:
    """The tensors in an output."""
    if isinstance(output, Tensor):
        return [output]
    parts = output.values() if isinstance(output, Mapping) else output if isinstance(output, (tuple, list)) else ()
    return [leaf for part in parts for leaf in output_tensors(part)]


def _find_packed_patch_embedding(name: str, model: FixedGridModel, calls: list[SubmoduleCall]) -> tuple[str, int]:
    """The path of the patch embedding of a model that reads a sequence of patches, and the number of patches."""
    patches = model.patch_count
    for call in calls:
        last = call.path.rpartition(".")[2]
        embeds = "patch" in last or isinstance(call.part, CONVOLUTIONS)
        if embeds and call.out.dim() == 3 and call.out.shape[1] == patches:
            return call.path, patches
        if embeds and call.out.shape[0] == patches and call.out[0].numel() == call.out.shape[1]:
            parent, _, last = call.path.rpartition(".")
            setattr(model.get_submodule(parent), last, TwoStepPackedEmbedding(call.part, call.out.dim()))
            return f"{call.path}.rows", patches
        if isinstance(call.part, nn.Conv2d) and call.out.dim() == 4 and call.out[:, 0].numel() == patches:
            parent, _, last = call.path.rpartition(".")
            setattr(model.get_submodule(parent), last, TwoStepPatchEmbedding(call.part, tuple(call.out.shape[2:])))
            return f"{call.path}.rows", patches
    raise NoTokenInputError(
        f"{name}: {type(model.model).__name__} has no patch embedding that gives [batch, token, width]"
    )


def _is_flattened_convolution(call: SubmoduleCall, leaf: SubmoduleCall | None) -> bool:
    """True if the output of a submodule is the flattened output of the convolution in it."""
    if leaf is None or call.out.is_meta or call.out.numel() != leaf.out.numel():
        return False
    return torch.equal(call.out, leaf.out.flatten(2).transpose(1, 2))


def _has_position_table(call: SubmoduleCall) -> bool:
    """True if a submodule has a tensor with a row per token, which suggests that it has added positions."""
    tokens = int(call.out.shape[1])
    return any(size in (tokens, tokens + 1) for tensor in _parameters_and_buffers(call.part) for size in tensor.shape)


def _parameters_and_buffers(part: nn.Module) -> Iterator[Tensor]:
    yield from part.parameters()
    yield from part.buffers()


def is_patch_convolution(part: Any) -> bool:
    """True for a convolution whose windows do not overlap."""
    return tuple(part.kernel_size) == tuple(part.stride) and max(part.kernel_size) > 1


def _same_output(before: Any, run: Callable[[], Any]) -> bool:
    """True if the output of a model is unchanged; on meta, if its shapes are."""
    try:
        after = run()
    except Exception:  # noqa: BLE001 - third-party code: anything may come
        return False
    pairs = list(zip(output_tensors(before), output_tensors(after), strict=True))
    return bool(pairs) and all(x.shape == y.shape and (x.is_meta or torch.equal(x, y)) for x, y in pairs)


@dataclass(frozen=True)
class ImageSampler:
    """Random images of one shape, which fixes the number of patches."""

    name: str
    shape: tuple[int, ...]
    patch_count: int
    sample_pixels: Callable[..., Tensor]

    def draw(self, length: int, seed: int) -> Sample:
        """Random pixel values."""
        if length != self.patch_count:
            raise UsageError(
                f"{self.name}: an image has {self.patch_count} patches, so length must be {self.patch_count}; "
                f"got {length}"
            )
        return Sample((self.sample_pixels(self.shape, seed=seed),), token_labels(length))
