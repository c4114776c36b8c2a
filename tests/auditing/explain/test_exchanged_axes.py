"""A model whose tokens are along the axis of rows: one cause is reported, with the option that states the axis."""

from __future__ import annotations

import torch
from torch import nn

from orderproof import audit

LAWS = ["permutation", "causal", "batch", "batch_composition"]


def _sequence_first() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(16, 2, 32)


def test_tokens_along_the_axis_of_rows_are_one_cause() -> None:
    report = audit(_sequence_first(), inputs=torch.randn(7, 2, 16), kind="encoder", laws=LAWS)
    failed = {f.law: f for f in report.findings if f.outcome == "fail"}
    assert {name: f.same_cause_as for name, f in failed.items()} == {
        "permutation": "OP204", "causal": "OP204", "batch": "", "batch_composition": "OP204",
    }  # fmt: skip
    assert "--token-axis 0" in failed["batch"].remedy
    assert "batch_first=True" in failed["batch"].remedy_diff


def test_a_recurrent_decoder_with_exchanged_axes_has_one_cause() -> None:
    torch.manual_seed(0)
    laws = ["causal", "batch", "batch_composition"]
    report = audit(nn.LSTM(4, 4), inputs=torch.randn(7, 2, 4), kind="decoder", laws=laws)
    found = {f.law: f for f in report.findings if f.verdict != "not_applicable"}  # of the last state alone
    assert (found["causal"].outcome, found["causal"].vacuous) == ("pass", True)
    assert "--token-axis 0" in found["batch"].remedy
    assert found["batch_composition"].same_cause_as == "OP204"


def test_with_the_axis_stated_rows_are_independent() -> None:
    report = audit(_sequence_first(), inputs=torch.randn(7, 2, 16), kind="encoder", laws=LAWS, token_axis=0)
    assert {f.law for f in report.findings if f.outcome == "fail"} == {"permutation"}  # it has no positions


def test_a_model_that_mixes_rows_and_tokens_has_another_cause() -> None:
    class Both(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x - x.mean((0, 1), keepdim=True)

    report = audit(Both(), inputs=torch.randn(3, 7, 4), kind="encoder", laws=["permutation", "batch"])
    (found,) = [f for f in report.findings if f.law == "batch"]
    assert found.outcome == "fail"
    assert "--token-axis" not in found.remedy


def test_no_token_sees_another_without_other_rows() -> None:
    report = audit(nn.Linear(4, 4), inputs=torch.randn(2, 7, 4), kind="encoder", laws=["permutation", "batch"])
    (found,) = [f for f in report.findings if f.outcome == "fail"]
    assert (found.law, found.vacuous, found.same_cause_as) == ("permutation", True, "")
    assert found.remedy.startswith("No token sees another.")
