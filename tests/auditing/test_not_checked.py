"""What an audit did not check is said first, for each kind of reason, and a complete twin has nothing to say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.models import from_module

X = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    """Attention that takes a mask, or none."""

    def forward(self, x: Tensor) -> Tensor:
        return (x @ x.mT).softmax(-1) @ x


class Masked(nn.Module):
    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        scores = x @ x.mT
        if attention_mask is not None:
            scores = scores.masked_fill(~attention_mask.bool()[:, None], float("-inf"))
        return scores.softmax(-1) @ x


class Histogram(nn.Module):
    """An operator without a rule, whose witness is not found; or a mean."""

    def __init__(self, *, counted: bool) -> None:
        super().__init__()
        self.counted = counted

    def forward(self, x: Tensor) -> Tensor:
        return torch.histc(x, bins=4, min=-2.0, max=2.0) if self.counted else x.mean(1)


class Whole(nn.Module):
    """One number for all rows, or one for each row."""

    def __init__(self, *, rows: bool) -> None:
        super().__init__()
        self.rows = rows

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((1, 2)) if self.rows else x.mean()


NAMED: dict[str, tuple[str, str, Callable[[], nn.Module], Callable[[], nn.Module]]] = {
    "no mask": ("padding", "it takes no attention mask", Attention, Masked),
    "no rule": (
        "permutation", "operator aten.histc.default has no rule",
        lambda: Histogram(counted=True), lambda: Histogram(counted=False),
    ),
    "no rows": (
        "batch", "no axis of the output runs over rows", lambda: Whole(rows=False), lambda: Whole(rows=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_a_named_law_that_is_not_tested_ends_with_three(name: str) -> None:
    law, reason, without, complete = NAMED[name]
    report = audit(without(), inputs=X, laws=[law])
    ((why, laws),) = report.not_checked.items()
    assert (report.exit_code, len(laws)) == (3, 1)
    assert reason in why
    report = audit(complete(), inputs=X, laws=[law])
    assert (report.exit_code, report.not_checked) == (0, {})


def test_a_law_that_ran_out_of_time_is_not_checked() -> None:
    subject = from_module(Attention(), X)
    report = audit(subject, laws=["batch"], timeout=0.001)
    assert report.exit_code == 3
    assert report.not_checked == {"undecided: the graph was not recorded within 0.001 s": ["OP204 batch"]}
    assert audit(subject, laws=["batch"]).not_checked == {}


@pytest.mark.parametrize("module", [Attention, Masked])
def test_laws_of_a_kind_that_do_not_apply_count_with_strict(module: Callable[[], nn.Module]) -> None:
    reports = [
        audit(module(), inputs=X, kind="encoder", expect={"causal": "any", "permutation": "any", "reversal": "any",
              "prompt_permutation": "any"}, strict=strict)
        for strict in (False, True)
    ]  # fmt: skip
    assert [report.exit_code for report in reports] == [0, 3]
    named = {law for laws in reports[0].not_checked.values() for law in laws}
    assert "OP304 context_length" in named
    assert ("OP202 padding" in named) == (module is Attention)
    assert "OP203 packing" not in named  # nothing is expected of it


def test_a_kind_without_expectations_is_checked_by_what_it_describes() -> None:
    described = audit(
        Attention(), inputs=X, laws=["permutation", "batch"], expect={"permutation": "any", "batch": "any"}
    )
    assert (described.exit_code, described.not_checked) == (0, {})
    nothing = audit(Attention(), inputs=X, laws=["padding", "packing"], expect={"padding": "any", "packing": "any"})
    assert (nothing.exit_code, nothing.not_checked) == (3, {})
    strict = audit(Attention(), inputs=X, strict=True)
    assert (strict.exit_code, strict.not_checked) == (0, {})  # stateless and save_load are expected, and were tested
