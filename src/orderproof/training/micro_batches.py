"""Some rows of the micro-batches of a step as one batch, and the micro-batches of a changed batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, cat
from torch.nn import functional

from orderproof.laws.training import TrainingBatch

PARTS, ROWS = 2, 2  # micro-batches of a step that are audited, and rows of each
_FILLED = {"labels": -100, "shift_labels": -100}  # where a row is shorter than others; all else with 0


@dataclass(frozen=True)
class MicroBatches:
    """Micro-batches as one batch; `sizes` are their rows and the length of these."""

    batch: Any
    sizes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, parts: Sequence[Any]) -> MicroBatches:
        """The first ones as one batch, those of other kinds than tensors [row, token] alone."""
        chosen = list(parts[:PARTS]) if all(_rows(part) for part in parts[:PARTS]) else list(parts[:1])
        sizes = tuple(_size(part) for part in chosen)
        if len(chosen) == 1:
            return cls(chosen[0], sizes)
        length = max(size[1] for size in sizes)
        names = [name for name in chosen[0] if all(name in part for part in chosen)]
        return cls({name: cat([_filled(name, part[name], length) for part in chosen]) for name in names}, sizes)

    def split(self, batch: Any) -> list[Any]:
        """The micro-batches of a batch with the same rows; of any other one, the batch itself."""
        if len(self.sizes) == 1 or _size(batch)[0] != sum(rows for rows, _ in self.sizes):
            return [batch]
        found, start = [], 0
        for rows, length in self.sizes:
            found.append({name: value[start : start + rows, :length] for name, value in batch.items()})
            start += rows
        return found

    def share_of(self, samples: Sequence[Any]) -> float:
        """The part of the tokens of a step that these are."""
        every = sum(rows * length for rows, length in map(_size, samples))
        return min(1.0, sum(rows * length for rows, length in self.sizes) / every) if every else 1.0


def some_rows(part: Any) -> Any:
    """The longest and the shortest row of a micro-batch; one with other values than tensors of its rows as it is."""
    if _rows(part) <= ROWS:
        return part
    mask = part.get(TrainingBatch.roles_of(part).get("mask"))
    sizes = (mask > 0).sum(1) if mask is not None else None
    chosen = [0, 1] if sizes is None else [int(sizes.argmax()), int(sizes.argmin())]
    if len(set(chosen)) < ROWS:
        chosen = [0, 1]
    return {name: value[sorted(chosen)] for name, value in part.items()}


def _rows(part: Any) -> int:
    """The rows of a mapping of tensors [row, token]; 0 for anything else."""
    values = list(part.values()) if isinstance(part, Mapping) else []
    shapes = {tuple(x.shape[:2]) if isinstance(x, Tensor) and x.dim() == 2 else None for x in values}
    return shapes.pop()[0] if len(shapes) == 1 and None not in shapes else 0  # type: ignore[index]


def _size(part: Any) -> tuple[int, int]:
    roles = TrainingBatch.roles_of(part)
    tokens = part[roles["tokens"]] if "tokens" in roles else None
    return (tokens.shape[0], tokens.shape[1]) if isinstance(tokens, Tensor) and tokens.dim() == 2 else (0, 0)


def _filled(name: str, value: Tensor, length: int) -> Tensor:
    return functional.pad(value, (0, length - value.shape[1]), value=_FILLED.get(name, 0))
