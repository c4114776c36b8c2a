"""OP406 stateless compares a call that comes first with the same call after another one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof import audit
from orderproof.laws.measured import stateless
from orderproof.models import from_module
from orderproof.records.audit import Finding
from tests.laws.measured.kept_by_shape import KINDS, ImageAdapter, Images, OfPart, Reader, line_of

SAME_SHAPE = "another call of the same shape as the second one, and as the first"


class BuildsItsMask(nn.Module):
    """The causal mask has the length of the first call; later tokens are visible past its end."""

    keeps_mask = True

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.project = nn.Embedding(50, 16), nn.Linear(16, 48)
        self.mask: Tensor | None = None

    def forward(self, input_ids: Tensor) -> Tensor:
        """Outputs [batch, token, 16]."""
        n = input_ids.shape[1]
        if self.mask is None or not self.keeps_mask:
            self.mask = torch.ones(n, n, dtype=torch.bool).tril()
        visible = torch.ones(n, n, dtype=torch.bool)
        m = min(n, len(self.mask))
        visible[:m, :m] = self.mask[:m, :m]
        query, key, value = self.project(self.embed(input_ids)).chunk(3, -1)
        return functional.scaled_dot_product_attention(query, key, value, visible)


class BuildsItsMaskInEachCall(BuildsItsMask):
    """The same without the defect."""

    keeps_mask = False


def _finding(model: nn.Module) -> Finding:
    torch.manual_seed(0)
    (finding,) = audit(from_module(model, (torch.randint(0, 50, (2, 7)),)), laws=["stateless"]).findings
    return finding


def test_a_mask_of_the_length_of_the_first_call_is_found() -> None:
    finding = _finding(BuildsItsMask())
    assert (finding.verdict, finding.outcome) == ("refuted", "fail")
    assert finding.measurement is not None
    refuted = [c.description for c in finding.measurement.comparisons if c.verdict == "refuted"]
    assert refuted == ["a longer call as the second one, and as the first"]


@pytest.mark.parametrize(
    ("stated", "most", "expected"),
    [(128, None, [15, 129, 1]), (128, 4096, [15, 129, 1]), (512, 512, [15, 1]), (9, 9, [9, 1]), (None, 32, [15, 1])],
)
def test_a_call_is_longer_than_the_stated_length_only_where_calls_may_be(
    monkeypatch: pytest.MonkeyPatch, stated: int | None, most: int | None, expected: list[int]
) -> None:
    monkeypatch.setattr(stateless, "affordable_thresholds", lambda _: [])
    adapter: Any = SimpleNamespace(has_token_axis=True, max_positions=most, config_max_positions=stated)
    assert stateless._lengths(adapter, 7, at_default_length=True) == expected


def test_a_mask_that_each_call_builds_is_correct() -> None:
    finding = _finding(BuildsItsMaskInEachCall())
    assert finding.measurement is not None
    compared = {c.description for c in finding.measurement.comparisons if c.float32 is not None}
    assert {f"a {word} call as the second one, and as the first" for word in ("longer", "shorter")} <= compared
    assert finding.verdict == "held"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_value_that_is_kept_by_shape_is_found_at_its_line(kind: type[Reader]) -> None:
    ids = torch.randint(0, kind.vocabulary - 1, (2, 7), generator=torch.Generator().manual_seed(0))
    ids[0, 0] = kind.vocabulary - 1
    (kept,) = audit(from_module(kind(keeps=True), (ids,)), laws=["stateless"]).findings
    assert (kept.verdict, kept.outcome) == ("refuted", "fail")
    assert kept.witness is not None
    assert kept.witness.change == SAME_SHAPE
    assert kept.witness.first_violating_source == line_of(kind)
    (none,) = audit(from_module(kind(keeps=False), (ids,)), laws=["stateless"]).findings
    assert none.verdict == "held"


def test_inputs_without_tokens_are_compared_at_their_shape() -> None:
    (kept,) = audit(ImageAdapter(keeps=True), laws=["stateless"]).findings
    assert kept.verdict == "refuted"
    assert kept.witness is not None
    assert kept.witness.first_violating_source == line_of(Images)
    (none,) = audit(ImageAdapter(keeps=False), laws=["stateless"]).findings
    assert none.verdict == "held"
    assert none.measurement is not None
    assert SAME_SHAPE in {c.description for c in none.measurement.comparisons if c.float32 is not None}


def test_the_module_of_a_kept_value_is_named() -> None:
    (kept,) = audit(from_module(OfPart(keeps=True), (torch.randint(0, 12, (2, 7)),)), laws=["stateless"]).findings
    assert kept.witness is not None
    assert kept.witness.first_violating_module == "masks"
