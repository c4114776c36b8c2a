"""`orderproof compare`: what it needs and what a dry run leaves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from orderproof.lab import comparing
from orderproof.lab.engines import choosing
from orderproof.lab.store import Store
from tests.cli.conftest import Run
from tests.lab.running import TINY, Here

SMALL = ("tiny.yaml", "encoding=none", "steps=10", "measure_every=10", "--quiet")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a study in it; runs are made in this process, and nothing is proved."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(TINY, encoding="utf-8")
    monkeypatch.setattr(choosing, "choose", lambda name, workers: Here())
    monkeypatch.setattr(comparing, "laws_of", lambda runs, store, tell: {run.cell: () for run in runs})
    monkeypatch.setattr(comparing, "seconds_a_step", lambda run: 0.01)


# ---------------------------------------------------------------- what it needs


@pytest.mark.parametrize("missing", ["yaml", "scipy"])
def test_without_a_package_of_the_extra_it_names_the_extra_before_anything_is_done(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str
):
    monkeypatch.setitem(sys.modules, missing, None)
    code, out, err = run("compare", *SMALL)
    assert (code, out) == (2, "")
    assert err == f"orderproof: orderproof compare needs {missing}: pip install 'orderproof[lab]'\n"
    assert [file.name for file in Path().iterdir()] == ["tiny.yaml"]


@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_without_matplotlib_no_study_is_trained_whose_pictures_cannot_be_drawn(
    run: Run, monkeypatch: pytest.MonkeyPatch, option: str
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run("compare", *SMALL, option, "study.page")
    assert (code, err) == (2, "orderproof: a picture of a study needs matplotlib: pip install 'orderproof[plots]'\n")
    assert [file.name for file in Path().iterdir()] == ["tiny.yaml"]


def test_studies_cannot_be_listed_without_the_extra_and_all_else_can(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    code, out, err = run("list", "studies")
    assert (code, out) == (2, "")
    assert err == "orderproof: orderproof list studies needs yaml: pip install 'orderproof[lab]'\n"
    assert run("list", "questions")[0] == 0


# ---------------------------------------------------------------- a dry run


def test_a_dry_run_makes_no_store(run: Run):
    code, out, err = run("compare", *SMALL[:-1], "--dry-run")
    assert (code, out) == (0, "")
    assert "study tiny: 2 runs, 0 finished; the others take about" in err
    assert [file.name for file in Path().iterdir()] == ["tiny.yaml"]


def test_a_dry_run_makes_no_store_in_a_folder_that_is_there(run: Run):
    Path("kept").mkdir()
    assert run("compare", *SMALL, "--dry-run", "--store", "kept")[0] == 0
    assert list(Path("kept").iterdir()) == []


def test_a_dry_run_counts_what_is_finished_and_adds_nothing(run: Run):
    assert run("compare", *SMALL, "seeds=1")[0] == 0
    kept = Store(Path("orderproof-results")).results()
    assert len(kept) == 1
    code, _, err = run("compare", *SMALL[:-1], "--dry-run")
    assert code == 0
    assert "study tiny: 2 runs, 1 finished" in err
    assert Store(Path("orderproof-results")).results() == kept


def test_a_dry_run_refuses_a_store_that_is_a_file(run: Run):
    code, _, err = run("compare", *SMALL, "--dry-run", "--store", "tiny.yaml")
    assert code == 2
    assert "cannot make the folder 'tiny.yaml': File exists; give another --store" in err
