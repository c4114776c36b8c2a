"""Distances between sentence vectors, and what they come to over many sentences.

    cosine distance    1 - <u, v> / |u||v|  =  | u/|u| - v/|v| |^2 / 2
    relative distance  |u - v| / |u|

The right-hand side keeps its digits near 0, where the left one is rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from orderproof.sensitivity_record import OTHER, SAME, Moved, Pooling, Spread

RESAMPLES = 2000
NOTHING = 1e-10  # a cosine distance to other sentences below this is none to compare with
_PLAIN = "donot_use_mm_for_euclid_dist"  # the faster way loses the digits near 0


def pooled(states: Tensor, pooling: Pooling) -> Tensor:
    """Sentence vectors [row, feature] of states [row, token, feature], in float64; there are no pads."""
    states = states.double()
    if pooling == "mean":
        return states.mean(dim=1)
    return states[:, 0] if pooling == "first" else states[:, -1]


def unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1; a vector of zeros stays."""
    return torch.nn.functional.normalize(vectors, dim=-1)


def cosine_distance(first: Tensor, second: Tensor) -> Tensor:
    """Cosine distance along the last dimension."""
    return (unit(first) - unit(second)).square().sum(-1) / 2


def relative_distance(first: Tensor, second: Tensor) -> Tensor:
    """Length of the difference over the length of the first; 0 where they are equal."""
    gap = (first - second).norm(dim=-1)
    return torch.where(gap == 0, gap, gap / first.norm(dim=-1))


@dataclass
class Cloud:
    """The vectors of all sentences at one place of a model, and how far each kind of change moved them."""

    vectors: list[Tensor] = field(default_factory=list)
    moved: dict[str, dict[int, tuple[float, float]]] = field(default_factory=dict)  # kind -> sentence -> two distances

    def add(self, kinds: Iterable[str], rows: Tensor) -> None:
        """A sentence: its vector first, then that of each kind of change."""
        place, first = len(self.vectors), rows[0]
        self.vectors.append(first)
        cosine, relative = cosine_distance(first, rows[1:]).tolist(), relative_distance(first, rows[1:]).tolist()
        for kind, near, far in zip(kinds, cosine, relative, strict=True):
            self.moved.setdefault(kind, {})[place] = (near, far)

    def summary(self, order: Iterable[str], *, seed: int) -> tuple[Moved, ...]:
        """What each kind comes to, the two references first."""
        every = torch.stack(self.vectors)
        count = len(every)
        apart = ~torch.eye(count, dtype=torch.bool)
        cosine = torch.cdist(unit(every), unit(every), compute_mode=_PLAIN).square() / 2
        gaps = torch.cdist(every, every, compute_mode=_PLAIN)
        relative = torch.where(gaps == 0, gaps, gaps / every.norm(dim=-1, keepdim=True))
        others = (_medians(cosine, apart), _medians(relative, apart))
        nearest = cosine.masked_fill(~apart, torch.inf).amin(dim=1)
        reference = Moved(
            kind=OTHER, sentences=count, cosine=spread(others[0], seed), relative=spread(others[1], seed)
        )  # fmt: skip
        kinds = [(kind, rows) for kind in (SAME, *order) if (rows := self.moved.get(kind))]
        return reference, *(_moved(kind, rows, others, nearest, seed) for kind, rows in kinds)


def _medians(values: Tensor, apart: Tensor) -> Tensor:
    """The median of each row, the diagonal left out."""
    return values[apart].view(len(values), -1).quantile(0.5, dim=1)


def _moved(
    kind: str, rows: dict[int, tuple[float, float]], others: tuple[Tensor, Tensor], nearest: Tensor, seed: int
) -> Moved:
    places = torch.tensor(list(rows))
    cosine, relative = torch.tensor(list(rows.values()), dtype=torch.float64).unbind(1)
    near, far = (reference[places] for reference in others)
    told = bool((near > NOTHING).all())
    return Moved(
        kind=kind, sentences=len(rows), cosine=spread(cosine, seed), relative=spread(relative, seed),
        share=spread(cosine / near, seed) if told else None,
        relative_share=spread(relative / far, seed) if told else None,
        nearer=float((cosine < nearest[places]).double().mean()) if told else None,
    )  # fmt: skip


def spread(values: Tensor, seed: int) -> Spread:
    """The median and a 95% interval of it, over sentences drawn again with replacement."""
    draw = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(values), (RESAMPLES, len(values)), generator=draw)
    medians = values[chosen].quantile(0.5, dim=1)
    low, high = medians.quantile(torch.tensor([0.025, 0.975], dtype=medians.dtype)).tolist()
    return Spread(median=float(values.quantile(0.5)), low=low, high=high)
