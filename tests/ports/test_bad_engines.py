"""Engines that are missing, refuse, crash, hang or return something else: one line each, and the others stand."""

from __future__ import annotations

import time

import pytest

from orderproof import audit
from orderproof.errors import SubjectError, UsageError
from orderproof.ports.load import load_reference
from tests.ports.planted_engine import MisbehavingEngine, PlantedEngine

LAWS = ["loads_checkpoint", "same_prefill", "same_cached_decoding"]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("crashes", "misbehaving ended its process, which was ended by SIGSEGV"),
        ("hangs", "misbehaving was not done after 2 s"),
        ("exits", "misbehaving raised SystemExit: 3"),
        ("shape", "misbehaving: it returned scores of shape [11, 99] for 12 tokens"),
        ("vocabulary", "misbehaving: it has a vocabulary of 90 tokens; the reference has 99"),
        ("nan", "misbehaving: it returned a value that is not finite, first at token 2 of row 0"),
    ],
)
def test_a_call_that_fails_costs_its_law_only(how: str, reason: str) -> None:
    timeout = 2.0 if how == "hangs" else 60.0
    began = time.monotonic()
    report = audit("arch:llama", against=MisbehavingEngine(how=how), laws=LAWS, timeout=timeout)
    assert time.monotonic() - began < 50
    loaded, prefill, decoding = report.findings
    assert (loaded.verdict, decoding.verdict) == ("held", "held")
    assert prefill.verdict == "undecided"
    assert reason in prefill.reason
    assert report.exit_code == 3


def test_an_engine_that_refuses_the_checkpoint_fails_one_law_and_the_other_engine_stands() -> None:
    report = audit("arch:llama", against=[MisbehavingEngine(how="refuses"), PlantedEngine()], laws=LAWS)
    refused, others = report.findings[:3], report.findings[3:]
    assert [finding.verdict for finding in refused] == ["refuted", "undecided", "undecided"]
    assert "raised ValueError: unknown key 'rope_parameters'" in refused[0].reason
    assert refused[1].reason == "misbehaving does not load the checkpoint"
    assert [finding.verdict for finding in others] == ["held"] * 3


def test_an_engine_that_is_not_installed_is_undecided_with_the_command_that_installs_it() -> None:
    engine = PlantedEngine(name="absent", packages=("no_such_package",), extra="absent")
    report = audit("arch:llama", against=[engine, PlantedEngine()], laws=LAWS)
    assert {finding.verdict for finding in report.findings[:3]} == {"undecided"}
    assert report.findings[0].reason == "no_such_package is not installed: pip install 'orderproof[absent]'"
    assert {finding.verdict for finding in report.findings[3:]} == {"held"}


def test_an_architecture_that_an_engine_does_not_have_is_not_applicable() -> None:
    report = audit("arch:bert", against="mlx", laws=LAWS)
    assert {finding.verdict for finding in report.findings} == {"not_applicable"}
    assert "has no implementation of bert" in report.findings[0].reason


def test_subjects_without_logits_are_refused_in_one_line() -> None:
    with pytest.raises(SubjectError, match="arch:vit: transformers has no causal language model for it"):
        load_reference("arch:vit")
    with pytest.raises(UsageError, match="expected arch:NAME, a checkpoint folder or a transformers model"):
        load_reference(3)
    headless = load_reference("arch:llama").model.model
    with pytest.raises(UsageError, match="LlamaModel, which has no head"):
        load_reference(headless)
