"""The configuration that `orderproof init config` writes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from orderproof.configuration.first_file import first_file
from orderproof.errors import UsageError

MODEL = """
import torch.nn as nn

class Layer(nn.Module):
    def __init__(self, width=8): ...

class Model(nn.Module):
    def __init__(self, width=8):
        self.layers = nn.ModuleList([Layer(width)])

class Child(Model): ...

class Sized(nn.Module):
    def __init__(self, width, *, depth): ...

class _Hidden(nn.Module): ...

def build():
    return Sized(8, depth=2), None

def linear():
    return nn.Linear(8, 8)

def build_of(width):
    return Sized(width, depth=2)

def count(model):
    return 3
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("pack/model.py", "pack/tests/model.py", "pack/test_model.py", "pack/venv/lib/model.py"):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text(MODEL)
    Path("pack/venv/pyvenv.cfg").write_text("")
    Path("pack/broken.py").write_text("def")


def test_builders_and_modules_without_arguments_are_subjects() -> None:
    text = first_file(None, Path())
    subjects = tomllib.loads(text)["subjects"]
    assert {name: each["subject"] for name, each in subjects.items()} == {
        "build": "pack/model.py:build", "linear": "pack/model.py:linear",
        "Model": "pack/model.py:Model", "Child": "pack/model.py:Child"
    }  # fmt: skip
    assert "# build_of needs width: name a function without arguments that returns it." in text
    assert '# [subjects.build_of]\n# subject = "pack/model.py:build_of"' in text
    assert "Layer" not in text  # a part of Model


def test_paths_begin_in_the_folder_of_the_file() -> None:
    assert 'subject = "../pack/model.py:build"' in first_file("pack", Path("elsewhere"))
    assert 'subject = "pack/model.py:build"' in first_file("pack/model.py", Path())


def test_modules_of_an_importable_package_are_named_by_their_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pack/__init__.py").write_text("")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    monkeypatch.syspath_prepend(tmp_path)
    found = tomllib.loads(first_file("pack", Path()))["subjects"]
    assert {each["subject"] for each in found.values()} >= {"pack.model:build", "pack.model:Model"}


def test_a_package_without_modules_is_refused() -> None:
    Path("empty").mkdir()
    with pytest.raises(UsageError, match="expected modules of torch in empty; none was found"):
        first_file("empty", Path())
    with pytest.raises(UsageError, match="expected a folder, a file or an installed package; got 'absent'"):
        first_file("absent", Path())
