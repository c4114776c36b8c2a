"""Theorems about every number of rows, where the number of tokens cannot be open."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.auditing.api import as_subject, audit_context, report_on_law
from orderproof.auditing.decide.theorem_certificates import theorem_certificate
from orderproof.models import load
from orderproof.records.audit import Theorem
from orderproof.report.theorem_phrases import theorem_text
from orderproof_recheck.derivation import derivation_lines
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem, digest_of
from tests.pairs import one_in

TOKENS = 7
MANY = 20  # [rows] up to which the rows of `MixesManyRows` are apart


class MixesTokens(nn.Module):
    """A linear map over the tokens, of which there are always as many."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(TOKENS, TOKENS)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        return self.map(x.mT).mT


class MixesManyRows(MixesTokens):
    """The same; in calls of more than `MANY` rows each also gets the first."""

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        mixed = super().forward(x)
        return mixed + mixed[:1] if x.shape[0] > MANY else mixed


class CentredWeights(MixesTokens):
    """The same with weights from which the mean over the outputs is taken, by a batch norm in training mode."""

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        weight = nn.functional.batch_norm(self.map.weight[None], None, None, training=True)[0]
        return nn.functional.linear(x.mT, weight).mT


def theorem_of(module: nn.Module) -> Theorem:
    theorem = prove(module.eval(), "batch", inputs=torch.randn(2, TOKENS, 8)).theorem
    assert theorem is not None
    return theorem


def test_rows_of_one_length_are_proved_for_every_number_of_rows() -> None:
    theorem = theorem_of(MixesTokens())
    assert theorem.proved
    assert not theorem.open_length
    assert theorem_text(theorem).startswith("for inputs of shape [batch, 7, 8], every batch size of at least 2")


def test_a_call_that_asks_for_the_number_of_rows_is_a_condition() -> None:
    theorem = theorem_of(MixesManyRows())
    assert theorem.proved
    assert theorem.conditions == (f"batch - {MANY} <= 0",)


class MixesRowsAtOneLength(nn.Module):
    """Running sums over a number that Python makes of that of the tokens, which no recording of open length has.

    In calls of `TOKENS` + 5 tokens and five rows, each row also gets the mean of all.
    """

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        scanned = x.cumsum(1) / math.comb(x.shape[1], 2)
        return scanned + scanned.mean(0) if x.shape[1] == TOKENS + 5 and x.shape[0] == 5 else scanned


@pytest.mark.parametrize(("length", "conditions"), [(None, ()), (TOKENS + 5, ("!(batch - 5 == 0)",))])
def test_the_length_is_that_of_the_audit(length: int | None, conditions: tuple[str, ...]) -> None:
    theorem = prove(MixesRowsAtOneLength().eval(), "batch", inputs=torch.randn(2, TOKENS, 8), length=length).theorem
    assert theorem is not None
    assert theorem.proved
    assert not theorem.open_length
    assert theorem.conditions == conditions


class CentredInputs(MixesTokens):
    """The same with inputs from which the mean over the rows is taken."""

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        return super().forward(nn.functional.batch_norm(x, None, None, training=True))


def test_the_statistics_of_weights_are_the_same_for_every_row_and_those_of_inputs_are_not() -> None:
    assert theorem_of(CentredWeights()).proved
    assert prove(CentredInputs().eval(), "batch", inputs=torch.randn(2, TOKENS, 8)).verdict == "refuted"


def test_an_open_length_is_preferred() -> None:
    assert theorem_of(nn.Linear(8, 8)).open_length


@pytest.mark.parametrize("name", one_in(2, ["vit", "bit", "wav2vec2", "dac"]))  # one token only: dac
def test_models_of_images_and_audio_have_a_theorem(name: str) -> None:
    theorem = prove(load(f"arch:{name}", tiny=True), "batch").theorem
    assert theorem is not None
    assert theorem.proved, theorem.reason
    assert not theorem.open_length


def certificate_of(module: nn.Module) -> dict[str, Any]:
    context = audit_context(as_subject(module.eval(), inputs=torch.randn(2, TOKENS, 8)))
    (finding,) = report_on_law(context, "batch").findings
    certificate = theorem_certificate(context, finding)
    assert certificate is not None
    return certificate


def test_a_certificate_says_that_the_size_is_the_recorded_one() -> None:
    certificate = certificate_of(MixesTokens())
    check_theorem(certificate)
    assert certificate["claim"]["sentence"].startswith("batch: for inputs of the recorded size, every batch size")
    assert next(derivation_lines(certificate)) == "call with tokens only, with inputs of the recorded size"


def as_causal(certificate: dict[str, Any]) -> None:
    certificate["law"], certificate["code"] = "causal", "OP201"


def as_open(certificate: dict[str, Any]) -> None:
    del certificate["claim"]["open_length"]
    certificate["claim"]["sentence"] = certificate["claim"]["sentence"].replace(
        "inputs of the recorded size", "every length from 2 on"
    )


def with_tokens(certificate: dict[str, Any]) -> None:
    certificate["calls"][0]["ranges"][0]["recordings"][0]["inputs"][0][1] = "tokens"


@pytest.mark.parametrize("change", [as_causal, as_open, with_tokens])
def test_a_changed_certificate_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    certificate = deepcopy(certificate_of(CentredWeights()))
    change(certificate)
    certificate["digest"] = digest_of(certificate)
    with pytest.raises(CertificateError):
        check_theorem(certificate)
