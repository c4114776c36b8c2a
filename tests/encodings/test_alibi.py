from __future__ import annotations

import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from orderproof import positions
from orderproof.encodings import ALiBi
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import normal


def test_slopes_are_those_of_the_paper() -> None:
    assert ALiBi(8).slopes == tuple(2.0**-h for h in range(1, 9))
    assert ALiBi(1).slopes == (2.0**-8,)
    # 12 heads: those of 8, then every second one of 16.
    assert ALiBi(12).slopes == (*(2.0**-h for h in range(1, 9)), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5)


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 14, 16, 20, 32, 112])
def test_slopes_are_those_of_transformers_bloom(heads: int) -> None:
    # Theirs is slope x position; one step along the row gives the slope back.
    theirs = build_alibi_tensor(torch.ones(1, 2, dtype=torch.int64), heads, torch.float32)[:, 0, 1]
    assert torch.tensor(ALiBi(heads).slopes) == pytest.approx(theirs.numpy(), rel=1e-6)


def test_bias_is_minus_slope_times_distance() -> None:
    q, k = torch.tensor([[3, 0], [9, 9]]), torch.tensor([0, 3, 7])
    found = ALiBi(3).bias(q, k, dtype=torch.float64)
    for b in range(2):
        for h, slope in enumerate(ALiBi(3).slopes):
            expected = [[-slope * abs(m - n) for n in k.tolist()] for m in q[b].tolist()]
            assert found[b, h].tolist() == expected


def test_bias_is_the_same_after_softmax_as_blooms() -> None:
    tokens, heads = 9, 6
    theirs = build_alibi_tensor(torch.ones(1, tokens, dtype=torch.int64), heads, torch.float32).view(
        1, heads, 1, tokens
    )
    ours = ALiBi(heads).bias(positions.arange(tokens), positions.arange(tokens))
    hidden = torch.ones(tokens, tokens).triu(1).bool()
    weights = [(b + torch.zeros_like(ours)).masked_fill(hidden, -torch.inf).softmax(-1) for b in (ours, theirs)]
    assert torch.allclose(weights[0], weights[1], atol=1e-6)


def test_neighbours_do_not_tie_in_bfloat16() -> None:
    far = positions.offset(100_000, 128)
    nearest = ALiBi(112).bias(far[-1:], far, dtype=torch.bfloat16)[0, :, 0, -8:]
    assert (nearest.diff(dim=-1) > 0).all()


def test_bias_is_symmetric() -> None:
    p = positions.arange(6)
    bias = ALiBi(4).bias(p, p)
    assert torch.equal(bias, bias.mT)
    assert torch.equal(bias, bias.flip(-1, -2))


def test_score_mod_adds_the_bias_score_by_score() -> None:
    q, k = torch.tensor([[3, 0], [9, 5]]), torch.tensor([[0, 3, 7], [1, 1, 2]])
    alibi, score = ALiBi(4), normal(2, 4, 2, 3, dtype=torch.float32)
    index = torch.meshgrid(*(torch.arange(n) for n in score.shape), indexing="ij")
    assert torch.allclose(alibi.score_mod(q, k)(score, *index), score + alibi.bias(q, k), atol=1e-6)
    assert torch.allclose(alibi.score_mod(q[0], k)(score, *index), score + alibi.bias(q[0], k), atol=1e-6)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="ALiBi: heads must be an integer, 1 or more, got 0"):
        ALiBi(0)
    with pytest.raises(PositionError, match=r"k_positions: expected a batch of 2 \(or 1\)"):
        ALiBi(2).bias(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(3, 3, dtype=torch.int64))
    with pytest.raises(PositionError, match="k_positions: expected device cpu, got meta"):
        ALiBi(2).bias(positions.arange(2), positions.arange(2, device="meta"))
