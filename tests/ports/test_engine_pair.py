"""Two engines compared with each other: what a change of a release changed, and in which setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.ports.engine_pair import EnginePair
from orderproof.ports.engines.registry import find_engines
from orderproof.records.audit import Finding
from tests.ports.numpy_engine import numpy_engine

LAWS = ["loads_checkpoint", "same_prefill", "same_past_window", "same_greedy_tokens"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pair")


def pair(place: Path, before: str, after: str) -> EnginePair:
    """Two releases of the numpy engine with these differences."""
    engines = []
    for version, difference in (("1.0", before), ("1.1", after)):
        folder = place / f"{version} {difference}"
        folder.mkdir(exist_ok=True)
        engines.append(numpy_engine(folder, difference, name=f"numpy@{version}"))
    return EnginePair(*engines)


def findings(place: Path, before: str, after: str, laws: list[str], subject: str = "arch:mistral") -> list[Finding]:
    return list(audit(subject, against=pair(place, before, after), laws=laws).findings)


def test_the_setting_that_a_release_changed_is_named_with_its_release(place: Path) -> None:
    loaded, prefill, window = findings(place, "", "window plus one", LAWS[:3])
    assert [loaded.outcome, prefill.outcome, window.outcome] == ["pass", "pass", "fail"]
    assert "equal to each other" in prefill.reason
    assert window.port is not None
    (cause,) = window.port.causes
    assert (cause.setting, cause.assumed, cause.engine) == ("sliding_window", "7", "numpy@1.1")
    assert (window.port.first_engine, window.port.engine, window.port.first_token) == ("numpy@1.0", "numpy@1.1", 6)
    assert window.port.explained
    assert "numpy@1.1 differs from numpy@1.0 from token 6 on" in window.reason
    assert window.remedy.startswith("numpy@1.1 differs from the reference, and the other does not.")
    (window,) = findings(place, "window plus one", "", ["same_past_window"])
    assert window.port is not None
    assert [cause.engine for cause in window.port.causes] == ["numpy@1.0"]


def test_releases_with_one_difference_from_the_reference_are_equal(place: Path) -> None:
    (window,) = findings(place, "no window", "no window", ["same_past_window"])
    assert window.outcome == "pass"
    assert "equal to each other" in window.reason


def test_of_two_wrong_releases_only_the_settings_that_differ_are_named(place: Path) -> None:
    (window,) = findings(place, "no window", "window plus one", ["same_past_window"])
    assert window.port is not None
    assert [(cause.assumed, cause.engine) for cause in window.port.causes] == [
        ("no window", "numpy@1.0"), ("7", "numpy@1.1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ("crashes", "numpy@1.0 answers; numpy@1.1 ended its process, which was ended by SIGABRT"),
        ("not a number", "numpy@1.1 against the reference: it returned a value that is not finite, first at token 2"),
    ],
)
def test_a_release_that_fails_in_a_call_differs(after: str, reason: str, place: Path) -> None:
    (prefill,) = findings(place, "", after, ["same_prefill"])
    assert prefill.outcome == "fail"
    assert reason in prefill.reason
    assert "\n" not in prefill.reason


def test_a_release_that_refuses_a_checkpoint_differs_in_loading_it(place: Path) -> None:
    loaded, prefill = findings(place, "refuses", "", LAWS[:2])
    assert (loaded.outcome, prefill.outcome) == ("fail", "undecided")
    assert "unknown key 'rope_parameters'" in loaded.reason
    assert prefill.reason == "the checkpoint is not loaded by numpy@1.0"
    (both,) = findings(place, "refuses", "refuses", ["loads_checkpoint"])
    assert both.outcome == "undecided"


def test_the_versions_of_both_engines_are_reported(place: Path) -> None:
    report = audit("arch:gpt2", against=pair(place, "", ""), laws=["same_prefill"])
    assert report.findings[0].outcome == "not_applicable"
    assert report.findings[0].reason == "no implementation of gpt2 in numpy@1.0 and numpy@1.1"
    assert report.findings[0].output == "numpy@1.0, numpy@1.1"


def test_a_pair_is_named_with_a_comma() -> None:
    names = [engine.name for engine in find_engines("vllm@0.31.0,vllm@0.32.0")]
    assert names == ["vllm@0.31.0", "vllm@0.32.0"]
    assert [engine.name for engine in find_engines("mlx")] == ["mlx"]
    for spec, reason in (
        ("mlx,mlx", "expected two engines, or two versions as mlx@VERSION; got mlx twice"),
        ("mlx,vllm,onnx", "expected one engine, or two as ENGINE,ENGINE; got 3"),
    ):
        with pytest.raises(UsageError, match=reason):
            find_engines(spec)
