from __future__ import annotations

import pytest
import torch

from orderproof import positions
from orderproof.blocks import AttentionInputs, KeyValueCache, SelfAttention
from orderproof.encodings import NoEncoding, Rotary, Sinusoidal
from orderproof.errors import EncodingError, UsageError
from tests.encodings.examples import every_mask, normal


@every_mask
def test_it_is_torch_multi_head_attention(causal: bool) -> None:
    torch.manual_seed(0)
    ours = SelfAttention(32, 4, causal=causal).double()
    theirs = torch.nn.MultiheadAttention(32, 4, batch_first=True, dtype=torch.float64)
    three = (ours.to_query, ours.to_key, ours.to_value)
    theirs.in_proj_weight.data = torch.cat([view.weight for view in three])
    theirs.in_proj_bias.data = torch.cat([view.bias for view in three])
    theirs.out_proj.load_state_dict(ours.to_output.state_dict())
    x = normal(2, 7, 32)
    hidden = torch.ones(7, 7).triu(1).bool() if causal else None
    expected, _ = theirs(x, x, x, attn_mask=hidden, need_weights=False)
    assert torch.allclose(
        ours(x, AttentionInputs(encoding=NoEncoding(), positions=positions.arange(7))), expected, atol=1e-13
    )


def test_attention_without_encoding_is_permutation_equivariant() -> None:
    torch.manual_seed(0)
    block, x = SelfAttention(32, 4, causal=False).double(), normal(2, 7, 32)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    p = positions.arange(7)
    without = AttentionInputs(encoding=NoEncoding(), positions=p)
    assert (block(x[:, order], without) - block(x, without)[:, order]).abs().max() < 1e-13
    rotary = AttentionInputs(encoding=Rotary(8), positions=p)
    assert (block(x[:, order], rotary) - block(x, rotary)[:, order]).abs().max() > 1e-3


def test_invalid_arguments_are_rejected() -> None:
    for heads in (5, 0):
        with pytest.raises(UsageError, match=f"heads: expected a number that divides width=32, got {heads}"):
            SelfAttention(32, heads, causal=True)
    block, x, p = SelfAttention(32, 4, causal=False).double(), normal(2, 3, 32), positions.arange(3)
    cache = KeyValueCache(2, 4, 8, 8, dtype=torch.float64)
    with pytest.raises(UsageError, match="cache: expected causal attention; without it, later tokens change"):
        block(x, AttentionInputs(encoding=NoEncoding(), positions=p, cache=cache))
    with pytest.raises(EncodingError, match="Sinusoidal acts on embeddings"):
        block(x, AttentionInputs(encoding=Sinusoidal(32), positions=p))
