"""The checks of a subject that import neither torch nor transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from orderproof.errors import CheckpointError, OrderproofError, SubjectError, UsageError
from orderproof.subject_spec import architectures_in_source, check_length, check_spec


def test_the_architectures_in_the_source_are_those_of_transformers() -> None:
    assert architectures_in_source() == frozenset(CONFIG_MAPPING_NAMES)


@pytest.mark.parametrize(
    ("spec", "form"),
    [("arch:llama?num_hidden_layers=1", "architecture"), ("checkpoint", "folder"), ("model.py:build", "object"),
     ("torch.nn:Identity", "object"), ("folder_package:build", "object")],
)  # fmt: skip
def test_a_spec_has_a_form(spec: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("checkpoint/config.json", "model.py", "folder_package.py"):
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text("build = None\n")
    assert check_spec(spec) == form


def test_a_hub_id_is_looked_up_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CheckpointError, match="not in the local hub cache"):
        check_spec("someone/model")
    assert check_spec("someone/model", allow_network=True) == "hub"
    (tmp_path / "models--someone--model").mkdir()
    assert check_spec("someone/model") == "hub"


@pytest.mark.parametrize(
    ("spec", "options", "error", "message"),
    [
        ("", {}, UsageError, "got an empty text"),
        ("arch:lama", {}, UsageError, r"has no architecture 'lama'; did you mean 'llama'"),
        ("arch:bert", {"attention": "flash"}, UsageError, "attention must be 'sdpa' or 'eager'; got 'flash'"),
        ("model.py:build", {"tiny": True}, UsageError, "--tiny shrinks an architecture"),
        ("model.py:build", {}, SubjectError, "no file model.py"),
        ("no_such_package.part:build", {}, SubjectError, "no module named no_such_package"),
        ("weights.bin", {}, CheckpointError, "no such folder; a subject is"),
        ("bert", {}, CheckpointError, "the architecture is arch:bert"),
        (".", {}, CheckpointError, "no config.json in the folder"),
    ],
)
def test_a_missing_subject_is_refused(
    spec: str, options: dict[str, object], error: type[OrderproofError], message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(error, match=message):
        check_spec(spec, **options)  # type: ignore[arg-type]


def test_a_length_has_an_order() -> None:
    check_length(None)
    check_length(2)
    with pytest.raises(UsageError, match="at least 2 tokens; got 1"):
        check_length(1)


@pytest.mark.parametrize(
    "text",
    [
        "from elsewhere import *",
        "globals()['build'] = 1",
        "exec('build = 1')",
        "def __getattr__(name): ...",
        "import sys\nsys.modules[__name__].build = 1",
        "if True:\n    import torch as build",
        "def make():\n    global build\n    build = 1",
        "for build in (): ...",
        "def",
    ],
)
def test_a_name_that_a_module_may_have_is_looked_up_when_it_is_imported(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(text)
    assert check_spec(f"{tmp_path}/model.py:build") == "object"


def test_a_name_that_a_module_does_not_have_is_refused_before_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pack_of_names/inner").mkdir(parents=True)
    for place in ("model.py", "pack_of_names/__init__.py", "pack_of_names/inner/__init__.py", "pack_of_names/m.py"):
        Path(place).write_text("def build(): ...\n\nclass Model:\n    inner = None\n")
    for place in ("model.py", "pack_of_names", "pack_of_names.inner", "pack_of_names.m"):
        with pytest.raises(SubjectError, match="nothing is named 'bild' there; did you mean 'build'"):
            check_spec(f"{place}:bild")
        assert check_spec(f"{place}:Model.other") == "object"
