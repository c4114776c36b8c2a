"""A study goes on from what its store holds: nothing twice, nothing of other code, nothing lost."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import orderproof
from orderproof.errors import StoreError
from orderproof.lab import comparing
from orderproof.lab.code_version import FILES, PARTS, code_version
from orderproof.lab.comparing import Plan, carry_out, plan, summary
from orderproof.lab.configuration import RunConfig
from orderproof.lab.engines.engine import Engine, Failure, Told
from orderproof.lab.result import RunResult
from orderproof.lab.store import Store
from tests.lab.running import tiny


def silent(text: str, done: int, total: int) -> None:
    assert text
    assert 0 <= done <= total


class Knowing(Engine):
    """An engine that knows the results already, and what it was asked."""

    workers = 1

    def __init__(self, known: dict[str, Told]) -> None:
        self.known = known
        self.asked: list[str] = []
        self.closed = False

    def compute(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[Told]:
        try:
            for run in runs:
                self.asked.append(run.id)
                yield self.known[run.id]
        finally:
            self.closed = True


def no_laws(planned: Plan) -> dict[str, tuple[str, ...]]:
    return {run.cell: () for run in planned.runs}


def go(planned: Plan, store: Store, engine: Engine) -> list[Failure]:
    return list(carry_out(planned, store, engine, no_laws(planned), finished=lambda run, result: None))


def test_a_finished_run_is_not_sent_again(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    store, runs = Store(tmp_path), tiny().runs()
    store.add(undisturbed[runs[1].id], code=code_version())
    planned = plan(tiny(), store, tell=silent)
    assert [run.id for run in planned.left] == [runs[0].id, runs[2].id, runs[3].id]
    assert planned.seconds > 0
    engine = Knowing(dict(undisturbed))
    assert go(planned, store, engine) == []
    assert engine.asked == [run.id for run in planned.left]
    after = plan(tiny(), store, tell=silent)
    assert after.left == ()
    assert after.seconds == 0
    idle = Knowing({})
    go(after, store, idle)
    assert idle.asked == []
    assert {name: result for name, (_, result) in store.results().items()} == undisturbed


def test_results_of_other_code_are_refused_in_one_line(
    tmp_path: Path, undisturbed: dict[str, RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, runs = Store(tmp_path), tiny().runs()
    store.add(undisturbed[runs[0].id], code=code_version())
    monkeypatch.setattr(comparing, "code_version", lambda edition: "new-torch9")
    with pytest.raises(StoreError, match="holds runs of this study made by other code .* this is new-torch9") as error:
        plan(tiny(), store, tell=silent)
    assert "\n" not in str(error.value)
    assert list(store.results()) == [runs[0].id]


def test_other_codes_results_of_other_studies_do_not_matter(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    store, study = Store(tmp_path), tiny().model_copy(update={"seeds": 1})
    seed_1 = tiny().runs()[1]
    store.add(undisturbed[seed_1.id], code="old")
    assert len(plan(study, store, tell=silent).left) == 2


def test_a_run_that_read_another_text_is_not_kept(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    store, runs = Store(tmp_path), tiny().runs()
    planned = plan(tiny(), store, tell=silent)
    other = undisturbed[runs[0].id].model_copy(update={"edition": "Python 2"})
    (failure,) = go(planned, store, Knowing({**undisturbed, runs[0].id: other}))
    assert failure.reason == "it read another text (Python 2); run it with the Python that runs here"
    assert runs[0].id not in store.results()


def test_one_failure_costs_one_run(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    store, runs = Store(tmp_path), tiny().runs()
    planned = plan(tiny(), store, tell=silent)
    failure = Failure(id=runs[0].id, reason="bad luck")
    assert go(planned, store, Knowing({**undisturbed, runs[0].id: failure})) == [failure]
    assert set(store.results()) == {run.id for run in runs[1:]}
    found = summary(planned, store, no_laws(planned), command="again")
    assert [cell.seeds for cell in found.cells] == [1, 2]
    assert found.versions["code"] == code_version()


def test_whatever_ends_a_study_ends_its_engine_and_keeps_what_came(
    tmp_path: Path, undisturbed: dict[str, RunResult]
) -> None:
    store, runs = Store(tmp_path), tiny().runs()
    planned, engine = plan(tiny(), store, tell=silent), Knowing(dict(undisturbed))

    def interrupt(run: RunConfig, result: RunResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(carry_out(planned, store, engine, no_laws(planned), finished=interrupt))
    assert engine.closed
    assert list(store.results()) == [runs[0].id]


def test_the_code_version_covers_everything_that_a_training_imports() -> None:
    root = Path(orderproof.__file__).parent
    beside = {
        "__init__.py",
        "errors.py",
        "lab/__init__.py",
        "lab/asking.py",
        "lab/code_version.py",
        "report/destination.py",
    }
    todo, seen = [root / "lab/training.py", *(root / "lab/questions").glob("*.py")], set()
    while todo:
        file = todo.pop()
        seen.add(file)
        if file.relative_to(root).as_posix() in beside:  # they decide no number
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orderproof"):
                at = root.parent.joinpath(*str(node.module).split("."))
                found = [at.with_suffix(".py"), at / "__init__.py", *(at / f"{name.name}.py" for name in node.names)]
                todo += [each for each in found if each.is_file() and each not in seen]
    names = {file.relative_to(root).as_posix() for file in seen}
    loose = {
        name
        for name in names
        if name not in beside | set(FILES) and not name.startswith(tuple(f"{part}/" for part in PARTS))
    }
    assert {"lab/checkpoints.py", "positions.py", "blocks/transformer.py"} <= names
    others = "encodings/configs/"  # read the configurations of other people's models
    assert {name for name in loose if not name.startswith(others)} == set(), "a result may depend on these"
