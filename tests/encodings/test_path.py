from __future__ import annotations

import itertools

import pytest
import torch

from orderproof import positions
from orderproof.blocks import masks
from orderproof.encodings import AttentionContent, PaTHAttention, attention
from orderproof.encodings.visibility_mask import visibility_mask
from orderproof.errors import EncodingError
from tests.encodings.examples import HEAD_WIDTH, HEADS, WIDTH, build, normal


def reflections(path: PaTHAttention, x: torch.Tensor, head: int) -> list[torch.Tensor]:
    """H of each token of one row, from the layers themselves."""
    found = []
    for token in x:
        w = path.direction(token)[head * HEAD_WIDTH : (head + 1) * HEAD_WIDTH]
        beta = 2 * torch.sigmoid(path.strength(token)[head])
        found.append(torch.eye(HEAD_WIDTH, dtype=x.dtype) - beta * torch.outer(w, w) / (w @ w))
    return found


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2], [2, 2, 0, 2, 0, 1]])
@pytest.mark.parametrize("real", [[True] * 6, [False, True, True, True, False, True]], ids=["all", "padded"])
@pytest.mark.parametrize("rank", [None, 3])
def test_scores_are_the_formula_of_the_paper(order: list[int], real: list[bool], rank: int | None) -> None:
    path, x = PaTHAttention(WIDTH, HEADS, rank=rank).double().requires_grad_(False), normal(2, 6, WIDTH)
    q, k, p = normal(2, HEADS, 6, HEAD_WIDTH), normal(2, HEADS, 6, HEAD_WIDTH, seed=1), torch.tensor(order)
    visible = visibility_mask(p, p, causal=True, padding_mask=torch.tensor([real] * 2))
    content = AttentionContent(q=q, k=k, scale=0.3, visible=visible, token_state=path.token_state(x))
    found = 0.3 * q @ k.mT + path.bias(p, p, content=content, dtype=torch.float64)
    for b, h in itertools.product(range(2), range(HEADS)):
        H = reflections(path, x[b], h)
        for m, n in itertools.product(range(6), range(6)):
            if not visible[b, 0, m, n]:
                continue
            row = q[b, h, m]
            between = [t for t in range(6) if (order[t], t) > (order[n], n) and visible[b, 0, m, t]]
            for t in sorted(between, key=lambda t: (order[t], t), reverse=True):
                row = H[t] @ row
            assert float(found[b, h, m, n]) == pytest.approx(0.3 * float(k[b, h, n] @ row), abs=1e-12)


def attend(path: PaTHAttention, tokens: int, **options: object) -> torch.Tensor:
    q, k, v = (normal(1, HEADS, tokens, HEAD_WIDTH, seed=s) for s in range(3))
    token_state = path.token_state(normal(1, tokens, WIDTH, seed=3))
    arguments = {"q_positions": positions.arange(tokens), "causal": True, "token_state": token_state} | options
    return attention(q, k, v, encoding=path, **arguments)


def test_packed_documents_and_windows_leave_no_gap() -> None:
    path, boundaries = build("path").double(), torch.tensor([0, 4, 7])
    packed = attend(path, 7, q_positions=positions.packed(boundaries), mask=masks.document_mask(boundaries))
    assert torch.allclose(packed[:, :, :4], attend(path, 7)[:, :, :4], atol=1e-13)
    near = attend(path, 7, window=(2, 0))
    assert torch.allclose(near[:, :, :3], attend(path, 7)[:, :, :3], atol=1e-13)
    assert not torch.allclose(near[:, :, 3:], attend(path, 7)[:, :, 3:])


def test_a_mask_with_a_gap_is_rejected() -> None:
    gap = torch.ones(5, 5, dtype=torch.bool)
    gap[4, 2] = False
    with pytest.raises(
        EncodingError, match="PaTHAttention: expected a mask without gaps between a query and its visible keys"
    ):
        attend(build("path").double(), 5, mask=gap)
    gap[:, 2] = False  # a token that is visible to no query has no effect
    assert attend(build("path").double(), 5, mask=gap).isfinite().all()


def test_reflections_learn() -> None:
    path = build("path").double()
    attend(path, 6).square().sum().backward()
    assert all(parameter.grad.abs().max() > 1e-4 for parameter in path.parameters())


def test_a_rank_limits_the_directions_as_in_the_code_of_the_authors() -> None:
    torch.manual_seed(0)
    path, x = PaTHAttention(WIDTH, HEADS, rank=3).double(), normal(1, 40, WIDTH)
    assert repr(path).startswith("PaTHAttention(\n  32, 4, rank=3")
    assert [tuple(layer.weight.shape) for layer in path.direction] == [(3, WIDTH), (WIDTH, 3)]
    directions = path.direction(x)[0]
    assert torch.linalg.matrix_rank(directions) == 3
    assert torch.linalg.matrix_rank(build("path").double().direction(x)[0]) == WIDTH
    before = path.direction[0].weight.clone()
    path.reset_parameters()
    assert not torch.equal(path.direction[0].weight, before)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="PaTHAttention: rank must be an integer, 1 or more, got 0"):
        PaTHAttention(8, 2, rank=0)
    with pytest.raises(EncodingError, match="PaTHAttention: heads must divide width=8, got 3"):
        PaTHAttention(8, 3)
    with pytest.raises(EncodingError, match="PaTHAttention is defined for causal attention only"):
        attend(build("path").double(), 3, causal=False)
