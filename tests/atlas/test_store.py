"""The store of finished rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from orderproof.atlas.row import empty_row
from orderproof.atlas.runner import AtlasRequest, requested_document
from orderproof.atlas.store import AtlasStore
from orderproof.errors import UsageError
from tests.atlas.processes import rows_in


def store_rows(path: Path, *names: str) -> bytes:
    with AtlasStore(path) as store:
        for name in names:
            store.append(empty_row(name, None))
    return path.read_bytes()


def test_incomplete_last_line_is_removed(tmp_path: Path) -> None:
    content = store_rows(tmp_path / "store", "first", "second")
    end = content.index(b"\n") + 1
    for cut in range(end, len(content)):
        (tmp_path / "store").write_bytes(content[:cut])
        with AtlasStore(tmp_path / "store") as store:
            assert [row.name for row in store.rows.values()] == ["first"]
            store.append(empty_row("third", None))
        assert rows_in(tmp_path / "store") == ["first", "third"]


@pytest.mark.parametrize("text", ["# a page\n", "{}\n", '{"rows": []}\n', "not a store", '{"atlas":4}\n', "[1]\n"])
def test_file_that_is_not_a_store_is_refused_and_unchanged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.md"
    path.write_text(text)
    with pytest.raises(UsageError, match="expected a store of orderproof atlas; line 1 is not one of its rows"):
        AtlasStore(path)
    assert path.read_text() == text


def test_rows_of_another_schema_or_version_are_kept_and_ignored(tmp_path: Path) -> None:
    row = empty_row("bert", None).model_copy(update={"transformers": "4.0"})
    (tmp_path / "store").write_text('{"atlas":99,"other":true}\n' + row.to_line() + "\n")
    with AtlasStore(tmp_path / "store") as store:
        document = requested_document(AtlasRequest(("bert",)), store)
        assert (document.rows, document.requested) == ((), 1)
    assert (tmp_path / "store").read_text().startswith('{"atlas":99,')


def test_store_is_locked(tmp_path: Path) -> None:
    with AtlasStore(tmp_path / "store"), pytest.raises(UsageError, match="in use by another run"):
        AtlasStore(tmp_path / "store")
    AtlasStore(tmp_path / "store").close()
    with pytest.raises(UsageError, match="cannot open the store .*: No such file"):
        AtlasStore(tmp_path / "absent" / "store")


def test_full_disk_is_a_one_line_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with AtlasStore(tmp_path / "store") as store:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(UsageError, match="cannot write to the store .*: No space left on device"):
            store.append(empty_row("bert", None))
        assert store.rows == {}
