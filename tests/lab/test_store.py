"""The store keeps what it is given, once; what is wrong with its file is one line, and the file is left as it is."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from orderproof.errors import StoreError
from orderproof.lab.result import RunResult
from orderproof.lab.store import Store
from tests.lab.running import no_file_larger_than


@pytest.fixture
def results(undisturbed: dict[str, RunResult]) -> list[RunResult]:
    return list(undisturbed.values())


def test_what_is_kept_comes_back_the_same(tmp_path: Path, results: list[RunResult]) -> None:
    store = Store(tmp_path / "new" / "folder")
    for result in results:
        store.add(result, code="a")
    assert Store(store.folder).results() == {result.id: ("a", result) for result in results}


def test_the_first_result_of_a_run_stays(tmp_path: Path, results: list[RunResult]) -> None:
    store = Store(tmp_path)
    store.add(results[0], code="first")
    store.add(results[0].model_copy(update={"seconds": 0.0}), code="second")
    assert store.results() == {results[0].id: ("first", results[0])}


def test_keeping_a_result_removes_its_checkpoint_and_what_was_half_written(
    tmp_path: Path, results: list[RunResult]
) -> None:
    store = Store(tmp_path)
    store.checkpoints.mkdir()
    names = [f"{result.id}.safetensors" for result in results[:2]]
    for name in (*names, f".{names[0]}.77.part"):
        (store.checkpoints / name).touch()
    store.add(results[0], code="a")
    assert [file.name for file in store.checkpoints.iterdir()] == [names[1]]


def test_many_can_open_a_new_store_and_add_to_it_at_once(tmp_path: Path, results: list[RunResult]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: Store(tmp_path).add(results[number % 4], code="a"), range(24)))
    assert Store(tmp_path).results() == {result.id: ("a", result) for result in results}


def test_a_file_that_is_no_database_is_refused_and_left(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite"
    file.write_bytes(b"my own notes\n" * 100)
    with pytest.raises(StoreError, match=r"results\.sqlite: file is not a database; move the file away"):
        Store(tmp_path)
    assert file.read_bytes() == b"my own notes\n" * 100


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7])
def test_a_file_cut_short_is_refused_and_a_copy_put_back_goes_on(
    tmp_path: Path, results: list[RunResult], share: float
) -> None:
    store = Store(tmp_path)
    for result in results:
        store.add(result, code="a")
    whole = store.file.read_bytes()
    store.file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(StoreError, match="(malformed|not a database); move the file away, and put back a copy") as why:
        Store(tmp_path).results()
    assert "\n" not in str(why.value)
    store.file.write_bytes(whole)
    assert len(Store(tmp_path).results()) == 4


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    change(Store(tmp_path).file, "PRAGMA user_version = 7")
    with pytest.raises(StoreError, match="has schema 7, this version reads schema 1; give another --store"):
        Store(tmp_path)


def test_a_database_of_something_else_is_refused_and_left(tmp_path: Path) -> None:
    change(tmp_path / "results.sqlite", "CREATE TABLE recipes (name TEXT)")
    before = (tmp_path / "results.sqlite").read_bytes()
    with pytest.raises(StoreError, match="has tables of something else"):
        Store(tmp_path)
    assert (tmp_path / "results.sqlite").read_bytes() == before


@pytest.mark.parametrize("text", ["{", "{}", "[1]", ""])
def test_a_result_that_cannot_be_read_is_named(tmp_path: Path, results: list[RunResult], text: str) -> None:
    store = Store(tmp_path)
    store.add(results[0], code="a")
    change(store.file, f"UPDATE runs SET result = '{text}'")
    with pytest.raises(StoreError, match=f"the result of run {results[0].id} cannot be read; move the file away"):
        store.results()


def test_a_result_under_another_runs_name_is_noticed(tmp_path: Path, results: list[RunResult]) -> None:
    store = Store(tmp_path)
    store.add(results[0], code="a")
    change(store.file, f"UPDATE runs SET id = '{results[1].id}'")
    with pytest.raises(StoreError, match=f"the result of run {results[1].id} is of another run"):
        store.results()


def test_a_full_disk_loses_nothing_that_was_kept(tmp_path: Path, results: list[RunResult]) -> None:
    store = Store(tmp_path)
    store.add(results[0], code="a")
    checkpoint = store.checkpoints / f"{results[1].id}.safetensors"
    checkpoint.parent.mkdir()
    checkpoint.touch()
    with no_file_larger_than(1000), pytest.raises(StoreError, match=r"(full|I/O error); see that .* there is room"):
        store.add(results[1], code="a")
    assert list(store.results()) == [results[0].id]
    assert checkpoint.exists(), "what the run can go on from is gone"
    store.add(results[1], code="a")
    assert set(store.results()) == {results[0].id, results[1].id}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        StoreError, match=r"cannot make the folder '.*file/folder': Not a directory; give another --store"
    ):
        Store(tmp_path / "file" / "folder")


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as held, held:
        held.execute(statement)
