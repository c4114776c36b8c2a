"""A study resumes from its store: no run twice, no results of other code, none lost."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import orderproof
from orderproof.errors import StoreError
from orderproof.lab import study_runner
from orderproof.lab.code_version import SOURCE_FILES, SOURCE_FOLDERS, code_version
from orderproof.lab.engines.engine import Engine, Job, RunFailure, RunOutcome, jobs
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.lab.seed_batch import WeightBatch
from orderproof.lab.store import ResultStore
from orderproof.lab.study import StudyConfig
from orderproof.lab.study_runner import StudyPlan, plan_study, run_study, seconds_per_step, summarise_study
from tests.lab.small_study import tiny_study


def check_progress(text: str, done: int, total: int) -> None:
    assert text
    assert 0 <= done <= total


class PrecomputedEngine(Engine):
    """Yields known outcomes and records the runs it receives."""

    workers = 1

    def __init__(self, known: dict[str, RunOutcome]) -> None:
        self.known = known
        self.received: list[str] = []
        self.closed = False

    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        try:
            for run in runs:
                self.received.append(run.id)
                yield self.known[run.id]
        finally:
            self.closed = True


def no_laws(plan: StudyPlan) -> dict[str, tuple[str, ...]]:
    return {run.cell_id: () for run in plan.runs}


def run_all(plan: StudyPlan, store: ResultStore, engine: Engine) -> list[RunFailure]:
    return list(run_study(plan, store, engine, no_laws(plan), on_result=lambda run, result: None))


def test_a_finished_run_is_not_submitted_again(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    store, runs = ResultStore(tmp_path), tiny_study().runs()
    store.add(undisturbed[runs[1].id], code=code_version())
    plan = plan_study(tiny_study(), store, progress=check_progress)
    assert [run.id for run in plan.remaining_runs] == [runs[0].id, runs[2].id, runs[3].id]
    assert plan.seconds > 0
    engine = PrecomputedEngine(dict(undisturbed))
    assert run_all(plan, store, engine) == []
    assert engine.received == [run.id for run in plan.remaining_runs]
    after = plan_study(tiny_study(), store, progress=check_progress)
    assert after.remaining_runs == ()
    assert after.seconds == 0
    idle = PrecomputedEngine({})
    run_all(after, store, idle)
    assert idle.received == []
    assert {name: result for name, (_, result) in store.results().items()} == undisturbed


def batched_study(**changes: Any) -> StudyConfig:
    base = {**tiny_study().base, "batched": True, **changes}
    return tiny_study().model_copy(update={"base": base, "seeds": 3})


def test_the_predicted_time_is_that_of_the_jobs_that_are_left(
    tmp_path: Path, undisturbed: dict[str, RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[tuple[str, int]] = []

    def seconds_per_step(job: Job) -> float:
        timed.append((job[0].encoding, len(job)))
        return 0.5 if job[0].encoding == "none" else 2.0

    monkeypatch.setattr(study_runner, "seconds_per_step", seconds_per_step)
    single = plan_study(tiny_study(), ResultStore(tmp_path / "single"), progress=check_progress)
    assert timed == [("none", 1), ("rotary", 1)]  # the seeds of a cell take the same time
    assert (single.seconds, single.remaining_jobs) == (150 * 2 * (0.5 + 2.0), 4)
    timed.clear()
    together = plan_study(batched_study(), ResultStore(tmp_path / "batched"), progress=check_progress)
    assert timed == [("none", 3), ("rotary", 3)]
    assert (together.seconds, together.remaining_jobs) == (150 * (0.5 + 2.0), 2)


def test_the_prediction_steps_the_whole_batch_at_the_middle_length(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[WeightBatch] = []

    class RecordedBatch(WeightBatch):
        def __init__(self, runs: Sequence[RunConfig], *, record_at: int) -> None:
            super().__init__(runs, record_at=record_at)
            batches.append(self)

    monkeypatch.setattr(study_runner, "WeightBatch", RecordedBatch)
    (job, _) = jobs(batched_study(question="copy", train_lengths=[3, 9], test_lengths=[9]).runs())
    assert seconds_per_step(job) > 0
    assert [run.seed for run in batches[0].runs] == [0, 1, 2]
    assert {run.effective_train_lengths for run in batches[0].runs} == {(6, 6)}


def test_only_runs_that_have_a_goal_can_stop_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_runner, "seconds_per_step", lambda job: 1.0)
    for changes, expected in (({}, False), ({"solved": 0.9, "schedule": "constant"}, True)):
        plan = plan_study(batched_study(**changes), ResultStore(tmp_path), progress=check_progress)
        assert plan.can_stop_early is expected


def test_the_checkpoint_of_a_stored_run_is_deleted(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    store, runs = ResultStore(tmp_path), tiny_study().runs()
    for run in runs:
        store.add(undisturbed[run.id], code=code_version())
    left = store.checkpoints / f"{runs[0].id}.safetensors"  # by an interruption between the two steps of `add`
    left.parent.mkdir()
    left.write_bytes(b"")
    run_all(plan_study(tiny_study(), store, progress=check_progress), store, PrecomputedEngine({}))
    assert not left.exists()


def test_results_of_other_code_are_refused_in_one_line(
    tmp_path: Path, undisturbed: dict[str, RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, runs = ResultStore(tmp_path), tiny_study().runs()
    store.add(undisturbed[runs[0].id], code=code_version())
    monkeypatch.setattr(study_runner, "code_version", lambda dataset_version: "new-torch9")
    with pytest.raises(StoreError, match="holds runs of this study made by other code .* this is new-torch9") as error:
        plan_study(tiny_study(), store, progress=check_progress)
    assert "\n" not in str(error.value)
    assert list(store.results()) == [runs[0].id]


def test_results_of_other_code_for_other_studies_do_not_matter(
    tmp_path: Path, undisturbed: dict[str, RunResult]
) -> None:
    store, study = ResultStore(tmp_path), tiny_study().model_copy(update={"seeds": 1})
    seed_1 = tiny_study().runs()[1]
    store.add(undisturbed[seed_1.id], code="old")
    assert len(plan_study(study, store, progress=check_progress).remaining_runs) == 2


def test_a_result_for_another_text_is_not_stored(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    store, runs = ResultStore(tmp_path), tiny_study().runs()
    plan = plan_study(tiny_study(), store, progress=check_progress)
    other = undisturbed[runs[0].id].model_copy(update={"edition": "Python 2"})
    (failure,) = run_all(plan, store, PrecomputedEngine({**undisturbed, runs[0].id: other}))
    assert failure.reason == "its worker read another text (Python 2); run it with the Python of this machine"
    assert runs[0].id not in store.results()


def test_a_failure_affects_one_run(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    store, runs = ResultStore(tmp_path), tiny_study().runs()
    plan = plan_study(tiny_study(), store, progress=check_progress)
    failure = RunFailure(id=runs[0].id, reason="bad luck")
    assert run_all(plan, store, PrecomputedEngine({**undisturbed, runs[0].id: failure})) == [failure]
    assert set(store.results()) == {run.id for run in runs[1:]}
    found = summarise_study(plan, store, no_laws(plan), command="again")
    assert [cell.seeds for cell in found.cells] == [1, 2]
    assert found.versions["code"] == code_version()


def test_an_interrupted_study_closes_its_engine_and_keeps_its_results(
    tmp_path: Path, undisturbed: dict[str, RunResult]
) -> None:
    store, runs = ResultStore(tmp_path), tiny_study().runs()
    plan, engine = plan_study(tiny_study(), store, progress=check_progress), PrecomputedEngine(dict(undisturbed))

    def interrupt(run: RunConfig, result: RunResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_study(plan, store, engine, no_laws(plan), on_result=interrupt))
    assert engine.closed
    assert list(store.results()) == [runs[0].id]


def test_the_code_version_covers_every_import_of_training() -> None:
    root = Path(orderproof.__file__).parent
    excluded = {  # no result depends on these
        "__init__.py",
        "_version.py",
        "errors.py",
        "lab/__init__.py",
        "lab/registry.py",
        "lab/code_version.py",
        "registry.py",
        "report/file_output.py",
    }
    todo, seen = [root / "lab/trainer.py", *(root / "lab/questions").glob("*.py")], set()
    while todo:
        file = todo.pop()
        seen.add(file)
        if file.relative_to(root).as_posix() in excluded:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orderproof"):
                at = root.parent.joinpath(*str(node.module).split("."))
                files = [at.with_suffix(".py"), at / "__init__.py", *(at / f"{name.name}.py" for name in node.names)]
                todo += [each for each in files if each.is_file() and each not in seen]
    names = {file.relative_to(root).as_posix() for file in seen}
    uncovered = {
        name
        for name in names
        if name not in excluded | set(SOURCE_FILES)
        and not name.startswith(tuple(f"{part}/" for part in SOURCE_FOLDERS))
    }
    assert {"lab/checkpoints.py", "positions.py", "blocks/transformer.py"} <= names
    others = "encodings/configs/"  # these read configurations of published models
    assert {name for name in uncovered if not name.startswith(others)} == set(), "a result may depend on these"
