"""Patch embeddings in two steps, so that a graph can be cut between them: a row of tokens first."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class Rows(nn.Module):
    """A patch embedding whose patches stand in one row: [batch, token, width].

    ``frames`` of one film, or tiles of one image, that were put into the batch are one row.
    """

    def __init__(self, patches: nn.Module, frames: int) -> None:
        super().__init__()
        self.patches = patches
        self.frames = frames

    def forward(self, pixels: Tensor) -> Tensor:
        """The patches of an image, row by row."""
        given: Tensor = self.patches(pixels)
        if self.frames > 1:
            given = given.view(-1, self.frames, *given.shape[1:]).transpose(1, 2)
        return given.flatten(2).transpose(1, 2)


class _TwoSteps(nn.Module):
    """What stands in the place of a patch embedding, and answers for it."""

    def __getattr__(self, name: str) -> Any:
        """What models read off a convolution: its weight for its dtype, its stride, the size of its kernel."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            rows: Any = super().__getattr__("rows")
            return getattr(rows.patches, name)


class Split(_TwoSteps):
    """A patch embedding in two steps, so that the graph can be cut between them: a row of patches, then their grid.

    Most models flatten the grid at once; a grid of one column is then the same to them, and keeps the row in sight.
    """

    def __init__(self, patches: nn.Module, grid: tuple[int, ...], frames: int = 1) -> None:
        super().__init__()
        self.rows = Rows(patches, frames)
        self.grid = grid

    def forward(self, pixels: Tensor) -> Tensor:
        """What the patch embedding gives: [batch, width, height, width of the grid]."""
        columns: Tensor = self.rows(pixels).transpose(1, 2)
        frames: int = self.rows.frames
        sides = (frames, *self.grid) if frames > 1 else self.grid
        whole = columns.reshape(*columns.shape[:2], *sides)
        return whole.transpose(1, 2).flatten(0, 1) if frames > 1 else whole


class OneRow(nn.Module):
    """A patch embedding that gives [patch, width], as a batch of one: [batch, token, width]."""

    def __init__(self, patches: nn.Module) -> None:
        super().__init__()
        self.patches = patches

    def forward(self, *pixels: Any, **options: Any) -> Tensor:
        """The patches of an image."""
        row: Tensor = self.patches(*pixels, **options).flatten(1).unsqueeze(0)
        return row


class Unbatched(_TwoSteps):
    """The same in two steps, so that the graph can be cut between them."""

    def __init__(self, patches: nn.Module, rank: int) -> None:
        super().__init__()
        self.rows = OneRow(patches)
        self.rank = rank

    def forward(self, *pixels: Any, **options: Any) -> Tensor:
        """What the patch embedding gives: [patch, width], or as many images of one patch."""
        row: Tensor = self.rows(*pixels, **options).squeeze(0)
        return row[(...,) + (None,) * (self.rank - 2)]
