"""The study that comes with the page is the one that docs/evidence/studies reports, and it shows what it should."""

from __future__ import annotations

import re
from pathlib import Path

from orderproof.explain import bundled_study

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "studies" / "who_did_what.md"


def test_its_scores_are_those_of_the_page_of_the_study():
    printed = dict(
        re.findall(r"^\| (\w+, \w+, \d layers?) \| \d+ \| ([\d.]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    scores = {cell.label: cell.lengths[0].iqm for cell in bundled_study().cells}
    assert set(scores) == set(printed)
    assert all(abs(scores[label] - float(text)) < 6e-4 for label, text in printed.items())  # of 4 digits and of 3


def test_what_is_proved_blind_stays_at_the_ceiling_and_two_causal_layers_pass_it():
    for cell in bundled_study().cells:
        (at,) = cell.lengths
        assert at.ceiling == 0.5
        if {"permutation", "prompt_permutation"} & set(cell.proved_laws):
            assert at.low == at.iqm == at.high == 0.5
        if (cell.encoding, cell.causal, cell.layers) == ("none", True, 2):
            assert at.low > 0.95
