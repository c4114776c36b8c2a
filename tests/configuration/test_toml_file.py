"""Errors in a TOML file name its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.configuration.toml_file import KeyPath, read_toml
from orderproof.errors import UsageError

TEXT = """\
# a comment
seed = 1

[subjects.first]
law = [
  "causal",
  "batch",
]

# another
[[accepted]]
code = \"\"\"
[subjects.none]
\"\"\"
[[accepted]]
expires = 2027-01-01
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("seed",), 2),
        (("subjects", "first"), 4),
        (("subjects", "first", "law"), 5),
        (("accepted", 0), 11),
        (("accepted", 0, "code"), 12),
        (("accepted", 1), 15),
        (("accepted", 1, "expires"), 16),
        (("subjects", "none"), 1),
        ((), 1),
    ],
)
def test_the_line_of_a_key_is_where_its_statement_begins(tmp_path: Path, place: KeyPath, line: int) -> None:
    file = tmp_path / "file.toml"
    file.write_text(TEXT)
    assert read_toml(file, "a file").line(place) == line


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("[subjects.first]\n", "file.toml:17: subjects.first is there twice; keep one"),
        ("expires = 3\n", "file.toml:17: expires is there twice; keep one"),
        ("x = [1,\n", "file.toml:17: expected TOML; "),
        ("=\n", "file.toml:17: expected TOML; "),
    ],
)
def test_what_is_no_toml_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.toml").write_text(TEXT + added)
    with pytest.raises(UsageError) as raised:
        read_toml(Path("file.toml"), "a file")
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absent.toml: a file cannot be read: No such file"):
        read_toml(tmp_path / "absent.toml", "a file")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UsageError, match="expected a file in UTF-8"):
        read_toml(tmp_path / "bytes.toml", "a file")
