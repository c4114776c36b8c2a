"""Branches on data: the one that inputs take is recorded, and what is proved of it is not proved of the others."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from orderproof import prove
from orderproof.auditing.api import audit_context
from orderproof.auditing.certificates import certificates_of
from orderproof.auditing.verdict import prove_law
from orderproof.errors import CaptureError
from orderproof.laws import find_proved_law
from orderproof.models import from_module
from orderproof.prover.recording.branch_answers import answers_of
from orderproof.prover.recording.recording import record

IDS = torch.randint(2, 33, (2, 8), generator=torch.Generator().manual_seed(0))
VECTORS = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
CONDITION = "for inputs for which, in both runs, the branch on data at test_branches.py"


class PaddedEncoder(nn.Module):
    """ESM-2: the mask of pads is dropped if there is no pad. `faulty`: pads are dropped from the first row only."""

    def __init__(self, faulty=False):
        super().__init__()
        self.faulty = faulty
        self.embedding = nn.Embedding(33, 16, padding_idx=1)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, tokens):
        mask = tokens.eq(1)
        x = self.embedding(tokens) * (1 - mask.unsqueeze(-1).float())
        if not mask.any():
            mask = None
        if self.faulty:
            x = x * x[:1].sum()
        return x + self.attention(x, x, x, key_padding_mask=mask, need_weights=False)[0]


class Function(nn.Module):
    """A module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("law", ["batch", "permutation"])
def test_what_is_proved_of_one_branch_is_the_reason(law):
    """Rows with and without pads take different branches, of whose outputs nothing says that they are equal."""
    finding = prove(PaddedEncoder().eval(), law, inputs=IDS)
    assert finding.verdict == "undecided"
    assert finding.reason.startswith(f"it is proved {CONDITION}")
    assert finding.reason.endswith("is False, and not for all inputs")


def test_a_proof_of_one_branch_has_no_certificate():
    context = audit_context(from_module(PaddedEncoder().eval(), IDS), keep_walks=True)
    (finding,) = prove_law(context, find_proved_law("batch"))
    assert certificates_of(context, finding) == []
    assert any(CONDITION in note for note in context.notes)


@pytest.mark.parametrize("law", ["batch", "permutation"])
def test_a_branch_that_no_random_input_takes_may_violate_a_law(law):
    def rare(x):
        if (x[1:] > 20).any():
            return x.cumsum(1)
        return x * 2

    finding = prove(Function(rare), law, inputs=VECTORS)
    assert finding.verdict == "undecided"
    assert CONDITION in finding.reason


def test_a_faulty_twin_is_refuted():
    assert prove(PaddedEncoder(faulty=True).eval(), "batch", inputs=IDS).verdict == "refuted"


@pytest.mark.parametrize("pads", [0, 3])
def test_the_inputs_choose_the_branch(pads):
    tokens = IDS.clone()
    tokens[1, 8 - pads :] = 1
    captured = record(PaddedEncoder().eval(), (tokens,), branching=True)
    assert captured.branches == (pads > 0,)
    assert captured.condition.endswith(f"is {pads > 0}")
    has_mask = any("masked_fill" in str(n.target) or "logical_or" in str(n.target) for n in captured.graph.nodes)
    assert (captured.copy().branches, captured.copy().condition) == (captured.branches, captured.condition)
    assert has_mask or not pads


def test_without_inputs_that_choose_a_recording_is_refused():
    with pytest.raises(CaptureError, match="control flow depends on data"):
        record(PaddedEncoder().eval(), (IDS,))


def test_a_law_that_another_branch_violates_is_refuted():
    """Each branch alone keeps rows apart; which one a row takes depends on another row."""
    branch = Function(lambda x: x * 2 if x[1].sum() > 0 else x)
    assert prove(branch, "batch", inputs=VECTORS).verdict == "refuted"
    first = Function(lambda x: x * 2 if x[0, -1, 0] > 0 else x)
    assert prove(first, "causal", inputs=VECTORS).verdict == "refuted"


def test_both_answers_are_conditions():
    def two(x):
        if x.isnan().any():
            raise ValueError("no number")
        return x.cumsum(1) if x.isfinite().all() else x

    finding = prove(Function(two), "causal", inputs=VECTORS)
    assert finding.verdict == "undecided"
    assert finding.reason.count("the branch on data") == 2
    assert "is False and" in finding.reason
    assert "is True, and not for all inputs" in finding.reason


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.mean().item(),
        lambda x: x[: int(x.abs().sum() * 0 + 2)],
        lambda x: x * sum(1 for row in x.flatten(1) for value in row if value > 0),
        lambda x: x if torch.equal(x, x.flip(0)) else x * 2,
        lambda x: x if x.tolist()[0][0][0] > 0 else x * 2,
    ],
)
def test_other_values_are_not_read(function):
    """Numbers, and more questions than a model asks about pads."""
    for law in ("permutation", "batch", "causal"):
        assert prove(Function(function), law, inputs=VECTORS).verdict != "proved"


def test_a_condition_that_changes_between_calls_is_not_recorded():
    class Alternating(nn.Module):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            return x * 2 if (x.sum() * (-1) ** type(self).calls > 0) else x

    assert prove(Alternating(), "permutation", inputs=VECTORS).verdict != "proved"


def test_answers_come_in_the_order_of_the_call_and_constants_count():
    def asks(x):
        first = bool(torch.ones(1) > 0)
        second = bool((x > 100).any())
        third = bool((x < 100).all())
        return x + first + second + third

    assert answers_of(Function(asks), (VECTORS,)) == [True, False, True]
    captured = record(Function(asks), (VECTORS,), branching=True)
    assert captured.condition.count("the branch on data") == 2
