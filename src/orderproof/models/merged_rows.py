"""Outputs with rows and tokens on one axis, as of `logits.view(-1, words)`: the audit sees them on two axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from orderproof.models.axes import CalledShapes
from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.recording.captured_graph import leaf_name, leaves_by_name


@dataclass(frozen=True)
class MergedAxis:
    """An axis that runs over the rows and over the entries of each; `rows_first`: those of one row are adjacent."""

    axis: int
    rows_first: bool = True

    def split(self, output: Tensor, rows: int) -> Tensor:
        """The output with an axis of rows, and after it one of their entries."""
        if self.rows_first:
            return torch.unflatten(output, self.axis, (rows, -1))
        return torch.unflatten(output, self.axis, (-1, rows)).movedim(self.axis + 1, self.axis)


class RowsSplit(PassesKeywordsOn):
    """A module whose outputs have the rows on an axis of their own, where the module has them on one with others."""

    def __init__(self, model: nn.Module, rows_of: tuple[int, int], merged: Mapping[str, MergedAxis]) -> None:
        """Split the outputs; ``rows_of`` is an input and its axis of rows, ``merged`` the axis of outputs by name."""
        super().__init__()
        self.model = model
        self.rows_of = rows_of
        self.merged = dict(merged)

    def _gives(self, name: str, place: int) -> bool:
        del name, place
        return False

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module, and split its outputs."""
        place, axis = self.rows_of
        rows = inputs[place].shape[axis]
        leaves, structure = pytree.tree_flatten_with_path(self.model(*inputs, **keywords))
        return pytree.tree_unflatten([self._split(leaf_name(path), leaf, rows) for path, leaf in leaves], structure)

    def _split(self, name: str, leaf: Any, rows: int) -> Any:
        return self.merged[name].split(leaf, rows) if name in self.merged else leaf


def with_split_rows(calls: ModuleCalls, call: Call, shapes: Mapping[str, CalledShapes]) -> bool:
    """Split the rows of outputs that have them on one axis with others; false if there are none."""
    axes = {name: axis for name, each in shapes.items() if (axis := each.merged_axis) is not None}
    rows_of = next(((k, axis) for k, axis in enumerate(call.examples.row_axes) if axis is not None), None)
    if not axes or rows_of is None:
        return False
    inputs = call.inputs()
    rows = inputs[rows_of[0]].shape[rows_of[1]]
    turned, changed = range(rows)[::-1], [*range(rows - 1), 0]  # the last row is the first one too
    first, second, third = (
        leaves_by_name(calls.outputs(_with_rows(call, inputs, places))) for places in (range(rows), turned, changed)
    )
    merged = {}
    for name, axis in axes.items():
        layouts = [MergedAxis(axis), MergedAxis(axis, rows_first=False)]
        fitting = [each for each in layouts if _moves_with_rows(each, first[name], second[name], rows)]
        change = (third[name].double() - first[name].double()).abs().nan_to_num()
        shares = [_share_of_others(each.split(change, rows), axis) for each in layouts]
        merged[name] = fitting[0] if fitting else layouts[shares.index(min(shares))]
    calls.wrap(RowsSplit(calls.module, rows_of, merged))
    return True


def _with_rows(call: Call, inputs: tuple[Tensor, ...], places: Sequence[int]) -> tuple[Tensor, ...]:
    axes = call.examples.row_axes
    chosen = torch.tensor(places)
    return tuple(x if d is None else x.index_select(d, chosen) for x, d in zip(inputs, axes, strict=True))


def _moves_with_rows(merged: MergedAxis, first: Tensor, second: Tensor, rows: int) -> bool:
    """True if the rows of the second output are those of the first in the opposite order."""
    return torch.allclose(merged.split(first, rows).flip(merged.axis), merged.split(second, rows), rtol=1e-3, atol=1e-5)


def _share_of_others(change: Tensor, axis: int) -> float:
    """How much of the change of an output is in other rows than the last one, whose tokens changed."""
    whole = float(change.sum())
    return 1 - float(change.select(axis, -1).sum()) / whole if whole else 0.0
