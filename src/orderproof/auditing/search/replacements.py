"""Values that a search for a witness puts in the place of random ones: pads, ids that a model looks for, large ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.auditing.record.execution import LabelledInputs
from orderproof.models.subject import Axis
from orderproof.recording.captured_graph import CapturedGraph, ancestors

MOST_COMPARED_VALUES = 6
LARGE = 300.0  # times random numbers: both signs are among them, and scores stay below every mask
# The last and the first integers for which a comparison with `k` has another result, less `k`.
AROUND = {"eq": (0,), "ne": (0,), "isin": (0,), "lt": (-1, 0), "ge": (-1, 0), "le": (0, 1), "gt": (0, 1)}


@dataclass(frozen=True)
class Replacement:
    """Values that take the place of the random ones of an input, in turn, in the first run, the second one or both.

    Without such values, the random numbers of the second run are multiplied by `times`.
    """

    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    place: int = 0
    label: str = ""
    times: float = 1.0

    def applied(self, first: LabelledInputs, second: LabelledInputs) -> tuple[LabelledInputs, LabelledInputs]:
        """The inputs of both runs with these values at every place."""
        return self._filled(first, self.first), self._scaled(self._filled(second, self.second))

    def _scaled(self, inputs: LabelledInputs) -> LabelledInputs:
        if self.times == 1:
            return inputs
        tensors = tuple(x * self.times if k == self.place else x for k, x in enumerate(inputs.inputs))
        return LabelledInputs(tensors, (self.label,) * len(inputs.labels) if self.place == 0 else inputs.labels)

    def _filled(self, inputs: LabelledInputs, values: tuple[int, ...]) -> LabelledInputs:
        if not values:
            return inputs
        old = inputs.inputs[self.place]
        new = torch.tensor(values).to(old.dtype)[torch.arange(old.numel()) % len(values)].view(old.shape)
        labels = tuple(self.label or f"<{values[k % len(values)]}>" for k in range(len(inputs.labels)))
        tensors = (*inputs.inputs[: self.place], new, *inputs.inputs[self.place + 1 :])
        return LabelledInputs(tensors, labels if self.place == 0 else inputs.labels)


def pad_tokens(tokens: Tensor, pad: int | None) -> Iterator[Replacement]:
    """The pad token in the second run: its id, or the zero vector that embedding tables have for it."""
    if tokens.is_floating_point() or pad is not None:
        yield Replacement(second=(0 if tokens.is_floating_point() else pad or 0,), label="<pad>")


def large_numbers(tokens: Tensor) -> Iterator[Replacement]:
    """Numbers next to which those of the first run are small: the largest of a row, and the least, are among them."""
    if tokens.is_floating_point():
        yield Replacement(label="<large>", times=LARGE)


def values_of_branches(values: Sequence[int], sample: Sequence[Tensor], axes: Sequence[Axis]) -> Iterator[Replacement]:
    """Runs that take different branches: with some of the values that decide them, and without.

    `sample` are random inputs, and `axes` the token axes of those that differ between the runs.
    """
    for place, (tensor, axis) in enumerate(zip(sample, axes, strict=True)):
        if axis is None or tensor.is_floating_point():
            continue
        others = [(int(x),) for x in tensor.flatten() if int(x) not in values][:1]
        chosen = (some for size in range(1, len(values) + 1) for some in combinations(values, size))
        sets = [(), *others, *chosen]
        yield from (Replacement(a, b, place) for a in sets for b in sets if a != b)


def compared_values(captured: CapturedGraph) -> tuple[int, ...]:
    """The integers that a graph compares its integer inputs with, on both sides of each comparison."""
    found: dict[int, None] = {}
    from_inputs = {node for node in captured.inputs if _is_integer(node)}
    for node in captured.graph.nodes:
        if from_inputs.isdisjoint(node.all_input_nodes):
            continue
        if _is_integer(node):
            from_inputs.add(node)
        around = AROUND.get(str(node.target).removeprefix("aten.").partition(".")[0], ())
        for other in node.args[1:2] if around else ():
            found.update(dict.fromkeys(value + step for value in _integers(captured, other) for step in around))
    return tuple(found)[:MOST_COMPARED_VALUES]


def _is_integer(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and not (value.is_floating_point() or value.is_complex())


def _integers(captured: CapturedGraph, argument: object) -> Iterator[int]:
    """An argument of a comparison, or the few integers in the stored tensors that it is made of."""
    if isinstance(argument, int):
        yield argument
    for node in ancestors([argument]) if isinstance(argument, Node) else ():
        stored = captured.values.get(captured.state.get(node.name, ""))
        if stored is not None and stored.numel() <= MOST_COMPARED_VALUES and _is_integer(node):
            yield from map(int, stored.flatten().tolist())


def rare_values(
    values: Sequence[int], first: Sequence[Tensor], second: Sequence[Tensor], axes: Sequence[Axis]
) -> Iterator[Replacement]:
    """Runs with values that random inputs hardly have: in the second run, and between others in the first.

    `first` and `second` are the random inputs of both runs, and `axes` the token axes of those that differ between
    the runs. Inputs that are equal in both are no tokens: position ids, for example.
    """
    for place, (tensor, other, axis) in enumerate(zip(first, second, axes, strict=True)):
        if axis is None or tensor.is_floating_point() or torch.equal(tensor, other):
            continue
        others = [int(x) for x in tensor.flatten()[:2]]
        for value in values:
            yield Replacement(second=(value,), place=place)
            yield Replacement(first=(value, *others), place=place)
