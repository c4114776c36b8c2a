"""Drawing inputs like given ones: same type, same range, another number of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.subjects.subject import Sample, labels, seeded

Axes = tuple[int | None, ...]


@dataclass(frozen=True)
class Examples:
    """Example inputs of a module, and the axis of each that runs over tokens."""

    tensors: tuple[Tensor, ...]
    axes: Axes
    name: str  # of the subject, for messages

    @property
    def length(self) -> int:
        """How many tokens the examples have."""
        return next(tensor.shape[axis] for tensor, axis in self._pairs if axis is not None)

    @property
    def single_row(self) -> bool:
        """Whether every input with tokens has a batch of one before them."""
        rows = [tensor.shape[0] for tensor, axis in self._pairs if axis]
        return bool(rows) and all(size == 1 for size in rows) and 0 not in self.axes

    @property
    def other_sizes(self) -> set[int]:
        """Every size of an axis that does not run over tokens."""
        return {size for tensor, axis in self._pairs for place, size in enumerate(tensor.shape) if place != axis}

    @property
    def _pairs(self) -> list[tuple[Tensor, int | None]]:
        return list(zip(self.tensors, self.axes, strict=True))

    def draw(self, batch: int | None, length: int, seed: int) -> Sample:
        """Fresh values for every input that has a token axis; the others as they are.

        A batch of one becomes ``batch`` rows. Constants stay constant, except for the first input with
        tokens, which is what varies, and counts 0, 1, 2, ... along the tokens (position ids) go on counting.
        """
        generator = seeded(seed)
        first = next(place for place, axis in enumerate(self.axes) if axis is not None)
        inputs = []
        for place, (tensor, axis) in enumerate(self._pairs):
            if axis is None:
                inputs.append(self._kept(tensor, place, length))
                continue
            shape = list(tensor.shape)
            shape[axis] = length
            if batch is not None and self.single_row:
                shape[0] = batch
            example = _varied(tensor.detach()) if place == first else tensor.detach()
            inputs.append(_fresh(example, axis, tuple(shape), generator))
        return Sample(tuple(inputs), labels(length))

    def _kept(self, tensor: Tensor, place: int, length: int) -> Tensor:
        if length != self.length and list(tensor.shape).count(self.length) > 1:
            raise SubjectError(
                f"{self.name}: input {place} of shape {tuple(tensor.shape)} has several axes as long as the "
                f"{self.length} tokens, so it cannot be drawn for {length}; use length={self.length}"
            )
        return tensor.detach().clone()


def _varied(example: Tensor) -> Tensor:
    """An example that is not constant: zeros say nothing of what to draw, so values around them are drawn."""
    if not _constant(example) or example.dtype == torch.bool or example.numel() < 2:
        return example
    if example.is_floating_point():
        return example + torch.linspace(-1.7, 1.7, example.numel()).view(example.shape).to(example.dtype)
    varied = example.clone().flatten()
    varied[::2] = 0 if int(varied[0]) > 0 else 1
    return varied.view(example.shape)


def _fresh(example: Tensor, axis: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if _constant(example):
        return example.flatten()[:1].expand(shape).clone() if example.numel() else example.new_zeros(shape)
    if example.dtype == torch.bool:
        return torch.rand(shape, generator=generator) < float(example.double().mean())
    if example.is_complex():
        return torch.randn(shape, generator=generator, dtype=example.dtype) * example.std()
    if example.is_floating_point():
        mean, spread = float(example.double().mean()), float(example.double().std())
        return (torch.randn(shape, generator=generator) * spread + mean).to(example.dtype)
    if _counts(example, axis):
        view = [1] * len(shape)
        view[axis] = shape[axis]
        start = int(example.min())
        return torch.arange(start, start + shape[axis], dtype=example.dtype).view(view).expand(shape).clone()
    return torch.randint(int(example.min()), int(example.max()) + 1, shape, generator=generator, dtype=example.dtype)


def _constant(example: Tensor) -> bool:
    return example.numel() == 0 or not bool((example != example.flatten()[0]).any())


def _counts(example: Tensor, axis: int) -> bool:
    if example.shape[axis] < 2:
        return False
    return bool((example.diff(dim=axis) == 1).all())
