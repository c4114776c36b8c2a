"""Values that a search for a witness puts in the place of random ones: the pad token, and what decides a branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from orderproof.auditing.execution import LabelledInputs
from orderproof.models.subject import Axis


@dataclass(frozen=True)
class Replacement:
    """Values that take the place of the random ones of an input, in turn, in the first run, the second one or both."""

    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    place: int = 0
    label: str = ""

    def applied(self, first: LabelledInputs, second: LabelledInputs) -> tuple[LabelledInputs, LabelledInputs]:
        """The inputs of both runs with these values at every place."""
        return self._filled(first, self.first), self._filled(second, self.second)

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
