"""Reasons of undecided laws: what was not shown, and what to change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof import prove
from orderproof.auditing.explain.undecided_reasons import in_words_of_undecided
from tests.function_module import Function

X = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            "aten.add.Tensor (f.py:3): token 0 comes to depend on token 6",
            "aten.add.Tensor (f.py:3): no rule shows that token 0 does not read token 6",
        ),
        (
            "the output at row 1, token 0 may depend on anything",
            "no rule says what the output at row 1, token 0 reads",
        ),
        (
            "entry 0 of the output, before token 0, may depend on token 1",
            "no rule shows that entry 0 of the output, before token 0 does not read token 1",
        ),
        ("aten.foo.default (f.py:3): it has no rule", "aten.foo.default (f.py:3): it has no rule"),
    ],
)
def test_what_no_rule_excludes_is_not_said_to_be(reason: str, words: str) -> None:
    assert in_words_of_undecided(reason) == words


SENTENCES: list[tuple[str, Callable[[Tensor], Tensor], str]] = [
    (
        "causal",
        lambda x: x if x.sum() > 1e9 else 2 * x,
        "; choose by `torch.where`, or move the check out of `forward`",
    ),
    (
        "causal",
        lambda x: x + 1e-30 * x[x > 0].mean(),
        "; compute every row, and set to zero by a mask what is left out",
    ),
    ("causal", lambda x: F.dropout(x, 0.5), "audit in evaluation mode, and fill the memory of `torch.empty`"),
    ("causal", lambda x: x + 1e-30 * x.amax(1, keepdim=True), "no rule shows that token 0 does not read token 6"),
]


@pytest.mark.parametrize(("law", "function", "advice"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_reason_says_what_to_change(law: str, function: Callable[[Tensor], Tensor], advice: str) -> None:
    finding = prove(Function(function), law, inputs=X)
    assert finding.verdict == "undecided"
    assert advice in finding.reason
