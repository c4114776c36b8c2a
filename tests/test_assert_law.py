"""The assertion of a law on a module: what passes, what fails and with which message."""

from __future__ import annotations

import logging
import re
import warnings
from datetime import date

import pytest
import torch
from torch import nn

from orderproof import assert_conforms, audit
from orderproof.configuration.baseline import baseline_text
from orderproof.errors import SubjectError, UsageError
from orderproof.laws import find_law
from orderproof.pytest_plugin import assert_law
from tests.auditing.examples import Attention, Causal, NotANumber, SeveralOutputs

X = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0))


def test_what_is_as_expected_passes_and_gives_the_findings():
    (finding,) = assert_law(Causal(), "causal", X)
    assert (finding.verdict, finding.expected, finding.expectation_met) == ("proved", "holds", True)
    (finding,) = assert_law(Attention(), "OP201", inputs=X, expect="fails", length=5)
    assert (finding.verdict, finding.scope.length) == ("refuted", 5)
    assert assert_law(Attention(), "causal", X, expect="any")


def test_a_refuted_law_says_the_two_runs_and_the_line():
    with pytest.raises(AssertionError) as raised:
        assert_law(Attention(), "causal", X)
    text = str(raised.value)
    assert text.startswith("OP201 causal FAIL: expected to hold, it does not hold (witness): Attention\n")
    for line in (
        rf"law +{re.escape(find_law('causal').statement)}",
        r"output +output",
        r"length +7",
        r"change +replace the tokens from 1 on",
        r"before +x0 «x1»",
        r"after +x0 «x1'»",
        r"differs +output\[.*\]: the law requires .*, the model gives .*, by .* \(float32 .*, float64 .*\)",
        r"entry +aten\.matmul\.default in \(the model itself\) \(\S*examples\.py:\d+\): token 0 comes to depend on .*",
        r"reason +aten\.matmul\.default \(\S*examples\.py:\d+\): .*",
    ):
        assert re.search(rf"^  {line}$", text, re.MULTILINE), line


class Nested(nn.Module):
    """Causal attention, then attention that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Causal()
        self.second = Attention()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.second(self.first(x))
        return made


def test_the_first_module_that_leaks_is_named():
    with pytest.raises(AssertionError, match=r"(?m)^  first seen +second$"):
        assert_law(Nested(), "causal", X)


def test_a_law_that_should_fail_and_is_proved_fails_the_test():
    with pytest.raises(
        AssertionError,
        match=r"OP101 permutation FAIL: expected to fail, it holds \(proved\): Attention(.|\n)*proof +\d",
    ):
        assert_law(Attention(), "permutation", X, expect="fails")


def test_what_is_undecided_fails_the_test_with_its_reason():
    with pytest.raises(AssertionError, match=r"OP201 causal UNDECIDED: expected to hold: NotANumber(.|\n)*reason +\S"):
        assert_law(NotANumber(), "causal", X)


def test_every_output_is_asserted_and_one_without_tokens_is_no_obstacle():
    assert [f.verdict for f in assert_law(SeveralOutputs(), "permutation", X, expect="any")] != []
    with pytest.raises(AssertionError, match=r"(?m)^  output +tokens$") as raised:
        assert_law(SeveralOutputs(), "causal", X)
    assert str(raised.value).count("expected to hold") == 1


class Pooled(Causal):
    """A vector for a whole sequence."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).mean(1)


def test_an_assertion_that_would_assert_nothing_fails():
    with pytest.raises(AssertionError, match="OP201 causal does not apply to Pooled, so nothing was asserted: output"):
        assert_law(Pooled(), "causal", X)
    assert [f.verdict for f in assert_law(Pooled(), "causal", X, expect="any")] == ["not_applicable"]


def test_a_wrong_call_is_an_error_and_no_failed_assertion():
    with pytest.raises(UsageError, match="got 'causl'; did you mean 'causal'"):
        assert_law(Causal(), "causl", X)
    with pytest.raises(UsageError, match="expected expect to be one of holds, fails, any; got 'hold'"):
        assert_law(Causal(), "causal", X, expect="hold")  # type: ignore[arg-type]
    with pytest.raises(SubjectError, match="no tensor among the example inputs|is not known"):
        assert_law(Causal(), "causal", ())


def test_a_model_is_given_back_in_the_mode_it_came_in():
    model = Nested().train()
    model.first.eval()
    assert_law(model, "causal", X, expect="fails")
    assert (model.training, model.first.training, model.second.qkv.training) == (True, False, True)


class Warns(Causal):
    """A model that warns whenever it runs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        warnings.warn("old", DeprecationWarning, stacklevel=2)
        return super().forward(x)


def test_warnings_made_errors_do_not_decide_the_verdict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_law(Warns(), "causal", X)
        with pytest.raises(DeprecationWarning):
            warnings.warn("the test's own filters stand", DeprecationWarning, stacklevel=1)


def test_torchs_trace_does_not_fill_the_log_of_a_failed_test(caplog: pytest.LogCaptureFixture):
    trace = logging.getLogger("torch.__trace")
    before = list(trace.handlers)
    assert_law(Causal(), "causal", X)
    assert not [r for r in caplog.records if r.name == "torch.__trace"]
    assert trace.handlers == before


def test_a_model_that_does_what_its_kind_should_conforms():
    findings = assert_conforms(Causal(), X, kind="decoder", fast=True, laws=["causal", "permutation"])
    assert [(f.law, f.outcome) for f in findings] == [("causal", "pass"), ("permutation", "yes")]
    with pytest.raises(AssertionError, match="OP201 causal FAIL: expected to hold"):
        assert_conforms(Attention(), X, kind="decoder", fast=True, laws=["causal"])
    assert assert_conforms(Attention(), X, kind="decoder", fast=True, laws=["causal"], expect={"causal": "fails"})
    with pytest.raises(UsageError, match="expected kind to be decoder or encoder; got 'decodr'"):
        assert_conforms(Attention(), X, kind="decodr")


def test_a_baseline_accepts_a_finding_and_a_stale_entry_fails(tmp_path):
    report = audit(Attention(), inputs=X, kind="decoder", fast=True, laws=["causal"])
    base = tmp_path / "base.toml"
    base.write_text(baseline_text([report], None, today=date(2100, 1, 1)).replace('reason = ""', 'reason = "known"'))
    assert assert_conforms(Attention(), X, kind="decoder", fast=True, laws=["causal"], baseline=base)
    with pytest.raises(AssertionError, match=r"base.toml:4: stale: no such finding of OP201 causal of Attention"):
        assert_conforms(
            Attention(), X, kind="decoder", fast=True, laws=["causal"], expect={"causal": "fails"}, baseline=base
        )
