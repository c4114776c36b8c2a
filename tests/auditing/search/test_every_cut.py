"""A leak that shows after one cut only, at a length at which nothing is proved: each module has one hole, or none."""

from __future__ import annotations

import html
import json
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof import audit
from orderproof.auditing.api import audit_context
from orderproof.auditing.search.row_runs import differing_changes
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.laws import TokenDim
from orderproof.laws.proved.causal import LAW as CAUSAL
from orderproof.models import from_module
from orderproof.records.audit import Finding
from orderproof.report.html_page import render_html
from orderproof.report.markdown import render_markdown

MOST = 512  # tokens of stored tables


class StoredMask(nn.Module):
    """A stored mask of booleans over vectors [row, token, width]."""

    hole = 30

    def __init__(self, *, leaks: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        mask = torch.ones(MOST, MOST).tril().bool()
        mask[self.hole, self.hole + 1] = leaks
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return (x @ x.mT).masked_fill(~self.mask[:n, :n], -torch.inf).softmax(-1) @ x


class StoredBias(nn.Module):
    """A stored bias of numbers over ids; the hole is at the last token but one of 64."""

    hole = 62

    def __init__(self, *, leaks: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.project = nn.Embedding(20, 16), nn.Linear(16, 48)
        bias = torch.full((MOST, MOST), torch.finfo(torch.float32).min).triu(1)
        if leaks:
            bias[self.hole, self.hole + 1] = 0
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        n = input_ids.shape[1]
        query, key, value = self.project(self.embed(input_ids)).unsqueeze(1).chunk(3, -1)
        return functional.scaled_dot_product_attention(query, key, value, self.bias[:n, :n]).squeeze(1)


class TokensFirst(StoredMask):
    """Tokens along the first axis, rows along the second."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


class OneSequence(StoredMask):
    """Tokens without rows: each second run is a run of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x[None])[0]


class StoredPlaces(nn.Module):
    """Each token is mixed with the token at a stored place, which is later for one of them."""

    hole = 40

    def __init__(self, *, leaks: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        places = (torch.arange(MOST) - 1).clamp(min=0)
        places[self.hole] += 2 * leaks
        self.register_buffer("places", places)
        self.mix = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mix(x[:, self.places[: x.shape[1]].clamp(max=x.shape[1] - 1)]).tanh()


class MaskedCall(nn.Module):
    """A stored mask and one of pads."""

    hole = 50

    def __init__(self, *, leaks: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.attention = nn.Embedding(20, 16), StoredMask(leaks=False)
        self.attention.mask[self.hole, self.hole + 1] = leaks

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x, n = self.embed(input_ids), input_ids.shape[1]
        seen = self.attention.mask[:n, :n]
        if attention_mask is not None:
            seen = seen & attention_mask[:, None].bool() | torch.eye(n, dtype=torch.bool)
        return x + (x @ x.mT / 4).masked_fill(~seen, -torch.inf).softmax(-1) @ x


VECTORS, IDS = torch.randn(2, 7, 8), torch.randint(0, 20, (2, 7))
CASES = [
    (StoredMask, VECTORS, None), (StoredBias, IDS, None), (TokensFirst, VECTORS.transpose(0, 1), 0),
    (OneSequence, VECTORS[0], 0), (StoredPlaces, VECTORS, None), (MaskedCall, IDS, None),
]  # fmt: skip


def _causal(kind: Callable[..., nn.Module], example: Tensor, axis: int | None, *, leaks: bool) -> list[Finding]:
    subject = from_module(kind(leaks=leaks), (example,), token_axis=axis, assume={"model_kind": "causal_lm"})
    return [f for f in audit(subject, laws=["causal"]).findings if f.verdict != "not_applicable"]


@pytest.mark.parametrize(("kind", "example", "axis"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_hole_in_a_mask_is_found(kind: type[StoredMask], example: Tensor, axis: int | None) -> None:
    found = _causal(kind, example, axis, leaks=True)
    refuted = [f for f in found if f.verdict == "refuted"]
    assert refuted
    assert refuted == found
    for finding in refuted:
        assert finding.witness is not None
        assert finding.witness.change.startswith(f"replace the tokens from {kind.hole + 1} on")
        assert finding.scope.length > kind.hole + 1
        assert "test_every_cut.py" in finding.fix_source


@pytest.mark.parametrize(("kind", "example", "axis"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_mask_without_a_hole_is_correct(kind: type[StoredMask], example: Tensor, axis: int | None) -> None:
    assert {f.verdict for f in _causal(kind, example, axis, leaks=False)} == {"proved"}


def test_a_difference_between_many_rows_is_no_evidence() -> None:
    class ManyRows(StoredMask):
        """Later tokens are read in calls of more than two rows."""

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + (x.cumsum(0)[:, -1:] if len(x) > 2 else 0)

    subject = from_module(ManyRows(leaks=False), (VECTORS,), assume={"model_kind": "causal_lm"})
    search = WitnessSearch(audit_context(subject), CAUSAL, "output", (TokenDim(1),), None)
    changes = list(CAUSAL.every_change(40))
    assert [change.first_replaced for change in changes] == list(range(39, 0, -1))
    assert len(differing_changes(search, 40, changes) or ()) == 39
    assert search.compare_at(40, 2, every=True) is True


def test_the_reason_without_a_theorem_stands_beside_a_pass() -> None:
    class NoTheorem(StoredMask):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) if len(range(int(x.shape[1]))) < MOST else x

    subject = from_module(NoTheorem(leaks=False), (VECTORS,), assume={"model_kind": "causal_lm"})
    report = audit(subject, laws=["causal"])
    (finding,) = report.findings
    assert finding.outcome == "pass"
    assert finding.theorem is not None
    reason = f"for every length not proved: {finding.theorem.reason}"
    assert reason in " ".join(str(report).split())
    assert reason in html.unescape(render_html(report))
    assert reason in render_markdown(report).replace("\\", "")
    assert json.loads(report.model_dump_json())["findings"][0]["theorem"]["reason"] == finding.theorem.reason
