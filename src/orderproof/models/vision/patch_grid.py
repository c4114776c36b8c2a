"""Image models that read a sequence of patches and the grid that they come from.

Their modelling files compute constants from the grid (position ids, lengths, windows) by loops over its values, which
cannot be traced. The functions compute these constants once, and return the recorded values in every later call: the
grid becomes part of the model, the patches are its input.
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
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.export_patches import patch_attribute
from orderproof.models.sample import seeded_generator

GRID_SIDE = 3  # [patches or merged groups of patches]
GRID_ARGUMENTS = ("grid_thw", "image_grid_thw", "patch_grid_thw", "spatial_shapes", "target_sizes")
PATCH_ARGUMENTS = ("hidden_states", "pixel_values")
_GRID_FUNCTION_PREFIX = "get_vision_"  # functions of a modelling file that compute constants of the grid

RecordedCalls = dict[tuple[str, str], list[Any]]


def takes_patch_grid(chosen: Any) -> bool:
    """True if a class reads patches and their grid, and no text."""
    accepted = inspect.signature(chosen.forward).parameters
    return any(name in accepted for name in GRID_ARGUMENTS) and "input_ids" not in accepted


class FixedGridModel(nn.Module):
    """Such a model with a fixed grid, called with patches alone."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.config = model.config
        accepted = inspect.signature(model.forward).parameters
        self.patch_argument = next(name for name in PATCH_ARGUMENTS if name in accepted)
        self.grid_argument = next(name for name in GRID_ARGUMENTS if name in accepted)
        self.merge = _config_int(model.config, ("spatial_merge_size", "merge_size"), 2)
        self.takes_merge_sizes = "merge_sizes" in accepted
        side = GRID_SIDE * self.merge
        self.grid_shape = (1, side, side)
        self.recorded_calls: RecordedCalls = {}
        self.shapes = [self._find_input_shape()]
        self.patch_count = self.grid_shape[1] * self.grid_shape[2]

    def _find_input_shape(self) -> tuple[int, ...]:
        """The first shape of patches that the model takes; records the constants of its grid."""
        device = next(self.model.parameters()).device
        failed: Exception | None = None
        for shape in self._candidate_shapes():
            self.recorded_calls = {}
            try:
                with torch.no_grad(), suppress_warnings(), _record_grid_calls(self.model, self.recorded_calls):
                    self._call(torch.randn(shape, generator=seeded_generator(0)).to(device))
            except Exception as error:  # noqa: BLE001 - third-party code: anything may come, and another shape may do
                failed = failed or error
            else:
                return shape
        raise SubjectError(
            f"the model could not be called with patches and a grid: {type(failed).__name__}: {failed}"
        ) from failed

    def _candidate_shapes(self) -> Iterator[tuple[int, ...]]:
        """Shapes to try: flat patches of one or more frames, then small images."""
        channels = _config_int(self.config, ("in_channels", "num_channels", "in_chans"), 3)
        patch = _config_int(self.config, ("patch_size",), 14)
        frames = _config_int(self.config, ("temporal_patch_size", "patch_temporal"), 1)
        rows = self.grid_shape[1] * self.grid_shape[2]
        for count in dict.fromkeys((frames, 1, 2)):
            yield (rows, channels * count * patch * patch)
        yield (rows, channels, patch, patch)
        yield (2, rows, channels * patch * patch)
        yield (1, rows, channels, patch, patch)
        yield (1, channels, patch, patch * rows)
        yield (rows // self.merge**2, self.merge * patch, self.merge * patch, channels)

    def _call(self, patches: Tensor) -> Any:
        if self.grid_argument == "spatial_shapes":  # takes a batch, a mask, and heights and widths
            mask = torch.ones(patches.shape[:2], dtype=torch.int64)
            shapes = TraceableShapes([list(self.grid_shape[1:])] * len(patches))
            return self.model(pixel_values=patches, pixel_attention_mask=mask, spatial_shapes=shapes)
        sides = self.grid_shape[1:] if self.grid_argument == "target_sizes" else self.grid_shape
        if len(patches) * self.merge**2 == self.grid_shape[1] * self.grid_shape[2]:  # merged groups of patches
            sides = (1, GRID_SIDE, GRID_SIDE)
        arguments = {self.patch_argument: patches, self.grid_argument: torch.tensor([sides])}
        if self.takes_merge_sizes:
            arguments["merge_sizes"] = torch.tensor([self.merge])
        return self.model(**arguments)

    def forward(self, pixel_values: Tensor) -> Any:
        """Run the model on patches [patch, feature], or in another shape of `_candidate_shapes`."""
        with _replay_grid_calls(self.recorded_calls):
            return self._call(pixel_values)


def _config_int(config: Any, names: tuple[str, ...], default: int) -> int:
    for name in names:
        value = getattr(config, name, None)
        value = value[-1] if isinstance(value, (list, tuple)) and value else value
        if isinstance(value, int):
            return value
    return default


@contextmanager
def _record_grid_calls(model: nn.Module, calls: RecordedCalls) -> Iterator[None]:
    """Record the results of the functions of the grid."""

    def record(key: tuple[str, str], function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        calls.setdefault(key, []).append(_as_traceable(result))
        return result

    with ExitStack() as stack:
        for key, function in _grid_functions(model).items():
            stack.enter_context(patch_attribute(sys.modules[key[0]], key[1], partial(record, key, function)))
        yield


@contextmanager
def _replay_grid_calls(calls: Mapping[tuple[str, str], list[Any]]) -> Iterator[None]:
    """Let the functions of the grid return their recorded results, call by call."""
    remaining = {key: iter(results) for key, results in calls.items()}

    def replay(key: tuple[str, str], *_args: Any, **_options: Any) -> Any:
        return next(remaining[key])

    with ExitStack() as stack:
        for key in calls:
            stack.enter_context(patch_attribute(sys.modules[key[0]], key[1], partial(replay, key)))
        yield


def _grid_functions(model: nn.Module) -> dict[tuple[str, str], Callable[..., Any]]:
    modules = {type(part).__module__ for part in model.modules()}
    return {
        (module, name): function
        for module in sorted(modules)
        if module.startswith("transformers.models.")
        for name, function in vars(sys.modules[module]).items()
        if name.startswith(_GRID_FUNCTION_PREFIX) and callable(function)
    }


class TraceableLengths:
    """Cumulative lengths of packed sequences: readable during tracing, otherwise a tensor."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def __getitem__(self, index: slice) -> TraceableLengths:
        return TraceableLengths(self.values[index])

    def __sub__(self, other: TraceableLengths) -> TraceableLengths:
        return TraceableLengths([one - two for one, two in zip(self.values, other.values, strict=True)])

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.tensor(self.values), name)

    def tolist(self) -> list[int]:
        """The lengths as a list."""
        return list(self.values)


class TraceableShapes:
    """Heights and widths of grids, readable during tracing."""

    def __init__(self, values: list[list[int]]) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int, int]:
        """(number of grids, 2)."""
        return len(self.values), 2

    def __getitem__(self, index: int) -> TraceableLengths:
        return TraceableLengths(self.values[index])


def _as_traceable(result: Any) -> Any:
    """A result with its vectors of lengths (int32) readable during tracing."""
    if isinstance(result, tuple):
        return tuple(_as_traceable(part) for part in result)
    if isinstance(result, Tensor) and result.dtype == torch.int32 and result.dim() == 1:
        return TraceableLengths(result.tolist())
    return result
