"""Rows that meet in a second input: the law is refuted, or the proof names the input that both runs share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.number_limits import FINITE_SCORES_ASSUMPTION
from orderproof.records.audit import Report

Mixed = Callable[[Tensor, Tensor], Tensor]  # of tokens [2, 7, 8] and a second input


class Mixing(nn.Module):
    """A module that computes from tokens and a second input."""

    def __init__(self, mixed: Mixed) -> None:
        super().__init__()
        self.mixed = mixed

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        return self.mixed(x, memory)


def attend(x: Tensor, keys: Tensor) -> Tensor:
    return (x @ keys.mT).softmax(-1) @ keys


# Rows meet in a memory [row, place, width] without tokens, which both runs share.
WITHOUT_TOKENS: dict[str, Mixed] = {
    "mean over rows and places": lambda x, m: x + m.mean((0, 1)),
    "sum over rows": lambda x, m: x + m.sum(0)[0],
    "row before": lambda x, m: x + m.roll(1, 0).mean(1, keepdim=True),
    "reversed rows": lambda x, m: x + m.flip(0)[:, :1],
    "largest of all rows": lambda x, m: x * m.amax(0)[0],
    "sum from the first row": lambda x, m: x + m.cumsum(0)[:, :1],
    "normalized over rows": lambda x, m: x + ((m - m.mean(0)) / m.std(0))[:, :1],
    "attention to the memory of all rows": lambda x, m: attend(x, m.flatten(0, 1)),
    "sorted rows": lambda x, m: x + m.sort(0).values[:, :1],
    "product of rows": lambda x, m: x + torch.einsum("rpw,spw->w", m, m),
    "softmax over rows": lambda x, m: x * m.softmax(0)[:, :1],
    "first row": lambda x, m: x + m[:1, :1],
    "a branch on the memory of all rows": lambda x, m: torch.where(m.sum() > 0, x, -x),
    "rows as a batch norm": lambda x, m: (
        x + nn.functional.batch_norm(m, None, None, training=True).mean(1, keepdim=True)
    ),
}
# Tokens meet in a second input that moves with the tokens, [row, token, width].
WITH_TOKENS: dict[str, Mixed] = {
    "later tokens": lambda x, m: x + m.flip(1).cumsum(1).flip(1),
    "mean over tokens": lambda x, m: x + m.mean(1, keepdim=True),
    "next token": lambda x, m: x + m.roll(-1, 1),
    "attention without a mask": attend,
    "last token": lambda x, m: x + m[:, -1:],
    "sorted tokens": lambda x, m: x * m.sort(1).values,
}


def report_of(mixed: Mixed, places: int, law: str) -> Report:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(2, 7, 8, generator=generator), torch.randn(2, places, 8, generator=generator)
    return audit(Mixing(mixed), inputs=inputs, laws=[law], together=places == 7)


@pytest.mark.parametrize("name", WITHOUT_TOKENS)
def test_an_input_that_both_runs_share_is_named(name: str) -> None:
    report = report_of(WITHOUT_TOKENS[name], 5, "batch")
    (finding,) = report.findings
    assert finding.verdict == "proved", finding.reason
    assert any("both runs get the same input 1" in note for note in report.notes)
    named = "the same in both runs: input memory"
    assert named in finding.scope.assumptions
    assert finding.theorem is not None
    assert not finding.theorem.proved or any("the same in both runs" in text for text in finding.theorem.assumptions)


@pytest.mark.parametrize("name", WITH_TOKENS)
def test_a_leak_through_a_second_input_of_tokens_is_refuted(name: str) -> None:
    (finding,) = report_of(WITH_TOKENS[name], 7, "causal").findings
    assert finding.verdict == "refuted"


# Masks that are finite numbers, whose hidden scores have to be small: the assumption is stated.
FINITE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "filled": lambda s, low: s.masked_fill(~low, -1e9),
    "filled with the least number": lambda s, low: s.masked_fill(~low, torch.finfo(s.dtype).min),
    "added": lambda s, low: s + torch.zeros(low.shape).masked_fill(~low, -1e9),
    "added product": lambda s, low: s + (1 - low.float()) * -1e9,
    "subtracted": lambda s, low: s - (1 - low.float()) * 1e9,
    "chosen": lambda s, low: torch.where(low, s, -1e9),
    "chosen from a tensor": lambda s, low: torch.where(low, s, torch.tensor(-1e9)),
    "scaled after": lambda s, low: s.masked_fill(~low, -1e9) / 8,
    "triangle of a full matrix": lambda s, low: s + torch.full(low.shape, -1e9).triu(1),
    "added twice": lambda s, low: s + 2 * torch.zeros(low.shape).masked_fill(~low, -1e9),
    "largest taken away": lambda s, low: (f := s.masked_fill(~low, -1e9)) - f.amax(-1, keepdim=True),
    "clamped at the mask": lambda s, low: s.masked_fill(~low, -1e9).clamp(min=-1e9),
}
EXACT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "filled": lambda s, low: s.masked_fill(~low, -torch.inf),
    "chosen": lambda s, low: torch.where(low, s, -torch.inf),
}


def masked(hide: Callable[[Tensor, Tensor], Tensor]) -> Mixed:
    def mixed(x: Tensor, memory: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        return hide(x @ x.mT / 8, place <= place[:, None]).softmax(-1) @ (x + memory)

    return mixed


@pytest.mark.parametrize("name", FINITE)
def test_a_proof_with_a_finite_mask_says_that_hidden_scores_are_small(name: str) -> None:
    (finding,) = report_of(masked(FINITE[name]), 7, "causal").findings
    assert finding.verdict == "proved", finding.reason
    assumptions = finding.scope.assumptions + (finding.theorem.assumptions if finding.theorem else ())
    assert any(text.startswith(FINITE_SCORES_ASSUMPTION) for text in assumptions)
    assert "of visible and of hidden tokens" in FINITE_SCORES_ASSUMPTION


@pytest.mark.parametrize("name", EXACT)
def test_a_proof_with_minus_infinity_needs_no_such_assumption(name: str) -> None:
    (finding,) = report_of(masked(EXACT[name]), 7, "causal").findings
    assert finding.verdict == "proved", finding.reason
    assert FINITE_SCORES_ASSUMPTION not in finding.scope.assumptions
