"""Forks of the reading of a configuration: found and named in an engine that is installed here, and on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.ports.engines.registry import find_engine
from orderproof.ports.environments.environment import VARIABLE
from tests.ports import config_forks
from tests.ports.config_forks import ENGINES, PAGE, Store, outcome, page_of, run, stored
from tests.ports.config_mistakes import FORKS
from tests.ports.forks_page import page

SERVING = ("vllm", "onnxruntime-genai", "openvino")


@pytest.mark.parametrize(
    ("fork", "said"),
    [
        ("another base", "named"),
        ("no window", "differs by itself: `sliding_window` is no window"),
        ("another activation", "not read"),
    ],
)
def test_a_fork_of_mlx_is_named_unless_mlx_differs_or_does_not_read_the_key(fork: str, said: str) -> None:
    assert outcome("mlx", fork) == said


def test_each_fork_that_is_found_is_named_and_there_are_20_and_three_in_each_serving_engine() -> None:
    found = [each for engine in stored().values() for each in engine["outcomes"].values()]
    assert not [each for each in found if each.startswith("found")], "a difference is found and not named"
    assert found.count("named") >= 20
    assert all([*stored()[engine]["outcomes"].values()].count("named") >= 3 for engine in SERVING)


def test_the_page_is_that_of_the_stored_outcomes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of(stored())


def test_the_page_counts_what_is_found_and_what_is_named() -> None:
    others = {"no window": "found: a prompt differs", "no clipping": "not read", "another base": "differs by itself: x"}
    outcomes = dict.fromkeys(FORKS, "named") | others
    text = page({ENGINES[0]: outcomes, ENGINES[1]: {}}, dict.fromkeys(ENGINES, "1.0"), {"in tests": 7})
    assert f"| vllm | 1.0 | {len(FORKS) - 2} | {len(FORKS) - 3} |" in text
    assert f"| {ENGINES[1]} | 1.0 | 0 | 0 |" in text
    assert "| vllm | x | another base |" in text
    assert "Planted in the tests besides: 7 in tests." in text
    assert "| no window | `sliding_window`: no window | found: a prompt differs | not run |" in text


@pytest.mark.parametrize(("version", "again"), [("", ["no window"]), ("0.1", list(FORKS))])
def test_a_run_asks_what_is_missing_and_everything_of_another_version(
    version: str, again: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_forks, "outcome", lambda engine, fork: "named")
    outcomes = dict.fromkeys(FORKS, "not read")
    del outcomes["no window"]
    kept: Store = {"mlx": {"version": version or find_engine("mlx").version, "outcomes": outcomes}}
    assert list(run(["mlx"], kept)) == [f"mlx, {fork}: named" for fork in again]
    assert kept["mlx"]["outcomes"].keys() == FORKS.keys()


def test_an_engine_that_is_not_installed_costs_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    kept: Store = {}
    assert list(run(["vllm"], kept)) == ["vllm: not installed; orderproof engines install vllm"]
    assert not kept
