from __future__ import annotations

import itertools
import math

import pytest
import torch
from transformers import XLNetConfig
from transformers.models.xlnet.modeling_xlnet import XLNetModel

from orderproof import positions
from orderproof.encodings import AttentionContent, TransformerXL
from orderproof.errors import EncodingError
from tests.encodings.examples import WIDTH, build, normal


@pytest.mark.parametrize("memory", [0, 3])
def test_attention_is_that_of_transformers_xlnet(memory: int) -> None:
    config = XLNetConfig(vocab_size=5, d_model=WIDTH, n_layer=1, n_head=4, d_inner=8, dropout=0.0, attn_type="bi")
    torch.manual_seed(0)
    model = XLNetModel(config).eval().double()
    theirs = model.layer[0].rel_attn
    for bias in (theirs.r_w_bias, theirs.r_r_bias):
        torch.nn.init.normal_(bias)
    ours = TransformerXL(WIDTH, 4).double()
    with torch.no_grad():
        ours.u.copy_(theirs.r_w_bias)
        ours.v.copy_(theirs.r_r_bias)
        ours.weight.copy_(theirs.r.permute(1, 2, 0))
    queries, keys = 6, 6 + memory
    q, k, v = (normal(2, 4, n, 8, seed=s) for s, n in enumerate((queries, keys, keys)))
    waves = model.relative_positional_encoding(queries, keys, bsz=2).double()
    waved = torch.einsum("ibh,hnd->ibnd", waves, theirs.r)
    rows = [x.permute(2, 0, 1, 3) for x in (q, k, v)]
    expected = theirs.rel_attn_core(*rows, waved).permute(1, 2, 0, 3)
    content = AttentionContent(q=q, k=k, scale=1 / math.sqrt(8))
    bias = ours.bias(positions.offset(memory, queries), positions.arange(keys), content=content, dtype=torch.float64)
    found = (q @ k.mT / math.sqrt(8) + bias).softmax(-1) @ v
    # Their waves are made in float32.
    assert torch.allclose(found, expected, rtol=0, atol=1e-5)


def test_bias_is_the_formula_of_the_paper() -> None:
    xl = build("transformer_xl").double().requires_grad_(False)
    q, k = normal(2, 4, 3, 8), normal(2, 4, 5, 8, seed=1)
    p, s = torch.tensor([[3, 0, 9], [70_000, 1, 2]]), torch.tensor([[0, 1, 2, 3, 4], [69_999, 5, 2, 1, 0]])
    found = xl.bias(p, s, content=AttentionContent(q=q, k=k, scale=0.3), dtype=torch.float64)
    for b, h, i, j in itertools.product(range(2), range(4), range(3), range(5)):
        d = int(p[b, i]) - int(s[b, j])
        angles = [d * 10_000 ** (-2 * w / WIDTH) for w in range(WIDTH // 2)]
        waves = torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles], dtype=torch.float64)
        score = (q[b, h, i] + xl.u[h]) @ k[b, h, j] + (q[b, h, i] + xl.v[h]) @ (xl.weight[h] @ waves)
        assert float(found[b, h, i, j]) == pytest.approx(0.3 * float(score - q[b, h, i] @ k[b, h, j]), abs=1e-9)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="TransformerXL: heads must divide width=8, got 3"):
        TransformerXL(8, 3)
    xl, p, x = build("transformer_xl"), positions.arange(2), normal(1, 2, 2, 8)
    with pytest.raises(EncodingError, match=r"TransformerXL: content.q must be floating \[batch, 4, token, 8\]"):
        xl.bias(p, p, content=AttentionContent(q=x, k=x, scale=1.0))
