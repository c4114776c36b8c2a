from __future__ import annotations

import itertools

import pytest
import torch
from transformers.models.t5.modeling_t5 import T5Attention

from orderproof import positions
from orderproof.encodings import ModelSizes, T5Bias
from orderproof.errors import EncodingError
from tests.encodings.examples import normal

OPTIONS = list(itertools.product([True, False], [(32, 128), (16, 64), (8, 20), (64, 512)]))


@pytest.mark.parametrize(("bidirectional", "sizes"), OPTIONS)
def test_buckets_are_those_of_transformers(bidirectional: bool, sizes: tuple[int, int]) -> None:
    buckets, max_distance = sizes
    distance = torch.arange(-1100, 1101)
    theirs = T5Attention._relative_position_bucket(distance, bidirectional, buckets, max_distance)
    ours = T5Bias(1, bidirectional=bidirectional, buckets=buckets, max_distance=max_distance).bucket(distance)
    assert torch.equal(ours, theirs)


def test_inexact_buckets_start_at_exact_integer_thresholds() -> None:
    # 16 buckets, 8 exact, up to 128: bucket 8 + j begins at 8 * 16 ** (j / 8), rounded up.
    found = T5Bias(1, bidirectional=True).thresholds
    assert found == (12, 16, 23, 32, 46, 64, 91)


def test_bidirectional_leaves_one_bucket_unused_and_causal_uses_all() -> None:
    distance = torch.arange(-500, 501)
    assert set(T5Bias(1, bidirectional=True).bucket(distance).tolist()) == set(range(32)) - {16}
    assert set(T5Bias(1, bidirectional=False).bucket(distance).tolist()) == set(range(32))


def test_bias_looks_up_the_head_and_the_bucket() -> None:
    t5 = T5Bias(3, bidirectional=True).double()
    q, k = torch.tensor([[3, 0], [9, 200]]), torch.tensor([0, 3, 7])
    found = t5.bias(q, k, dtype=torch.float64)
    for b, i, j in itertools.product(range(2), range(2), range(3)):
        bucket = int(t5.bucket(k[j] - q[b, i]))
        assert torch.equal(found[b, :, i, j], t5.weight[bucket])


def test_score_mod_adds_the_bias_score_by_score() -> None:
    q, k = torch.tensor([[3, 0], [9, 5]]), torch.tensor([[0, 3, 7], [1, 100, 2]])
    t5, score = T5Bias(4, bidirectional=True), normal(2, 4, 2, 3, dtype=torch.float32)
    index = torch.meshgrid(*(torch.arange(n) for n in score.shape), indexing="ij")
    assert torch.equal(t5.score_mod(q, k)(score, *index), score + t5.bias(q, k))


def test_the_weights_get_gradients() -> None:
    t5 = T5Bias(2, bidirectional=False)
    t5.bias(positions.arange(3), positions.arange(3)).sum().backward()
    assert t5.weight.grad is not None
    assert t5.weight.grad[:, 0].tolist() == [6, 2, 1] + [0] * 29


def test_a_causal_model_gets_the_causal_version() -> None:
    for causal in (True, False):
        t5 = T5Bias.for_model(ModelSizes(width=8, heads=2, causal=causal))
        assert t5.claims.causal_only is causal
        assert t5.bidirectional is not causal


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="T5Bias: heads must be an integer, 1 or more, got -1"):
        T5Bias(-1, bidirectional=True)
    with pytest.raises(EncodingError, match="T5Bias: buckets must be an even integer, 2 or more, got 7"):
        T5Bias(1, bidirectional=True, buckets=7)
    with pytest.raises(EncodingError, match=r"T5Bias: expected 4 buckets or more .* got buckets=2, max_distance=128"):
        T5Bias(1, bidirectional=True, buckets=2)
    with pytest.raises(EncodingError, match=r"T5Bias: expected .* got buckets=32, max_distance=16"):
        T5Bias(1, bidirectional=False, max_distance=16)
