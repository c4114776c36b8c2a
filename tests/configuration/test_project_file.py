"""Where a configuration is found, and what is no configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.configuration.project_file import find_configuration
from orderproof.errors import UsageError

OWN = '[subjects.decoder]\nsubject = "model.py:decoder"\nlength = 5\n'
SHARED = '[tool.orderproof]\nseed = 3\n\n[tool.orderproof.subjects.a]\nsubject = "m:a"\n'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)


def test_the_nearest_configuration_upwards_counts() -> None:
    Path("orderproof.toml").write_text(OWN)
    found = find_configuration(Path.cwd() / "src" / "deep")
    assert found is not None
    assert (found.folder, found.subjects["decoder"].spec) == (Path.cwd(), "model.py:decoder")
    assert found.subjects["decoder"].options == {"length": 5}
    Path("src/pyproject.toml").write_text(SHARED)
    nearer = find_configuration(Path.cwd() / "src" / "deep")
    assert nearer is not None
    assert (nearer.folder, nearer.options, list(nearer.subjects)) == (Path.cwd() / "src", {"seed": 3}, ["a"])
    Path("src/.git").mkdir()
    Path("src/pyproject.toml").write_text("[project]\nname = 'orderproof-user'\n")
    assert find_configuration(Path.cwd() / "src" / "deep") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN + OWN, r"orderproof.toml:4: subjects.decoder is there twice; keep one"),
        ("subjects = 3\n", r"orderproof.toml:1: expected a table for each subject"),
        (OWN + '[subjects."a/b"]\n', r"orderproof.toml:4: expected letters, digits.*; got 'a/b'"),
        (OWN + "[subjects.x]\nseed = 1\n", r'orderproof.toml:4: expected subject = "model.py:build".*; got none'),
        (OWN + "[subjects.x]\n\nsubject = 1\n", r"orderproof.toml:6: expected subject = .*; got 1"),
        ("[subjects]\ndecoder = 'model.py:decoder'\n", r"orderproof.toml:2: expected a table with subject = "),
    ],
)
def test_what_is_no_configuration_is_one_line_with_its_place(text: str, message: str) -> None:
    Path("orderproof.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        find_configuration(Path.cwd())


def test_two_configurations_in_one_folder_are_refused() -> None:
    Path("orderproof.toml").write_text(OWN)
    Path("pyproject.toml").write_text("[project]\n\n" + SHARED)
    with pytest.raises(UsageError, match=r"pyproject.toml:3: expected one configuration; .* have one; keep one of"):
        find_configuration(Path.cwd())
