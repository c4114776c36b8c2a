"""The trial with modules of other packages: how verdicts are compared with the truth."""

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def foreign(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import foreign

    return foreign


@pytest.mark.parametrize(
    ("verdict", "truth", "result"),
    [
        ("proved", True, "right"),
        ("proved", False, "false proof"),
        ("proved", None, "false proof"),
        ("refuted", False, "right"),
        ("refuted", True, "wrong"),
        ("refuted", None, "wrong"),
        ("not_applicable", None, "right"),
        ("not_applicable", True, "wrong"),
        ("undecided", True, "undecided"),
        ("error", True, "failed"),
    ],
)
def test_a_verdict_is_compared_with_the_truth(foreign, verdict, truth, result):
    assert foreign.Judgement("package.Module", "causal", truth, verdict, "", 1.0).result == result


def test_the_truth_of_torch_modules_is_found_by_runs_without_orderproof(foreign, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("foreign_")]:
        monkeypatch.delitem(sys.modules, name)
    import foreign_modules
    import foreign_truth

    assert "orderproof" not in (TOOLS / "foreign_truth.py").read_text(encoding="utf-8").split('"""')[2]
    cases = {case.key: case for case in foreign_modules.CASES}
    assert foreign_truth.truths(cases["torch.nn.LSTM"]) == {"causal": True, "permutation": False, "batch": True}
    encoder = foreign_truth.truths(cases["torch.nn.TransformerEncoderLayer#first"])
    assert encoder == {"causal": False, "permutation": True, "batch": True}
    assert foreign_truth.truths(cases["torch.nn.BatchNorm1d"])["batch"] is False
    assert foreign_truth.truths(cases["torch.nn.AdaptiveAvgPool1d"])["causal"] is None


def test_the_page_counts_and_names_what_is_not_right(foreign):
    found = [
        foreign.Judgement("a.One", "causal", True, "proved", "", 1.0),
        foreign.Judgement("a.One", "batch", True, "undecided", "no rule | here", 1.0),
    ]
    page = foreign.page(found)
    assert "2 judgements: 1 right, 1 undecided, 0 wrong, 0 false proofs" in page
    assert "- `a.One`, batch, undecided: no rule / here" in page
    assert "| `a.One` | proved, holds |  | **undecided, holds** | 1.0 |" in page
