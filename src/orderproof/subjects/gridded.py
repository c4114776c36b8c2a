"""Image models that read a row of patches and, beside it, the grid they were cut from.

Their modelling files compute constants from the grid (position numbers, lengths, windows) by loops over its
values, which no graph can hold. So these constants are computed once, by the functions themselves, and given
back by the same functions ever after: the grid is part of the model, the patches are its input.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError
from orderproof.subjects.quieting import replaced, silence
from orderproof.subjects.subject import seeded

SIDE = 3  # [patches, or groups of patches that are merged] of the grid
GRIDS = ("grid_thw", "image_grid_thw", "patch_grid_thw", "spatial_shapes", "target_sizes")
ROWS = ("hidden_states", "pixel_values")
_CONSTANTS = "get_vision_"  # functions of a modelling file that give constants of the grid

Answers = dict[tuple[str, str], list[Any]]


def takes_grid(chosen: Any) -> bool:
    """Whether a class reads patches and their grid."""
    accepted = inspect.signature(chosen.forward).parameters
    return any(name in accepted for name in GRIDS) and "input_ids" not in accepted


class Gridded(nn.Module):
    """Such a model with its grid in it: patches in, whatever the model gives out."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.config = model.config
        accepted = inspect.signature(model.forward).parameters
        self.rows = next(name for name in ROWS if name in accepted)
        self.grid = next(name for name in GRIDS if name in accepted)
        self.merge = _number(model.config, ("spatial_merge_size", "merge_size"), 2)
        self.merges = "merge_sizes" in accepted
        side = SIDE * self.merge
        self.sides = (1, side, side)
        self.answers: Answers = {}
        self.shapes = [self._first_run()]
        self.patches = self.sides[1] * self.sides[2]

    def _first_run(self) -> tuple[int, ...]:
        """The shape of patches that the model takes; its constants are noted on the way."""
        device = next(self.model.parameters()).device
        failed: Exception | None = None
        for shape in self._shapes():
            self.answers = {}
            try:
                with torch.no_grad(), silence(), _noting(self.model, self.answers):
                    self._call(torch.randn(shape, generator=seeded(0)).to(device))
            except Exception as error:  # noqa: BLE001 - third-party code: anything may come, and another shape may do
                failed = failed or error
            else:
                return shape
        raise SubjectError(
            f"the model could not be called with patches and a grid: {type(failed).__name__}: {failed}"
        ) from failed

    def _shapes(self) -> Iterator[tuple[int, ...]]:
        """A row of patches, of one frame or more; or of small images."""
        channels = _number(self.config, ("in_channels", "num_channels", "in_chans"), 3)
        patch = _number(self.config, ("patch_size",), 14)
        frames = _number(self.config, ("temporal_patch_size", "patch_temporal"), 1)
        rows = self.sides[1] * self.sides[2]
        for count in dict.fromkeys((frames, 1, 2)):
            yield (rows, channels * count * patch * patch)
        yield (rows, channels, patch, patch)
        yield (2, rows, channels * patch * patch)
        yield (1, rows, channels, patch, patch)
        yield (1, channels, patch, patch * rows)
        yield (rows // self.merge**2, self.merge * patch, self.merge * patch, channels)

    def _call(self, patches: Tensor) -> Any:
        if self.grid == "spatial_shapes":  # a batch of rows, a mask, and height and width
            seen = torch.ones(patches.shape[:2], dtype=torch.int64)
            shapes = Shapes([list(self.sides[1:])] * len(patches))
            return self.model(pixel_values=patches, pixel_attention_mask=seen, spatial_shapes=shapes)
        sides = self.sides[1:] if self.grid == "target_sizes" else self.sides
        if len(patches) * self.merge**2 == self.sides[1] * self.sides[2]:  # each is a group of patches
            sides = (1, SIDE, SIDE)
        given = {self.rows: patches, self.grid: torch.tensor([sides])}
        if self.merges:
            given["merge_sizes"] = torch.tensor([self.merge])
        return self.model(**given)

    def forward(self, pixel_values: Tensor) -> Any:
        """Run the model on patches [patch, numbers in a patch]."""
        with _repeating(self.model, self.answers):
            return self._call(pixel_values)


def _number(config: Any, names: tuple[str, ...], otherwise: int) -> int:
    for name in names:
        value = getattr(config, name, None)
        value = value[-1] if isinstance(value, (list, tuple)) and value else value
        if isinstance(value, int):
            return value
    return otherwise


@contextmanager
def _noting(model: nn.Module, answers: Answers) -> Iterator[None]:
    """Note what the functions of the grid give."""

    def note(key: tuple[str, str], function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        given = function(*args, **options)
        answers.setdefault(key, []).append(_constant(given))
        return given

    with ExitStack() as stack:
        for key, function in _functions(model).items():
            stack.enter_context(replaced(sys.modules[key[0]], key[1], partial(note, key, function)))
        yield


@contextmanager
def _repeating(model: nn.Module, answers: Mapping[tuple[str, str], list[Any]]) -> Iterator[None]:
    """Let the functions of the grid give what they gave, call by call."""
    left = {key: iter(given) for key, given in answers.items()}

    def repeat(key: tuple[str, str], *_args: Any, **_options: Any) -> Any:
        return next(left[key])

    with ExitStack() as stack:
        for key in answers:
            stack.enter_context(replaced(sys.modules[key[0]], key[1], partial(repeat, key)))
        yield


def _functions(model: nn.Module) -> dict[tuple[str, str], Callable[..., Any]]:
    modules = {type(part).__module__ for part in model.modules()}
    return {
        (module, name): function
        for module in sorted(modules)
        if module.startswith("transformers.models.")
        for name, function in vars(sys.modules[module]).items()
        if name.startswith(_CONSTANTS) and callable(function)
    }


class Lengths:
    """Where sequences end in a row, readable while a graph is recorded; for the rest a tensor."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def __getitem__(self, place: slice) -> Lengths:
        return Lengths(self.values[place])

    def __sub__(self, other: Lengths) -> Lengths:
        return Lengths([one - two for one, two in zip(self.values, other.values, strict=True)])

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.tensor(self.values), name)

    def tolist(self) -> list[int]:
        """The numbers."""
        return list(self.values)


class Shapes:
    """Heights and widths of grids, readable likewise."""

    def __init__(self, values: list[list[int]]) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int, int]:
        """How many grids, and two."""
        return len(self.values), 2

    def __getitem__(self, place: int) -> Lengths:
        return Lengths(self.values[place])


def _constant(given: Any) -> Any:
    """What may be kept."""
    if isinstance(given, tuple):
        return tuple(_constant(part) for part in given)
    if isinstance(given, Tensor) and given.dtype == torch.int32 and given.dim() == 1:
        return Lengths(given.tolist())
    return given
