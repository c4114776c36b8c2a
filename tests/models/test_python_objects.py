"""Subjects from file.py:name or package.module:name."""

import pytest

from orderproof.errors import SubjectError, UsageError
from orderproof.models import load

SOURCE = """
import torch
from torch import nn
from neighbour import WIDTH

made = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
number = 3

class Block(nn.Module):
    width = WIDTH
    def forward(self, x):
        return x

def build():
    return nn.Linear(WIDTH, 2), torch.randn(1, 5, WIDTH)

def by_name():
    return nn.Identity(), {"input": torch.randn(2, 5, WIDTH)}

def nothing():
    pass

def text():
    return nn.Identity(), "x"

def fails():
    raise ValueError("no weights\\nhere")
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "neighbour.py").write_text("WIDTH = 16\n")
    (tmp_path / "model.py").write_text(SOURCE)
    return tmp_path / "model.py"


@pytest.mark.parametrize("name", ["made", "Block", "build", "by_name"])
def test_a_module_a_class_and_a_function_are_all_found(file, name):
    subject = load(f"{file}:{name}")
    assert (subject.name, subject.model_kind, subject.default_length) == (name, "module", 7)
    assert subject.sample(7).inputs[0].shape == (2, 7, 16)


def test_a_package_is_imported_from_the_working_directory(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    (file.parent / "subject_by_package.py").write_text(SOURCE)
    assert load("subject_by_package:Block").sample(5).inputs[0].shape == (2, 5, 16)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("buildd", "nothing is named 'buildd' there; did you mean 'build'"),
        ("number", r"expected a torch\.nn\.Module or a function that returns one; got int"),
        ("nothing", "it returned None; expected a torch"),
        ("text", "example inputs must be a tensor, a tuple or a dict of tensors; got str"),
        ("fails", r"calling it raised ValueError: no weights here, \w+\.py:\d+$"),
        ("nn.Linear", "calling it raised TypeError"),
    ],
)
def test_a_target_that_is_no_module_is_one_clear_line(file, name, message):
    with pytest.raises(SubjectError, match=message) as caught:
        load(f"{file}:{name}")
    assert "\n" not in str(caught.value)


def test_a_missing_or_broken_file_is_one_clear_line(tmp_path):
    with pytest.raises(SubjectError, match=r"no file .*absent\.py"):
        load(f"{tmp_path / 'absent.py'}:build")
    (tmp_path / "broken.py").write_text("import nowhere_at_all\nbuild = None")
    with pytest.raises(SubjectError, match=r"running .*broken\.py raised ModuleNotFoundError: .*, broken\.py:1$"):
        load(f"{tmp_path / 'broken.py'}:build")


def test_a_missing_or_broken_package_is_one_clear_line(tmp_path, monkeypatch):
    with pytest.raises(SubjectError, match="no module named nowhere_at_all"):
        load("nowhere_at_all.models:build")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_package_a.py").write_text("import nowhere_at_all\nbuild = None")
    with pytest.raises(SubjectError, match="importing broken_package_a raised ModuleNotFoundError"):
        load("broken_package_a:build")
    (tmp_path / "broken_package_b.py").write_text("build = 1 / 0")
    with pytest.raises(SubjectError, match="importing broken_package_b raised ZeroDivisionError"):
        load("broken_package_b:build")


def test_attention_belongs_to_transformers_models(file):
    with pytest.raises(UsageError, match="attention can be chosen for transformers models only"):
        load(f"{file}:made", attention="eager")
