"""Draw inputs like example inputs: same dtype and range, any number of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.models.sample import Sample, seeded_generator, token_labels

TokenAxes = tuple[int | None, ...]


@dataclass(frozen=True)
class ExampleInputs:
    """Example inputs of a module and their token axes."""

    tensors: tuple[Tensor, ...]
    axes: TokenAxes
    name: str  # of the subject, for messages
    row_axes: TokenAxes = ()  # the axis of each input that runs over rows; empty if no input has one

    @property
    def length(self) -> int:
        """The number of tokens of the examples."""
        return next(tensor.shape[axis] for tensor, axis in self._pairs if axis is not None)

    @property
    def row_count(self) -> int | None:
        """The number of rows of the examples; None if no input has an axis of rows."""
        sizes = [t.shape[axis] for t, axis in zip(self.tensors, self.row_axes, strict=False) if axis is not None]
        return sizes[0] if sizes else None

    @property
    def non_token_sizes(self) -> set[int]:
        """The sizes of all other axes."""
        return {size for tensor, axis in self._pairs for place, size in enumerate(tensor.shape) if place != axis}

    @property
    def _pairs(self) -> list[tuple[Tensor, int | None]]:
        return list(zip(self.tensors, self.axes, strict=True))

    def draw(self, rows: int | None, length: int, seed: int) -> Sample:
        """Random values for every input with a token axis; copies of the others.

        ``rows`` is the size of every axis of rows; by default that of the examples. Constants stay constant and ranges
        0, 1, 2, ... along the tokens (position ids) stay ranges, except in the tokens themselves. Raises
        `SubjectError` for an input that fixes the length.
        """
        generator = seeded_generator(seed)
        tokens = self._place_of_tokens
        inputs = []
        for place, (tensor, axis) in enumerate(self._pairs):
            row_axis = self.row_axes[place] if self.row_axes and rows is not None else None
            if axis is None:
                inputs.append(_with_rows(self._copy(tensor, place, length), row_axis, rows))
                continue
            shape = list(tensor.shape)
            shape[axis] = length
            if rows is not None and row_axis is not None:
                shape[row_axis] = rows
            example = _with_variation(tensor.detach()) if place == tokens else tensor.detach()
            inputs.append(_sample_like(example, None if place == tokens else axis, tuple(shape), generator))
        return Sample(tuple(inputs), token_labels(length))

    @property
    def _place_of_tokens(self) -> int:
        """The first input with tokens that is no range; the first of all if the others are ranges or constants."""
        pairs = self._pairs
        places = [place for place, (_, axis) in enumerate(pairs) if axis is not None]
        varied = [k for k in places if not _is_constant(pairs[k][0]) and not _is_arange(*pairs[k])]
        return varied[0] if varied and _is_arange(*pairs[places[0]]) else places[0]

    def _copy(self, tensor: Tensor, place: int, length: int) -> Tensor:
        if length != self.length and list(tensor.shape).count(self.length) > 1:
            raise SubjectError(
                f"{self.name}: input {place} of shape {tuple(tensor.shape)} has several axes as long as the "
                f"{self.length} tokens, so it cannot be drawn for {length}; use length={self.length}"
            )
        return tensor.detach().clone()


def _with_rows(tensor: Tensor, axis: int | None, rows: int | None) -> Tensor:
    """The tensor with this number of rows: its own, repeated if it has fewer."""
    if axis is None or rows is None or tensor.shape[axis] == rows:
        return tensor
    return tensor.index_select(axis, torch.arange(rows) % tensor.shape[axis])


def _with_variation(example: Tensor) -> Tensor:
    """The example, with values around it if it is constant: a constant does not determine a range."""
    if not _is_constant(example) or example.dtype == torch.bool or example.numel() < 2:
        return example
    if example.is_floating_point():
        return example + torch.linspace(-1.7, 1.7, example.numel()).view(example.shape).to(example.dtype)
    values = example.clone().flatten()
    values[::2] = 0 if int(values[0]) > 0 else 1
    return values.view(example.shape)


def _sample_like(example: Tensor, axis: int | None, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if _is_constant(example):
        return example.flatten()[:1].expand(shape).clone() if example.numel() else example.new_zeros(shape)
    if example.dtype == torch.bool:
        return torch.rand(shape, generator=generator) < float(example.double().mean())
    if example.is_complex():
        return torch.randn(shape, generator=generator, dtype=example.dtype) * example.std()
    if example.is_floating_point():
        mean, std = float(example.double().mean()), float(example.double().std())
        return (torch.randn(shape, generator=generator) * std + mean).to(example.dtype)
    if axis is not None and _is_arange(example, axis):
        view = [1] * len(shape)
        view[axis] = shape[axis]
        start = int(example.min())
        return torch.arange(start, start + shape[axis], dtype=example.dtype).view(view).expand(shape).clone()
    return torch.randint(int(example.min()), int(example.max()) + 1, shape, generator=generator, dtype=example.dtype)


def _is_constant(example: Tensor) -> bool:
    return example.numel() == 0 or not bool((example != example.flatten()[0]).any())


def _is_arange(example: Tensor, axis: int | None) -> bool:
    if axis is None or example.shape[axis] < 2 or example.is_floating_point() or example.dtype == torch.bool:
        return False
    return bool((example.diff(dim=axis) == 1).all())
