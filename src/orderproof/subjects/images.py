"""Image models: the tokens are the patches, so the input that counts is what the patch embedding gives."""

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
from orderproof.subjects.gridded import Gridded
from orderproof.subjects.quieting import silence
from orderproof.subjects.shapes import shapes_of
from orderproof.subjects.splitting import Split, Unbatched
from orderproof.subjects.subject import Sample, labels, seeded

PIXELS = ("pixel_values", "pixel_values_videos")  # arguments that take images or films
PATCHES = "flattened_patches"  # one that takes a row of patches, each behind its row and its column
OTHERS = (PATCHES, "hidden_states", "input")  # what a few image models call theirs
CONVOLUTIONS = (nn.Conv2d, nn.Conv3d)

Beside = Callable[[Tensor], Mapping[str, Any]]  # what a model is given beside its pixels


def nothing(_pixels: Tensor) -> Mapping[str, Any]:
    """Nothing beside the pixels."""
    return {}


class NoTokens(SubjectError):
    """A model that reads no row of tokens, whatever its size."""


@dataclass(frozen=True)
class Reading:
    """How a model is given its tokens: the argument, how it is drawn, and for images where tokens are made."""

    argument: str
    draw: Callable[[int, int], Sample]
    cut: str | None = None
    patches: int | None = None
    words: str = ""


@dataclass(frozen=True)
class Call:
    """One call of a submodule, and the tensor it gave."""

    path: str
    part: nn.Module
    out: Tensor


def read_images(
    name: str, model: Any, device: str, *, own: bool = True, beside: Beside = nothing, like: str | None = None
) -> Reading:
    """Draw pixel values for an image model, and find the submodule that turns them into tokens.

    ``like``: where it is in a twin, whose values could be looked at.
    """
    argument = argument_of(model)
    call = partial(_run, model, argument, beside)
    draw = partial(_drawn, argument=argument, device=device)
    shape, calls = _first_run(name, model, call, draw)

    def carried(path: str) -> bool:
        fine = device == "meta" or isinstance(model, Gridded)
        return fine or carries_all(model.get_submodule(path), call, partial(draw, shape))

    run = partial(call, draw(shape))
    find = partial(find_cut, name, model, calls, images=shape[0], own=own, run=run, like=like)
    cut, patches, words = find()
    fine, first = carried(cut), _first_convolution(calls, None)
    if not fine and own and first is not None and not cut.endswith(".rows"):
        cut, patches, words = find(like=f"{first.path}.rows")
        fine = carried(cut)
    if not fine:
        raise NoTokens(f"{name}: the image reaches the output of {type(model).__name__} not by way of {cut} alone")
    return Reading(argument, Pixels(name, shape, patches, draw).draw, f"model.{cut}", patches, words)


def argument_of(model: Any) -> str:
    """The argument that takes the pixels."""
    accepted = inspect.signature(model.forward).parameters
    return next((key for key in (*PIXELS, *OTHERS) if key in accepted), PIXELS[0])


def _first_run(
    name: str, model: Any, call: Callable[[Tensor], Any], draw: Callable[..., Tensor]
) -> tuple[tuple[int, ...], list[Call]]:
    """The first shape of pixel values that the model takes, and what its submodules gave.

    A model that puts the patches of several images in one row gets one image.
    """
    failed: Exception | None = None
    for shape in model.shapes if isinstance(model, Gridded) else shapes_of(model.config):
        try:
            calls = _traced(model, call, draw(shape))
            if calls[-1].out.shape[0] != 1 or isinstance(model, Gridded):
                return shape, calls
            single = (1, *shape[1:])
            return single, _traced(model, call, draw(single))
        except Exception as error:  # noqa: BLE001 - third-party code: anything may come, and another shape may do
            failed = failed or error
    raise SubjectError(
        f"{name}: the model could not be called with an image: {type(failed).__name__}: {failed}"
    ) from failed


