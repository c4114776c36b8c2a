"""The atlas in docs/, and files that are not an atlas."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from orderproof.atlas.document import read_document
from orderproof.atlas.page import page
from orderproof.atlas.table import table_page
from orderproof.errors import UsageError
from orderproof.laws import entry_map_law

FOLDER = Path(__file__).parents[2] / "docs/evidence/atlas"


def test_the_pages_in_docs_are_those_of_its_rows() -> None:
    document = read_document(FOLDER / "atlas.json.gz")
    made = page(document)
    folder = "docs/evidence/atlas"
    command = f"--from-json {folder}/atlas.json.gz --markdown {folder}/atlas.md --html {folder}/table.html"
    assert (FOLDER / "atlas.md").read_text(encoding="utf-8") == made, f"run orderproof atlas {command}"
    assert (FOLDER / "table.html").read_text(encoding="utf-8") == table_page(document), (
        f"run orderproof atlas {command}"
    )
    assert command in made
    assert len(made.splitlines()) < 90  # two screens


def test_document_is_read_back_from_plain_and_compressed_files(tmp_path: Path) -> None:
    document = read_document(FOLDER / "atlas.json.gz")
    few = document.model_copy(update={"rows": document.rows[:5]})
    for name in ("few.json", "few.json.gz"):
        few.write(str(tmp_path / name))
        assert read_document(tmp_path / name) == few
    assert gzip.decompress((tmp_path / "few.json.gz").read_bytes()) == (tmp_path / "few.json").read_bytes()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b"# a page\n", "Expecting value"),
        (b'{"atlas": 2}', "4 fields are missing, unknown or invalid; write it again with orderproof atlas --json"),
        (b"\xff", "'utf-8' codec"),
        (gzip.compress(b"{}", mtime=0)[:10], "ended before"),
        (b"\x1f\x8b\x08", ""),
    ],
)
def test_other_files_are_a_one_line_error(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UsageError, match="expected an atlas of schema 4: ") as error:
        read_document(tmp_path / "x")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_entry_map_law_is_about_every_permutation() -> None:
    assert entry_map_law().code == "OP101"
