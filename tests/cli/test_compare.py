"""`orderproof compare`: required packages, dry runs and exit codes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orderproof.lab import study_runner
from orderproof.lab.engines import factory
from orderproof.lab.engines.engine import RunFailure, RunOutcome
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.lab.store import ResultStore
from orderproof.optional_packages import install_command
from tests.cli.conftest import Run
from tests.lab.small_study import TINY, InProcessEngine

SMALL = ("tiny.yaml", "encoding=none", "steps=10", "measure_every=10", "--quiet")


@pytest.fixture(autouse=True)
def small_study_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a study; runs execute in this process, and no laws are proved."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(TINY, encoding="utf-8")
    monkeypatch.setattr(factory, "make_engine", lambda name, workers: InProcessEngine())
    monkeypatch.setattr(study_runner, "prove_cells", lambda runs, store, progress: {run.cell_id: () for run in runs})
    monkeypatch.setattr(study_runner, "seconds_per_step", lambda job: 0.01 * len(job))


# ---------------------------------------------------------------- what it needs


@pytest.mark.parametrize("missing", ["yaml", "scipy"])
def test_without_a_package_of_the_extra_it_names_the_extra_before_anything_is_done(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str
):
    monkeypatch.setitem(sys.modules, missing, None)
    code, out, err = run("compare", *SMALL)
    assert (code, out) == (2, "")
    assert err == f"orderproof: orderproof compare needs {missing}: {install_command('lab')}\n"
    assert [file.name for file in Path().iterdir()] == ["tiny.yaml"]


@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_without_matplotlib_no_study_is_trained_whose_pictures_cannot_be_drawn(
    run: Run, monkeypatch: pytest.MonkeyPatch, option: str
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run("compare", *SMALL, option, "study.page")
    assert (code, err) == (2, f"orderproof: a picture of a study needs matplotlib: {install_command('plots')}\n")
    assert [file.name for file in Path().iterdir()] == ["tiny.yaml"]


def test_studies_cannot_be_listed_without_the_extra_and_all_else_can(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    code, out, err = run("list", "studies")
    assert (code, out) == (2, "")
    assert err == f"orderproof: orderproof list studies needs yaml: {install_command('lab')}\n"
    assert run("list", "questions")[0] == 0


# ---------------------------------------------------------------- a sweep of learning rates


def test_the_sweep_is_trained_first_and_chooses_the_rates_of_the_study(run: Run):
    swept = ("tiny.yaml", "steps=4", "measure_every=2", "seeds=1", "sweep_seeds=1", "learning_rates=0.001,0.01")
    code, _, err = run("compare", *swept, "--store", "s", "--json", "study.json", "--dry-run")
    assert (code, "sweep of learning rates, 4 runs, 0 finished" in err) == (0, True)
    code, _, err = run("compare", *swept, "--store", "s", "--json", "study.json")
    assert code == 0, err
    cells = json.loads(Path("study.json").read_text())["cells"]
    assert [cell["seeds"] for cell in cells] == [1, 1]
    for cell in cells:
        assert [point["seeds"] for point in cell["sweep"]] == [1, 1]
        assert cell["learning_rate"] == cell["sweep"][0]["learning_rate"]
    results = ResultStore(Path("s")).results()
    assert sorted(result.config["seed"] for _, result in results.values()) == [0, 0, 1000, 1000, 1000, 1000]
    assert run("compare", *swept, "--store", "s", "--quiet")[0] == 0
    assert ResultStore(Path("s")).results().keys() == results.keys()  # nothing is trained again


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
    kept = ResultStore(Path("orderproof-results")).results()
    assert len(kept) == 1
    code, _, err = run("compare", *SMALL[:-1], "--dry-run")
    assert code == 0
    assert "study tiny: 2 runs, 1 finished" in err
    assert ResultStore(Path("orderproof-results")).results() == kept


def test_a_dry_run_predicts_the_sweep_and_the_study_after_it(run: Run):
    swept = ("learning_rates=0.001,0.01", "sweep_seeds=2", "schedule=constant", "question=copy", "solved=0.9")
    settings = ("train_lengths=[1,2]", "test_lengths=3")
    code, _, err = run("compare", *SMALL[:-1], *swept, *settings, "--dry-run")
    assert code == 0
    assert "study tiny: sweep of learning rates, 4 runs, 0 finished; the others take at most about" in err
    assert "study tiny: 2 runs, 0 finished; the others take at most about" in err


def test_a_quiet_study_is_not_timed_first(run: Run, monkeypatch: pytest.MonkeyPatch):
    timed = []
    monkeypatch.setattr(study_runner, "seconds_per_step", lambda job: timed.append(job) or 0.01)
    assert run("compare", *SMALL)[0] == 0
    assert timed == []
    assert run("compare", *SMALL[:-1], "--store", "other")[0] == 0
    assert len(timed) == 1


def test_a_dry_run_refuses_a_store_that_is_a_file(run: Run):
    code, _, err = run("compare", *SMALL, "--dry-run", "--store", "tiny.yaml")
    assert code == 2
    assert "cannot create the folder 'tiny.yaml': File exists; pass another --store" in err


# ---------------------------------------------------------------- how it ends


class FailingEngine(InProcessEngine):
    """An engine in which the first runs fail."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        yield from (RunFailure(id=run.id, reason="its worker died") for run in runs[: self.failures])
        yield from super().run(runs[self.failures :], checkpoints)


