"""Image models: the tokens are the patches, so the input that counts is what the patch embedding gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError, UsageError
from orderproof.subjects.gridded import Gridded
from orderproof.subjects.quieting import silence
from orderproof.subjects.subject import Sample, labels, seeded

BATCH = 2
SIDES = (3, 5, 7, 11, 13)  # [patches] a side, in the order tried
PIXELS = ("pixel_values", "pixel_values_videos")  # arguments that take images or films
CHANNELS = ("num_channels", "in_channels", "in_chans")  # keys of configurations, the likeliest first
SIZES = ("image_size", "crop_size", "input_size")
PATCHES = ("patch_size", "patch_sizes", "patch_stride")
FRAMES = ("num_frames", "frames_per_clip")
CONVOLUTIONS = (nn.Conv2d, nn.Conv3d)


def small_image(config: Any, avoid: set[int]) -> int:
    """An image side [pixels] so small that there are few patches, their number being no other size."""
    patch = _pair(config.patch_size)[0]
    side = next((side for side in SIDES if side * side not in avoid and side * side + 1 not in avoid), SIDES[-1])
    return int(side * patch)


class NoTokens(SubjectError):
    """A model that reads no row of tokens, whatever its size."""


@dataclass(frozen=True)
class Reading:
    """How a model is given its tokens: the argument, how it is drawn, and for images where tokens are made."""

    argument: str
    draw: Callable[[int, int], Sample]
    cut: str | None = None
    patches: int | None = None


class Rows(nn.Module):
    """A patch embedding whose patches stand in one row: [batch, token, width]."""

    def __init__(self, patches: nn.Module) -> None:
        super().__init__()
        self.patches = patches

    def forward(self, pixels: Tensor) -> Tensor:
        """The patches of an image, row by row."""
        rows: Tensor = self.patches(pixels).flatten(2)
        return rows.transpose(1, 2)


class Split(nn.Module):
    """A patch embedding in two steps, so that the graph can be cut between them: a row of patches, then their grid.

    Most models flatten the grid at once; a grid of one column is then the same to them, and keeps the row in sight.
    """

    def __init__(self, patches: nn.Module, grid: tuple[int, ...]) -> None:
        super().__init__()
        self.rows = Rows(patches)
        self.grid = grid
        self.weight = patches.weight  # models read its dtype

    def forward(self, pixels: Tensor) -> Tensor:
        """What the patch embedding gives: [batch, width, height, width of the grid]."""
        grid: Tensor = self.rows(pixels).transpose(1, 2).unflatten(2, self.grid)
        return grid


class OneRow(nn.Module):
    """A patch embedding that gives [patch, width], as a batch of one: [batch, token, width]."""

    def __init__(self, patches: nn.Module) -> None:
        super().__init__()
        self.patches = patches

    def forward(self, *pixels: Any, **options: Any) -> Tensor:
        """The patches of an image."""
        row: Tensor = self.patches(*pixels, **options).flatten(1).unsqueeze(0)
        return row


class Unbatched(nn.Module):
    """The same in two steps, so that the graph can be cut between them."""

    def __init__(self, patches: nn.Module, rank: int) -> None:
        super().__init__()
        self.rows = OneRow(patches)
        self.rank = rank
        if isinstance(weight := getattr(patches, "weight", None), nn.Parameter):
            self.weight = weight  # models read its dtype

    def forward(self, *pixels: Any, **options: Any) -> Tensor:
        """What the patch embedding gives: [patch, width], or as many images of one patch."""
        row: Tensor = self.rows(*pixels, **options).squeeze(0)
        return row[(...,) + (None,) * (self.rank - 2)]


@dataclass(frozen=True)
class Call:
    """One call of a submodule, and the tensor it gave."""

    path: str
    part: nn.Module
    out: Tensor


def read_images(name: str, model: Any, device: str, *, own: bool = True) -> Reading:
    """Draw pixel values for an image model, and find the submodule that turns them into tokens."""
    argument = argument_of(model)
    shape, calls = _first_run(name, model, argument, device)
    run = partial(_run, model, argument, _drawn(shape, device))
    cut, patches = find_cut(name, model, calls, images=shape[0], own=own, run=run)
    return Reading(argument, Pixels(name, shape, patches, device).draw, f"model.{cut}", patches)


def argument_of(model: Any) -> str:
    """The argument that takes the pixels."""
    accepted = inspect.signature(model.forward).parameters
    return next((key for key in PIXELS if key in accepted), PIXELS[0])


def shapes_of(config: Any) -> Iterator[tuple[int, ...]]:
    """Shapes of pixel values that a configuration may mean: an image, or some frames of a film."""
    channels = next((value for key in CHANNELS if isinstance(value := getattr(config, key, None), int)), 3)
    sizes = [_pair(value) for key in SIZES if (value := getattr(config, key, None))]
    patch = next((_pair(value)[-1] for key in PATCHES if (value := getattr(config, key, None))), 8)
    for height, width in sizes or ((SIDES[0] * patch,) * 2, (64, 64)):
        yield (BATCH, channels, height, width)
    frames = next((value for key in FRAMES if isinstance(value := getattr(config, key, None), int)), 2)
    for height, width in sizes:
        yield (BATCH, frames, channels, height, width)


def _first_run(name: str, model: Any, argument: str, device: str) -> tuple[tuple[int, ...], list[Call]]:
    """The first shape of pixel values that the model takes, and what its submodules gave.

    A model that puts the patches of several images in one row gets one image.
    """
    failed: Exception | None = None
    for shape in model.shapes if isinstance(model, Gridded) else shapes_of(model.config):
        try:
            calls = _traced(model, argument, _drawn(shape, device))
            if calls[-1].out.shape[0] != 1 or isinstance(model, Gridded):
                return shape, calls
            single = (1, *shape[1:])
            return single, _traced(model, argument, _drawn(single, device))
        except Exception as error:  # noqa: BLE001 - third-party code: anything may come, and another shape may do
            failed = failed or error
    raise SubjectError(
        f"{name}: the model could not be called with an image: {type(failed).__name__}: {failed}"
    ) from failed


def _traced(model: Any, argument: str, pixels: Tensor) -> list[Call]:
    calls: list[Call] = []
    paths = {part: path for path, part in model.named_modules()}

    def note(part: nn.Module, _inputs: Any, out: Any) -> None:
        first = out[0] if isinstance(out, tuple) and out else getattr(out, "last_hidden_state", out)
        if isinstance(first, Tensor):
            calls.append(Call(paths[part], part, first))

    handles = [part.register_forward_hook(note) for part in paths]
    try:
        _run(model, argument, pixels)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _run(model: Any, argument: str, pixels: Tensor) -> Any:
    with torch.no_grad(), silence():
        return model(**{argument: pixels})


def _drawn(shape: tuple[int, ...], device: str) -> Tensor:
    if device == "meta":
        return torch.empty(shape, device="meta")
    return torch.randn(shape, generator=seeded(0))


def find_cut(
    name: str, model: Any, calls: list[Call], *, images: int, own: bool, run: Callable[[], Any]
) -> tuple[str, int]:
    """The path of the patch embedding, and how many tokens it gives; one that gives a grid is split in two."""
    if isinstance(model, Gridded):
        return _find_row(name, model, calls)
    leaf = next((c for c in calls if isinstance(c.part, CONVOLUTIONS) and c.out.dim() in (4, 5)), None)
    for found in calls:
        rows = found.out.dim() == 3 and found.out.shape[0] == images and found.out.shape[1] > 1
        makes = "patch" in found.path and any(True for _ in found.part.parameters()) and not _has_table(found)
        if rows and (makes or _is_rearranged(found, leaf)):
            return found.path, int(found.out.shape[1])
    if own and leaf is not None and leaf.out.shape[0] == images and _is_cut_into_patches(leaf.part):
        before = run()
        grid = tuple(leaf.out.shape[2:])
        tokens = leaf.out[0, 0].numel()
        split = Split(leaf.part, (tokens,) + (1,) * (len(grid) - 1))
        parent, _, last = leaf.path.rpartition(".")
        setattr(model.get_submodule(parent), last, split)
        if not _same(before, run):
            split.grid = grid
        return f"{leaf.path}.rows", tokens
    raise NoTokens(
        f"{name}: {type(model).__name__} has no patch embedding that gives [batch, token, width]; "
        "wrap the part after it in a module of yours and give example inputs"
    )


def _find_row(name: str, model: Gridded, calls: list[Call]) -> tuple[str, int]:
    """Where a model that reads a row of patches embeds them."""
    patches = model.patches
    for found in calls:
        last = found.path.rpartition(".")[2]
        makes = "patch" in last or isinstance(found.part, CONVOLUTIONS)
        if makes and found.out.dim() == 3 and found.out.shape[1] == patches:
            return found.path, patches
        if makes and found.out.shape[0] == patches and found.out[0].numel() == found.out.shape[1]:
            parent, _, last = found.path.rpartition(".")
            setattr(model.get_submodule(parent), last, Unbatched(found.part, found.out.dim()))
            return f"{found.path}.rows", patches
    raise NoTokens(f"{name}: {type(model.model).__name__} has no patch embedding that gives [batch, token, width]")


def _is_rearranged(found: Call, leaf: Call | None) -> bool:
    """Whether a submodule gives the very numbers that the convolution in it gave, its patches in a row."""
    if leaf is None or found.out.is_meta or found.out.numel() != leaf.out.numel():
        return False
    return torch.equal(found.out, leaf.out.flatten(2).transpose(1, 2))


def _has_table(found: Call) -> bool:
    """Whether a submodule holds a table with a row a token: then it has added positions already."""
    tokens = int(found.out.shape[1])
    return any(size in (tokens, tokens + 1) for tensor in _tensors(found.part) for size in tensor.shape)


def _tensors(part: nn.Module) -> Iterator[Tensor]:
    yield from part.parameters()
    yield from part.buffers()


def _is_cut_into_patches(part: Any) -> bool:
    return tuple(part.kernel_size) == tuple(part.stride) and max(part.kernel_size) > 1


def _same(before: Any, run: Callable[[], Any]) -> bool:
    """Whether a model gives what it gave before; on meta it can only be seen to give the same shapes."""
    try:
        after = run()
    except Exception:  # noqa: BLE001 - third-party code: anything may come
        return False
    pairs = [(before[key], after[key]) for key in before if isinstance(before[key], Tensor)]
    return bool(pairs) and all(x.shape == y.shape and (x.is_meta or torch.equal(x, y)) for x, y in pairs)


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
    return (int(value[0]), int(value[-1])) if isinstance(value, (list, tuple)) else (int(value), int(value))