def _traced(model: Any, call: Callable[[Tensor], Any], pixels: Tensor) -> list[Call]:
    calls: list[Call] = []
    paths = {part: path for path, part in model.named_modules()}

    def note(part: nn.Module, _inputs: Any, out: Any) -> None:
        first = out[0] if isinstance(out, tuple) and out else getattr(out, "last_hidden_state", out)
        if isinstance(first, Tensor):
            calls.append(Call(paths[part], part, first))

    handles = [part.register_forward_hook(note) for part in paths]
    try:
        call(pixels)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _run(model: Any, argument: str, beside: Beside, pixels: Tensor) -> Any:
    with torch.no_grad(), silence(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # some models draw a mask: the same in every call
        return model(**{argument: pixels}, **beside(pixels))


def _drawn(shape: tuple[int, ...], argument: str, device: str, seed: int = 0) -> Tensor:
    if device == "meta":
        return torch.empty(shape, device="meta")
    drawn = torch.randn(shape, generator=seeded(seed))
    if argument == PATCHES and len(shape) == 3:
        side = math.isqrt(shape[1])
        drawn[..., 0], drawn[..., 1] = (torch.arange(shape[1]) // side), (torch.arange(shape[1]) % side)
    return drawn


def find_cut(
    name: str, model: Any, calls: list[Call], *, images: int, own: bool, run: Callable[[], Any], like: str | None = None
) -> tuple[str, int, str]:
    """The path of the patch embedding, how many tokens it gives, and a word on what is unusual about them.

    One that gives a grid is split in two. Where there is none, the tokens are the places after the first convolution.
    """
    if isinstance(model, Gridded):
        return (*_find_row(name, model, calls), "")
    leaf = _first_convolution(calls, like)
    for found in calls:
        rows = found.out.dim() == 3 and found.out.shape[0] == images and found.out.shape[1] > 1
        makes = "patch" in found.path and any(True for _ in found.part.parameters()) and not _has_table(found)
        if rows and (found.path == like if like else makes or _is_rearranged(found, leaf)):
            return found.path, int(found.out.shape[1]), ""
    if own and leaf is not None and leaf.out.shape[0] % images == 0 and leaf.out[0, 0].numel() > 1:
        return _split(model, leaf, leaf.out.shape[0] // images, run)
    raise NoTokens(
        f"{name}: {type(model).__name__} has no patch embedding that gives [batch, token, width]; "
        "wrap the part after it in a module of yours and give example inputs"
    )


def _first_convolution(calls: list[Call], like: str | None) -> Call | None:
    """The first convolution, or the one that was split in a twin."""
    path = like.removesuffix(".rows") if like and like.endswith(".rows") else None
    found = (c for c in calls if isinstance(c.part, CONVOLUTIONS) and c.out.dim() in (4, 5))
    return next((c for c in found if path in (None, c.path)), None)


def _split(model: Any, leaf: Call, frames: int, run: Callable[[], Any]) -> tuple[str, int, str]:
    """Put a convolution that can be cut in two in the place of one; what `find_cut` gives."""
    grid = tuple(leaf.out.shape[2:])
    tokens = leaf.out[0, 0].numel()
    before = run()
    split = Split(leaf.part, (tokens,) + (1,) * (len(grid) - 1), frames)
    parent, _, last = leaf.path.rpartition(".")
    setattr(model.get_submodule(parent), last, split)
    patches = _is_cut_into_patches(leaf.part)
    if not patches or not _same(before, run):
        split.grid = grid
    places = " x ".join(str(side) for side in ((frames, *grid) if frames > 1 else grid))
    words = "" if patches else f", tokens: {places} places after the first convolution"
    return f"{leaf.path}.rows", frames * tokens, words


def carries_all(part: nn.Module, call: Callable[[Tensor], Any], draw: Callable[..., Tensor]) -> bool:
    """Whether all that an image does to the output goes through a part: with its output for another image, so the end.

    Where it is called more than once, or an image has another way, the rest of the image would be held fixed.
    """
    first, second = draw(seed=2), draw(seed=3)
    given: list[Any] = []
    handle = part.register_forward_hook(lambda _part, _inputs, out: given.append(out))
    try:
        expected = _leaves(call(second))
    finally:
        handle.remove()
    if len(given) != 1:
        return False
    handle = part.register_forward_hook(lambda _part, _inputs, _out: given[0])
    try:
        found = _leaves(call(first))
    finally:
        handle.remove()
    return len(found) == len(expected) and all(
        torch.equal(x.nan_to_num(), y.nan_to_num()) for x, y in zip(expected, found, strict=True)
    )


def _leaves(given: Any) -> list[Tensor]:
    """The tensors in an output."""
    if isinstance(given, Tensor):
        return [given]
    parts = given.values() if isinstance(given, Mapping) else given if isinstance(given, (tuple, list)) else ()
    return [leaf for part in parts for leaf in _leaves(part)]


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
        if isinstance(found.part, nn.Conv2d) and found.out.dim() == 4 and found.out[:, 0].numel() == patches:
            parent, _, last = found.path.rpartition(".")
            setattr(model.get_submodule(parent), last, Split(found.part, tuple(found.out.shape[2:])))
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
    pairs = list(zip(_leaves(before), _leaves(after), strict=True))
    return bool(pairs) and all(x.shape == y.shape and (x.is_meta or torch.equal(x, y)) for x, y in pairs)


@dataclass(frozen=True)
class Pixels:
    """Random images; their number of tokens is fixed by their size."""

    name: str
    shape: tuple[int, ...]
    patches: int
    drawn: Callable[..., Tensor]

    def draw(self, length: int, seed: int) -> Sample:
        """Random pixel values."""
        if length != self.patches:
            raise UsageError(
                f"{self.name}: an image has {self.patches} patches, so length must be {self.patches}; got {length}"
            )
        return Sample((self.drawn(self.shape, seed=seed),), labels(length))
