"""Patch embeddings in two steps, between which proofs start: first a sequence of patches, then their grid."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class FlatPatches(nn.Module):
    """A patch embedding whose output is a sequence of patches [batch, patch, width].

    ``frames`` of a video, or tiles of an image, that the model puts into the batch form one sequence.
    """

    def __init__(self, patches: nn.Module, frames: int) -> None:
        super().__init__()
        self.patches = patches
        self.frames = frames

    def forward(self, pixels: Tensor) -> Tensor:
        """The patches of images [batch, channel, height, width], row by row."""
        grid: Tensor = self.patches(pixels)
        if self.frames > 1:
            grid = grid.view(-1, self.frames, *grid.shape[1:]).transpose(1, 2)
        return grid.flatten(2).transpose(1, 2)


class _PatchEmbeddingProxy(nn.Module):
    """A replacement of a patch embedding that forwards its attributes."""

    def __getattr__(self, name: str) -> Any:
        """Attributes of the convolution that models read: weight, stride, kernel size."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            rows: Any = super().__getattr__("rows")
            return getattr(rows.patches, name)


class TwoStepPatchEmbedding(_PatchEmbeddingProxy):
    """A patch embedding in two steps: a sequence of patches, then their grid.

    Most models flatten the grid directly; for them a grid of one column is equivalent and keeps the sequence.
    """

    def __init__(self, patches: nn.Module, grid: tuple[int, ...], frames: int = 1) -> None:
        super().__init__()
        self.rows = FlatPatches(patches, frames)
        self.grid = grid

    def forward(self, pixels: Tensor) -> Tensor:
        """The output of the patch embedding [batch, feature, height, width]."""
        columns: Tensor = self.rows(pixels).transpose(1, 2)
        frames: int = self.rows.frames
        sides = (frames, *self.grid) if frames > 1 else self.grid
        whole = columns.reshape(*columns.shape[:2], *sides)
        return whole.transpose(1, 2).flatten(0, 1) if frames > 1 else whole


class BatchedPatches(nn.Module):
    """A patch embedding without a batch axis, [patch, width], as a batch of one [1, patch, width]."""

    def __init__(self, patches: nn.Module) -> None:
        super().__init__()
        self.patches = patches

    def forward(self, *pixels: Any, **options: Any) -> Tensor:
        """The patches of an image [1, patch, width]."""
        row: Tensor = self.patches(*pixels, **options).flatten(1).unsqueeze(0)
        return row


class TwoStepPackedEmbedding(_PatchEmbeddingProxy):
    """A patch embedding without a batch axis in two steps."""

    def __init__(self, patches: nn.Module, rank: int) -> None:
        super().__init__()
        self.rows = BatchedPatches(patches)
        self.rank = rank

    def forward(self, *pixels: Any, **options: Any) -> Tensor:
        """The output of the patch embedding: [patch, width], or one image of one patch per patch."""
        row: Tensor = self.rows(*pixels, **options).squeeze(0)
        return row[(...,) + (None,) * (self.rank - 2)]
