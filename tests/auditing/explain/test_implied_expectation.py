"""A mask that is causal but for the next token is an expectation; a mask that is meant to show later tokens is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from orderproof.auditing.api import audit_context
from orderproof.auditing.decide.relation import ProofOptions
from orderproof.auditing.decide.verdict import prove_law
from orderproof.laws import find_model_law
from orderproof.models import from_module
from orderproof.records.audit import Finding

TOKENS = 7
UNSTATED = ProofOptions()
Mask = Callable[[Tensor, Tensor], Tensor]  # of the indices of queries and keys: which keys a query sees
OFF_BY_ONE: dict[str, Mask] = {
    "tril(1)": lambda i, j: j <= i + 1,
    "not triu(2)": lambda i, j: ~(j - i >= 2),
}
OTHERS: dict[str, Mask] = {
    "all keys": lambda i, j: (i == i) & (j == j),
    "a window of one": lambda i, j: (i - j).abs() <= 1,
    "a window of three": lambda i, j: (i - j).abs() <= 3,
    "a window that sees one later token": lambda i, j: (j <= i + 1) & (i - j <= 3),
    "a prefix of two": lambda i, j: (j <= i) | (j < 2),
    "a prefix of all but one": lambda i, j: (j <= i) | (j < TOKENS - 1),
    "blocks of two": lambda i, j: j // 2 <= i // 2,
    "a global first token": lambda i, j: ((i - j).abs() <= 1) | (i == 0) | (j == 0),
    "a look-ahead of two": lambda i, j: j <= i + 2,
    "later tokens only": lambda i, j: j >= i,
    "one leaking pair": lambda i, j: (j <= i) | ((i == 2) & (j == 3)),
    "dilated": lambda i, j: (i - j) % 2 == 0,
}


class Attention(nn.Module):
    """A layer of attention for each mask [queries, keys] or [heads, queries, keys]; None attends everywhere."""

    def __init__(self, masks: list[Tensor | None], fill: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.masks, self.fill = masks, fill
        self.qkv = nn.ModuleList(nn.Linear(8, 24) for _ in masks)

    def forward(self, x: Tensor) -> Tensor:
        for mask, qkv in zip(self.masks, self.qkv, strict=True):
            q, k, v = (each.unflatten(-1, (2, 4)).transpose(1, 2) for each in qkv(x).chunk(3, dim=-1))
            if self.fill and mask is not None:
                scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, float("-inf"))
                y = scores.softmax(-1) @ v
            else:
                y = scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + y.transpose(1, 2).flatten(2)
        return x


def grid(mask: Mask) -> Tensor:
    return mask(torch.arange(TOKENS)[:, None], torch.arange(TOKENS)[None, :])


def causal(
    masks: list[Tensor | None], options: ProofOptions = UNSTATED, kind: str | None = None, *, fill: bool = False
) -> Finding:
    assume = None if kind is None else {"model_kind": kind}
    subject = from_module(Attention(masks, fill), torch.randn(1, TOKENS, 8), token_axis=1, assume=assume)
    (finding,) = prove_law(audit_context(subject), find_model_law("causal"), options)
    return finding


@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize("name", OFF_BY_ONE)
def test_a_causal_mask_that_is_off_by_one_is_expected_to_be_causal(name: str, fill: bool) -> None:
    finding = causal([grid(OFF_BY_ONE[name])], fill=fill)
    assert (finding.verdict, finding.expected, finding.expectation_met) == ("refuted", "holds", False)
    assert "hides all later tokens but the next one" in finding.expected_because
    assert finding.remedy
    assert finding.expected_because.endswith("state it: --as encoder or --expect causal=fails")


class PaddedAttention(nn.Module):
    """Attention under a causal mask that is off by one and a mask of pads, which are zeros."""

    def __init__(self, hides: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.hides, self.words, self.qkv = hides, nn.Embedding(20, 8), nn.Linear(8, 24)

    def forward(self, tokens: Tensor) -> Tensor:
        n, pads = tokens.shape[1], (tokens == 0)[:, None, :]
        q, k, v = self.qkv(self.words(tokens)).chunk(3, dim=-1)
        if not self.hides:
            visible = torch.ones(n, n, dtype=torch.bool).tril(1) & ~pads
            return scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], attn_mask=visible[:, None])[:, 0]
        hidden = torch.ones(n, n, dtype=torch.bool).triu(2) | pads
        return (q @ k.transpose(-1, -2)).masked_fill(hidden, float("-inf")).softmax(-1) @ v


@pytest.mark.parametrize("hides", [False, True])
def test_a_mask_of_pads_beside_it_changes_nothing(hides: bool) -> None:
    subject = from_module(PaddedAttention(hides), torch.randint(1, 20, (2, TOKENS)))
    (finding,) = prove_law(audit_context(subject), find_model_law("causal"))
    assert (finding.verdict, finding.expected) == ("refuted", "holds")
    edit = ".triu(1)" if hides else ".tril(0)"
    assert edit in finding.remedy_diff.splitlines()[1]


@pytest.mark.parametrize("name", OTHERS)
def test_a_mask_of_another_form_is_no_expectation(name: str) -> None:
    finding = causal([grid(OTHERS[name])])
    assert (finding.verdict, finding.expected, finding.expected_because) == ("refuted", "any", "")
    assert finding.expectation_met


def test_every_place_that_violates_the_law_must_have_such_a_mask() -> None:
    shifted, right = grid(OFF_BY_ONE["tril(1)"]), torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    assert causal([right, shifted]).expected == "holds"
    assert causal([shifted, shifted]).expected == "holds"
    for other in (None, grid(OTHERS["all keys"]), grid(OTHERS["a window of three"])):
        assert causal([shifted, other]).expected == "any"
        assert causal([other, shifted]).expected == "any"
    assert causal([torch.stack([shifted, shifted])]).expected == "holds"
    assert causal([torch.stack([shifted, grid(OTHERS["all keys"])])]).expected == "any"


def test_a_causal_model_gets_no_expectation() -> None:
    finding = causal([torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()])
    assert (finding.verdict, finding.expected, finding.expected_because) == ("proved", "any", "")


def test_what_the_user_states_decides() -> None:
    masks = [grid(OFF_BY_ONE["tril(1)"])]
    for options, kind, expected, met in (
        (ProofOptions(expect="any"), None, "any", True),
        (ProofOptions(expect="fails"), None, "fails", True),
        (ProofOptions(expect="holds"), None, "holds", False),
        (UNSTATED, "encoder", "fails", True),
        (UNSTATED, "causal_lm", "holds", False),
    ):
        finding = causal(masks, options, kind)
        assert (finding.expected, finding.expectation_met) == (expected, met)
        assert finding.expected_because.endswith("like a causal mask that is off by one") is not met


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, 2 ** (n * n) - 1))))
def test_only_one_form_suggests_a_causal_model(drawn: tuple[int, int]) -> None:
    tokens, bits = drawn
    law = find_model_law("causal")
    mask = np.array([bits >> k & 1 for k in range(tokens**2)], dtype=bool).reshape(tokens, tokens)
    shifted = np.tri(tokens, k=1, dtype=bool)
    assert (law.expectation_from_mask(mask)[0] == "holds") == (tokens >= 4 and np.array_equal(mask, shifted))
    assert (law.expectation_from_mask(shifted)[0] == "holds") == (tokens >= 4)
    assert find_model_law("padding").expectation_from_mask(shifted) == ("any", "")
