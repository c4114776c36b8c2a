from __future__ import annotations

import math

import pytest
import torch
from transformers import DebertaV2Config
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention, make_log_bucket_position

from orderproof import positions
from orderproof.encodings import DeBERTa, attention
from orderproof.errors import EncodingError
from tests.encodings.examples import normal

SIZES = [(256, 512), (32, 128), (8, 24)]


@pytest.mark.parametrize(("span", "max_distance"), SIZES)
def test_buckets_are_those_of_transformers(span: int, max_distance: int) -> None:
    distance = torch.arange(-2 * max_distance, 2 * max_distance + 1)
    theirs = make_log_bucket_position(distance, span, max_distance).long().clamp(-span, span - 1)
    assert torch.equal(DeBERTa(1, 4, span=span, max_distance=max_distance).bucket(distance), theirs)


@pytest.mark.parametrize(("span", "max_distance"), SIZES)
def test_inexact_buckets_start_at_exact_integer_thresholds(span: int, max_distance: int) -> None:
    first, exact = DeBERTa(1, 4, span=span, max_distance=max_distance).thresholds, span // 2
    assert (first[0], first[-1], len(first)) == (exact + 1, max_distance, exact)
    for j, x in enumerate(first, start=1):
        growth = (exact - 1) / math.log((max_distance - 1) / exact)
        assert growth * math.log(x / exact) > j - 1 - 1e-9
        assert x == exact + 1 or growth * math.log((x - 1) / exact) <= j - 1 + 1e-9


@pytest.mark.parametrize("tokens", [7, 60])
def test_attention_is_that_of_transformers(tokens: int) -> None:
    config = DebertaV2Config(
        hidden_size=16,
        num_attention_heads=4,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_buckets=8,
        max_relative_positions=24,
        share_att_key=True,
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    theirs = DisentangledSelfAttention(config).eval().double()
    for bias in (theirs.query_proj.bias, theirs.key_proj.bias, theirs.value_proj.bias):
        torch.nn.init.normal_(bias)
    x, table = normal(2, tokens, 16), normal(16, 16, seed=1)
    mask = torch.ones(2, 1, tokens, tokens, dtype=torch.bool)
    expected = theirs(x, mask, rel_embeddings=table)[0]

    def heads(y: torch.Tensor) -> torch.Tensor:
        return y.unflatten(-1, (4, 4)).transpose(-2, -3)

    ours = DeBERTa(4, 4, span=8, max_distance=24).double()
    with torch.no_grad():
        ours.keys.copy_(heads(theirs.key_proj(table)))
        ours.queries.copy_(heads(theirs.query_proj(table)))
    q, k, v = (heads(project(x)) for project in (theirs.query_proj, theirs.key_proj, theirs.value_proj))
    found = attention(q, k, v, encoding=ours, q_positions=positions.arange(tokens), causal=False)
    # Their scale is a float32 number.
    assert torch.allclose(found.transpose(1, 2).flatten(2), expected, rtol=0, atol=1e-6)


def test_scores_are_divided_as_sums_of_three() -> None:
    assert DeBERTa(2, 4).default_scale(4) == pytest.approx(1 / math.sqrt(12))


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="DeBERTa: span must be an even integer, 2 or more, got 7"):
        DeBERTa(2, 4, span=7)
    with pytest.raises(EncodingError, match=r"DeBERTa: expected .*, got span=256, max_distance=129"):
        DeBERTa(2, 4, max_distance=129)
    with pytest.raises(EncodingError, match=r"DeBERTa: expected .*, got span=2, max_distance=512"):
        DeBERTa(2, 4, span=2)
