"""Distances between sentence vectors, and their medians over many sentences.

    cosine distance    1 - <u, v> / |u||v|  =  | u/|u| - v/|v| |^2 / 2
    relative distance  |u - v| / |u|

The right-hand side is accurate near 0, where the left-hand side is rounding error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from orderproof.records.sensitivity import OTHER_SENTENCE, SAME_SENTENCE, MedianInterval, PerturbationEffect, Pooling

RESAMPLES = 2000
MIN_REFERENCE_DISTANCE = 1e-10  # no share is computed of a smaller cosine distance to other sentences
_EXACT_CDIST_MODE = "donot_use_mm_for_euclid_dist"  # the faster mode is inaccurate near 0


def pool(states: Tensor, pooling: Pooling) -> Tensor:
    """Sentence vectors [row, feature] of states [row, token, feature], in float64; there are no pads."""
    states = states.double()
    if pooling == "mean":
        return states.mean(dim=1)
    return states[:, 0] if pooling == "first" else states[:, -1]


def unit(vectors: Tensor) -> Tensor:
    """The vectors scaled to length 1; zero vectors are unchanged."""
    return torch.nn.functional.normalize(vectors, dim=-1)


def cosine_distance(first: Tensor, second: Tensor) -> Tensor:
    """Cosine distance along the last dimension."""
    return (unit(first) - unit(second)).square().sum(-1) / 2


def relative_distance(first: Tensor, second: Tensor) -> Tensor:
    """Length of the difference over the length of the first; 0 where they are equal."""
    gap = (first - second).norm(dim=-1)
    return torch.where(gap == 0, gap, gap / first.norm(dim=-1))


@dataclass
class SentenceVectors:
    """The vectors of all sentences at one layer, and their distances to the vectors of each reordering."""

    vectors: list[Tensor] = field(default_factory=list)
    distances: dict[str, dict[int, tuple[float, float]]] = field(
        default_factory=dict
    )  # kind -> sentence index -> (cosine, relative)

    def add(self, kinds: Iterable[str], rows: Tensor) -> None:
        """Add a sentence. `rows`: its vector first, then that of each kind in `kinds`."""
        index, first = len(self.vectors), rows[0]
        self.vectors.append(first)
        cosine, relative = cosine_distance(first, rows[1:]).tolist(), relative_distance(first, rows[1:]).tolist()
        for kind, near, far in zip(kinds, cosine, relative, strict=True):
            self.distances.setdefault(kind, {})[index] = (near, far)

    def summary(self, order: Iterable[str], *, seed: int) -> tuple[PerturbationEffect, ...]:
        """The effect of each kind of reordering in `order`, after the two references."""
        every = torch.stack(self.vectors)
        count = len(every)
        off_diagonal = ~torch.eye(count, dtype=torch.bool)
        cosine = torch.cdist(unit(every), unit(every), compute_mode=_EXACT_CDIST_MODE).square() / 2
        gaps = torch.cdist(every, every, compute_mode=_EXACT_CDIST_MODE)
        relative = torch.where(gaps == 0, gaps, gaps / every.norm(dim=-1, keepdim=True))
        others = (_medians(cosine, off_diagonal), _medians(relative, off_diagonal))
        nearest = cosine.masked_fill(~off_diagonal, torch.inf).amin(dim=1)
        reference = PerturbationEffect(
            perturbation=OTHER_SENTENCE,
            sentences=count,
            cosine=median_interval(others[0], seed),
            relative=median_interval(others[1], seed),
        )
        kinds = [(kind, rows) for kind in (SAME_SENTENCE, *order) if (rows := self.distances.get(kind))]
        return reference, *(_effect(kind, rows, others, nearest, seed) for kind, rows in kinds)


def _medians(values: Tensor, off_diagonal: Tensor) -> Tensor:
    """The median of each row without the diagonal."""
    return values[off_diagonal].view(len(values), -1).quantile(0.5, dim=1)


def _effect(
    kind: str, rows: dict[int, tuple[float, float]], others: tuple[Tensor, Tensor], nearest: Tensor, seed: int
) -> PerturbationEffect:
    indices = torch.tensor(list(rows))
    cosine, relative = torch.tensor(list(rows.values()), dtype=torch.float64).unbind(1)
    near, far = (reference[indices] for reference in others)
    comparable = bool((near > MIN_REFERENCE_DISTANCE).all())
    return PerturbationEffect(
        perturbation=kind, sentences=len(rows), cosine=median_interval(cosine, seed),
        relative=median_interval(relative, seed),
        share_of_unrelated=median_interval(cosine / near, seed) if comparable else None,
        relative_share_of_unrelated=median_interval(relative / far, seed) if comparable else None,
        still_nearest_fraction=float((cosine < nearest[indices]).double().mean()) if comparable else None,
    )  # fmt: skip


def median_interval(values: Tensor, seed: int) -> MedianInterval:
    """The median with a 95% bootstrap interval."""
    generator = torch.Generator().manual_seed(seed)
    samples = torch.randint(len(values), (RESAMPLES, len(values)), generator=generator)
    medians = values[samples].quantile(0.5, dim=1)
    low, high = medians.quantile(torch.tensor([0.025, 0.975], dtype=medians.dtype)).tolist()
    return MedianInterval(median=float(values.quantile(0.5)), low=low, high=high)
