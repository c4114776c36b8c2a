"""Self-Extend by two sets of positions, against the formula pair by pair."""

from __future__ import annotations

import pytest
import torch

from orderproof import positions
from orderproof.encodings import ALiBi, Rotary
from tests.encodings.examples import normal

GROUP, WINDOW, TOKENS = 3, 5, 23


def merged(near: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
    """The near scores within the window, the far ones past it, those of later keys left out."""
    p = positions.arange(TOKENS)
    back = p.unsqueeze(-1) - p
    return torch.where(back < WINDOW, near, far)[..., back >= 0]


def distance(m: int, n: int) -> int:
    """The paper's rule."""
    return m - n if m - n < WINDOW else m // GROUP + WINDOW - WINDOW // GROUP - n // GROUP


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_rotary_scores_have_the_distance_of_the_paper(layout: str) -> None:
    rope, p = Rotary(8, layout=layout), positions.arange(TOKENS)  # type: ignore[arg-type]
    q, k = normal(1, 1, TOKENS, 8, seed=1), normal(1, 1, TOKENS, 8, seed=2)
    far_q, far_k = positions.self_extend(p, group=GROUP, window=WINDOW)
    scores = []
    for places in ((p, p), (far_q, far_k)):
        a, b = rope.rotate(q, k, *places)
        scores.append(a @ b.transpose(-1, -2))
    wanted = []
    for m in range(TOKENS):
        for n in range(m + 1):
            a, b = rope.rotate(q[:, :, [m]], k[:, :, [n]], torch.tensor([distance(m, n)]), torch.tensor([0]))
            wanted.append((a * b).sum())
    assert (merged(*scores)[0, 0] - torch.stack(wanted)).abs().max() < 1e-12


def test_biases_have_it_too() -> None:
    alibi, p = ALiBi(2), positions.arange(TOKENS)
    far = positions.self_extend(p, group=GROUP, window=WINDOW)
    found = merged(alibi.bias(p, p), alibi.bias(*far))[0]
    wanted = [-distance(m, n) for m in range(TOKENS) for n in range(m + 1)]
    assert torch.equal(found, torch.tensor(alibi.slopes).unsqueeze(-1) * torch.tensor(wanted))
