"""The edit of a line of attention that a call on a cache needs: what is edited, and that it repairs the model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from orderproof import audit
from orderproof.laws.causal_mask_line import cached_line_change

MASK = "attn_mask=q.new_ones(q.shape[-2], k.shape[-2]).tril(k.shape[-2] - q.shape[-2]).bool()"


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("y = F.scaled_dot_product_attention(q, k, v)", f"y = F.scaled_dot_product_attention(q, k, v, {MASK})"),
        (
            "return scaled_dot_product_attention(q, k, v, is_causal=n > 1, scale=s)",
            f"return scaled_dot_product_attention(q, k, v, {MASK}, scale=s)",
        ),
    ],
)
def test_a_call_without_a_mask_gets_one_that_ends_with_the_keys(line: str, edited: str) -> None:
    assert cached_line_change(f"    {line}") == f"-{line}\n+{edited}"


@pytest.mark.parametrize(
    "line",
    [
        "y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)", "y = F.scaled_dot_product_attention(q, k, v, m)",
        "y = F.scaled_dot_product_attention(q, k, v, **options)", "y = F.scaled_dot_product_attention(*states)",
        "y = F.scaled_dot_product_attention(", "y = attention(q, k, v)", "y = scaled_dot_product_attention(f(x), k, v)",
    ],
)  # fmt: skip
def test_another_line_is_left_alone(line: str) -> None:
    assert cached_line_change(line) == ""


class Attention(nn.Module):
    """Causal attention whose calls on a cache see all keys, or the edited line."""

    def __init__(self, *, repaired: bool) -> None:
        super().__init__()
        self.qkv, self.repaired = nn.Linear(8, 24), repaired

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        q, k, v = (each[:, None] for each in self.qkv(x).chunk(3, -1))
        if past is None:
            y = scaled_dot_product_attention(q, k, v, is_causal=True)
            return y[:, 0], (k, v)
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        if self.repaired:
            mask = q.new_ones(q.shape[-2], k.shape[-2]).tril(k.shape[-2] - q.shape[-2]).bool()
            return scaled_dot_product_attention(q, k, v, attn_mask=mask)[:, 0], (k, v)
        y = scaled_dot_product_attention(q, k, v)
        return y[:, 0], (k, v)


class Cached(nn.Module):
    """A decoder of one layer; without a residual, no operator that both kinds of calls have follows attention."""

    def __init__(self, *, repaired: bool, residual: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.residual = residual
        self.words, self.attention = nn.Embedding(50, 8), Attention(repaired=repaired)

    def forward(self, ids: Tensor, past: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x = self.words(ids)
        y, past = self.attention(x, past)
        return (x + y if self.residual else y), past  # type: ignore[no-any-return]


@pytest.mark.parametrize("residual", [True, False])
def test_the_edit_of_a_chunk_repairs_the_model(residual: bool) -> None:
    ids = torch.randint(50, (2, 7))
    (finding,) = audit(
        Cached(repaired=False, residual=residual), inputs=ids, laws=["chunked_prefill"], kind="decoder"
    ).findings
    line = "y = scaled_dot_product_attention(q, k, v)"
    assert (finding.verdict, finding.fix_line) == ("refuted", line)
    assert finding.remedy_diff == f"-{line}\n+{line[:-1]}, {MASK})"
    (finding,) = audit(
        Cached(repaired=True, residual=residual), inputs=ids, laws=["chunked_prefill"], kind="decoder"
    ).findings
    assert finding.verdict == "held"