def test_a_run_that_fails_makes_exit_code_2_and_the_others_are_reported(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(factory, "make_engine", lambda name, workers: FailingEngine(1))
    code, _, err = run("compare", *SMALL, "--json", "study.json")
    assert code == 2
    assert re.fullmatch(r"orderproof: run \w+ failed: its worker died\n", err)
    assert json.loads(Path("study.json").read_text())["cells"][0]["seeds"] == 1


def test_a_study_of_which_no_run_comes_to_a_result_reports_nothing(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(factory, "make_engine", lambda name, workers: FailingEngine(2))
    code, _, err = run("compare", *SMALL, "--json", "study.json")
    assert code == 2
    assert err.endswith("orderproof: none of the 2 runs of study 'tiny' has a result\n")
    assert not Path("study.json").exists()


def test_a_score_that_a_proof_rules_out_makes_exit_code_2_and_no_report(run: Run, monkeypatch: pytest.MonkeyPatch):
    # The proof is true of a model without positions; the score is planted.
    monkeypatch.setattr(
        study_runner, "prove_cells", lambda runs, store, progress: {run.cell_id: ("permutation",) for run in runs}
    )
    monkeypatch.setattr(InProcessEngine, "run", perfect(InProcessEngine.run))
    code, _, err = run("compare", *SMALL, "seeds=1", "--json", "study.json")
    assert code == 2
    assert re.search(
        r"permutation proved for run .*; it must score exactly 1/2 at length 6, but scored 1: a bug in", err
    )
    assert err.count("\n") == 1
    assert not Path("study.json").exists()
    assert len(ResultStore(Path("orderproof-results")).results()) == 1


def perfect(compute: Callable[..., Iterator[RunOutcome]]) -> Callable[..., Iterator[RunOutcome]]:
    """An engine whose runs come back with every place right."""

    def computed(self: InProcessEngine, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        for result in compute(self, runs, checkpoints):
            assert isinstance(result, RunResult)
            right = [at.model_copy(update={"right": at.scored, "score": 1.0}) for at in result.lengths]
            yield result.model_copy(update={"lengths": right})

    return computed


def test_help_says_how_it_ends(run: Run):
    code, out, _ = run("compare", "--help")
    assert code == 0
    assert "2 wrong usage, a failed run, or a score that contradicts a proof" in " ".join(out.split())
