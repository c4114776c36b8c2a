"""The store keeps each result once; an invalid file is refused in one line and is not changed."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from orderproof.errors import StoreError
from orderproof.lab.result import RunResult
from orderproof.lab.store import ResultStore
from tests.lab.small_study import no_file_larger_than


@pytest.fixture
def results(undisturbed: dict[str, RunResult]) -> list[RunResult]:
    return list(undisturbed.values())


def test_a_stored_result_is_read_back_unchanged(tmp_path: Path, results: list[RunResult]) -> None:
    store = ResultStore(tmp_path / "new" / "folder")
    for result in results:
        store.add(result, code="a")
    assert ResultStore(store.folder).results() == {result.id: ("a", result) for result in results}


def test_the_first_result_of_a_run_stays(tmp_path: Path, results: list[RunResult]) -> None:
    store = ResultStore(tmp_path)
    store.add(results[0], code="first")
    store.add(results[0].model_copy(update={"seconds": 0.0}), code="second")
    assert store.results() == {results[0].id: ("first", results[0])}


def test_storing_a_result_deletes_its_checkpoint_and_partial_files(tmp_path: Path, results: list[RunResult]) -> None:
    store = ResultStore(tmp_path)
    store.checkpoints.mkdir()
    names = [f"{result.id}.safetensors" for result in results[:2]]
    for name in (*names, f".{names[0]}.77.part"):
        (store.checkpoints / name).touch()
    store.add(results[0], code="a")
    assert [file.name for file in store.checkpoints.iterdir()] == [names[1]]


def test_several_processes_can_create_and_fill_a_store_at_once(tmp_path: Path, results: list[RunResult]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ResultStore(tmp_path).add(results[number % 4], code="a"), range(24)))
    assert ResultStore(tmp_path).results() == {result.id: ("a", result) for result in results}


def test_a_file_that_is_no_database_is_refused_and_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite"
    file.write_bytes(b"my own notes\n" * 100)
    with pytest.raises(StoreError, match=r"results\.sqlite: file is not a database; move the file away"):
        ResultStore(tmp_path)
    assert file.read_bytes() == b"my own notes\n" * 100


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7])
def test_a_truncated_file_is_refused_and_a_restored_copy_works(
    tmp_path: Path, results: list[RunResult], share: float
) -> None:
    store = ResultStore(tmp_path)
    for result in results:
        store.add(result, code="a")
    whole = store.file.read_bytes()
    store.file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(StoreError, match="(malformed|not a database); move the file away, then restore a copy") as why:
        ResultStore(tmp_path).results()
    assert "\n" not in str(why.value)
    store.file.write_bytes(whole)
    assert len(ResultStore(tmp_path).results()) == 4


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    change(ResultStore(tmp_path).file, "PRAGMA user_version = 7")
    with pytest.raises(StoreError, match="expected schema 1, got schema 7; pass another --store"):
        ResultStore(tmp_path)


def test_a_database_of_another_program_is_refused_and_unchanged(tmp_path: Path) -> None:
    change(tmp_path / "results.sqlite", "CREATE TABLE recipes (name TEXT)")
    before = (tmp_path / "results.sqlite").read_bytes()
    with pytest.raises(StoreError, match="got tables of another program"):
        ResultStore(tmp_path)
    assert (tmp_path / "results.sqlite").read_bytes() == before


@pytest.mark.parametrize("text", ["{", "{}", "[1]", ""])
def test_a_result_that_cannot_be_read_is_named(tmp_path: Path, results: list[RunResult], text: str) -> None:
    store = ResultStore(tmp_path)
    store.add(results[0], code="a")
    change(store.file, f"UPDATE runs SET result = '{text}'")
    with pytest.raises(StoreError, match=f"the result of run {results[0].id} cannot be read; move the file away"):
        store.results()


def test_a_result_with_the_id_of_another_run_is_refused(tmp_path: Path, results: list[RunResult]) -> None:
    store = ResultStore(tmp_path)
    store.add(results[0], code="a")
    change(store.file, f"UPDATE runs SET id = '{results[1].id}'")
    with pytest.raises(StoreError, match=f"the result of run {results[1].id} is of another run"):
        store.results()


def test_a_full_disk_loses_no_stored_result(tmp_path: Path, results: list[RunResult]) -> None:
    store = ResultStore(tmp_path)
    store.add(results[0], code="a")
    checkpoint = store.checkpoints / f"{results[1].id}.safetensors"
    checkpoint.parent.mkdir()
    checkpoint.touch()
    with (
        no_file_larger_than(1000),
        pytest.raises(StoreError, match=r"(full|I/O error); check its permissions and the free space"),
    ):
        store.add(results[1], code="a")
    assert list(store.results()) == [results[0].id]
    assert checkpoint.exists(), "the checkpoint of the run was deleted"
    store.add(results[1], code="a")
    assert set(store.results()) == {results[0].id, results[1].id}


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        StoreError, match=r"cannot create the folder '.*file/folder': Not a directory; pass another --store"
    ):
        ResultStore(tmp_path / "file" / "folder")


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as held, held:
        held.execute(statement)
