"""Forks of the reading of a configuration: found and named in an engine that is installed here, and on the page."""

from __future__ import annotations

import re

import pytest

from tests.ports.config_forks import ENGINES, FORKS, PAGE, outcome, page, planted_in_tests


@pytest.mark.parametrize(
    ("fork", "said"),
    [("another base", "named"), ("no window", "differs by itself"), ("another activation", "not read")],
)
def test_a_fork_of_mlx_is_named_unless_mlx_differs_or_does_not_read_the_key(fork: str, said: str) -> None:
    assert outcome("mlx", fork) == said


def test_the_page_has_each_fork_and_at_least_20_that_are_found_and_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (total,) = re.findall(r"^\| all \|  \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert min(map(int, total)) >= 20
    assert len(set(total)) == 1, "a difference is found and not named"
    results = {line.split(" | ")[0].strip("| "): line.split(" | ")[2:] for line in text.splitlines()}
    assert results.keys() >= FORKS.keys()
    assert sum(cell.strip(" |") == "named" for fork in FORKS for cell in results[fork]) == int(total[1])
    assert all(f"{count} {where}" in text for where, count in planted_in_tests().items())


def test_the_page_counts_what_is_found_and_what_is_named() -> None:
    outcomes = dict.fromkeys(FORKS, "named") | {"no window": "found: a prompt differs", "no clipping": "not read"}
    text = page({ENGINES[0]: outcomes, ENGINES[1]: {}}, dict.fromkeys(ENGINES, "1.0"), {"in tests": 7})
    assert f"| vllm | 1.0 | {len(FORKS) - 1} | {len(FORKS) - 2} |" in text
    assert "| mlx | 1.0 | 0 | 0 |" in text
    assert "Planted in the tests besides: 7 in tests." in text
    assert "| no window | `sliding_window`: no window | found: a prompt differs | not run |" in text
