from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import _apply_relative_key_position_encoding

from orderproof import positions
from orderproof.encodings import AttentionContent, Shaw, attention
from orderproof.errors import EncodingError
from tests.encodings.examples import HEAD_WIDTH, HEADS, build, normal


def test_bias_is_that_of_transformers_wav2vec2_bert() -> None:
    shaw, q, k = (
        Shaw(8, max_distance=3, add_to_values=False).double(),
        normal(2, HEADS, 9, 8),
        normal(2, HEADS, 9, 8, seed=1),
    )
    table = torch.nn.Embedding(7, 8).double()
    table.weight = shaw.key_vectors
    module = SimpleNamespace(
        left_max_position_embeddings=3, right_max_position_embeddings=3, distance_embedding=table, scaling=0.3
    )
    _, theirs = _apply_relative_key_position_encoding(module, q, k)
    p = positions.arange(9)
    ours = shaw.bias(p, p, content=AttentionContent(q=q, k=k, scale=0.3), dtype=torch.float64)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-14)


def test_attention_is_the_formula_of_the_paper() -> None:
    shaw = build("shaw").double().requires_grad_(False)
    shaw.max_distance, rows = 2, slice(14, 19)  # the five vectors in the middle
    shaw.key_vectors.data, shaw.value_vectors.data = shaw.key_vectors[rows], shaw.value_vectors[rows]
    q, k, v = (normal(1, 2, 6, HEAD_WIDTH, seed=s) for s in range(3))
    found = attention(q, k, v, encoding=shaw, q_positions=positions.arange(6), causal=False)
    for h, m in itertools.product(range(2), range(6)):
        near = [max(-2, min(n - m, 2)) + 2 for n in range(6)]
        scores = [q[0, h, m] @ (k[0, h, n] + shaw.key_vectors[near[n]]) / HEAD_WIDTH**0.5 for n in range(6)]
        weights = torch.stack(scores).softmax(0)
        expected = sum(weights[n] * (v[0, h, n] + shaw.value_vectors[near[n]]) for n in range(6))
        assert torch.allclose(found[0, h, m], expected, rtol=0, atol=1e-13)


def test_values_are_added_on_every_backend() -> None:
    shaw = build("shaw").requires_grad_(False)
    q, k, v = (normal(2, HEADS, 6, HEAD_WIDTH, seed=s, dtype=torch.float32) for s in range(3))
    p = positions.arange(6)
    plain = Shaw(HEAD_WIDTH, add_to_values=False)
    plain.key_vectors = shaw.key_vectors
    for backend in ("sdpa", "eager", "flex"):
        found, without = (
            attention(q, k, v, encoding=e, q_positions=p, causal=True, backend=backend) for e in (shaw, plain)
        )
        assert torch.allclose(found[:, :, 0] - without[:, :, 0], shaw.value_vectors[16].expand(2, HEADS, -1), atol=1e-6)


def test_without_value_vectors_it_has_no_value_bias() -> None:
    shaw, p = Shaw(8, add_to_values=False), positions.arange(2)
    assert not shaw.claims.adds_to_values
    with pytest.raises(EncodingError, match="Shaw has no value_bias: it adds only to the scores"):
        shaw.value_bias(normal(1, 1, 2, 2), p, p)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="Shaw: max_distance must be an integer, 1 or more, got 0"):
        Shaw(8, max_distance=0)
