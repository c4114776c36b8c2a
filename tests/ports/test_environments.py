"""Environments of engines: made, found, listed and removed; what fails leaves nothing and says one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orderproof import audit
from orderproof.conventions.library import libraries
from orderproof.errors import UsageError
from orderproof.ports.engines.engine import EngineError
from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.engines.registry import engines, find_engine
from orderproof.ports.environments import install as making
from orderproof.ports.environments.environment import RECORD, Environment, environments
from orderproof.ports.environments.install import Requirements, install
from orderproof.ports.load import load_reference
from tests.ports.numpy_engine import SIDE, numpy_engine

TINY = Environment("tiny", "1.0")
NEEDS = Requirements("tiny-engine", "1.0", ("numpy==2.4.6",), left_out=("extra",), gigabytes=0.0)


class Steps:
    """The commands of an installation, which make an interpreter that is this one, or fail with a text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failing: str = "", says: str = "") -> None:
        self.commands: list[list[str]] = []
        self.failing, self.says = failing, says
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, command: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(list(command))
        if "venv" in command:
            (Path(command[-1]) / "bin").mkdir(parents=True)
            (Path(command[-1]) / "bin" / "python").symlink_to(sys.executable)
        failed = bool(self.failing) and self.failing in command
        return subprocess.CompletedProcess(list(command), int(failed), "", self.says if failed else "")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ORDERPROOF_ENGINES", str(tmp_path / "engines"))
    return tmp_path / "engines"


def make(**changes: object) -> bool:
    return install(TINY, NEEDS, lambda python: None)


def test_an_installation_pins_versions_and_names_no_index(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    steps = Steps(monkeypatch)
    assert make()
    assert [command[-2:] for command in steps.commands[1:]] == [
        ["tiny-engine==1.0", "numpy==2.4.6"],
        ["--yes", "extra"],
    ]
    assert not [word for command in steps.commands for word in command if "://" in word or "index" in word]
    (found,) = environments()
    assert (found.label, found.age_days, found.is_installed) == ("tiny@1.0", 0, True)
    assert found.size > 0
    assert not make()  # it is there
    assert len(steps.commands) == 3
    found.remove()
    assert not environments()


@pytest.mark.parametrize(
    ("failing", "says", "reason"),
    [
        ("venv", "The virtual environment was not created: ensurepip is not available", "ensurepip is not available"),
        ("install", "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
         "no space is left on the disk of"),
        ("install", "ERROR: Could not find a version\nERROR: No matching distribution found for tiny-engine==1.0",
         "pip finds no tiny-engine==1.0 for Python 3."),
        ("uninstall", "ERROR: Cannot uninstall extra", "tiny@1.0 cannot be installed: Cannot uninstall extra"),
    ],
)  # fmt: skip
def test_a_step_that_fails_leaves_nothing(
    failing: str, says: str, reason: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    Steps(monkeypatch, failing, says)
    with pytest.raises(EngineError, match=reason) as caught:
        make()
    assert "\n" not in str(caught.value)
    assert not (folder / "tiny@1.0").exists()
    Steps(monkeypatch)
    assert make()


def test_another_version_leaves_pins_that_do_not_fit_to_pip(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    steps = Steps(monkeypatch, "numpy==2.4.6", "ERROR: ResolutionImpossible: for help visit a page")
    with pytest.raises(EngineError, match="tiny@1.0 cannot be installed: ResolutionImpossible"):
        make()
    steps.commands.clear()
    assert install(Environment("tiny", "0.9"), NEEDS, lambda python: None)
    asked = [command[-2:] for command in steps.commands if "install" in command]
    assert asked == [["tiny-engine==0.9", "numpy==2.4.6"], ["tiny-engine==0.9", "numpy"]]


def test_an_engine_that_cannot_be_imported_or_a_key_press_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    Steps(monkeypatch)
    for error in (EngineError("tiny cannot be imported"), KeyboardInterrupt()):

        def check(python: Path, error: BaseException = error) -> None:
            raise error

        with pytest.raises(type(error)):
            install(TINY, NEEDS, check)
        assert not (folder / "tiny@1.0").exists()


def test_what_a_killed_installation_left_is_not_listed_and_is_replaced(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    Steps(monkeypatch)
    (folder / "tiny@1.0" / "bin").mkdir(parents=True)
    (folder / "tiny@1.0" / "bin" / "python").symlink_to(sys.executable)
    assert not environments()
    assert not Environment("tiny", "1.0").is_installed
    assert make()
    assert environments()


def test_two_installations_at_once_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, made = Steps(monkeypatch), list[bool]()
    threads = [threading.Thread(target=lambda: made.append(make())) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(made) == [False, False, True]
    assert len(steps.commands) == 3


def test_too_little_space_is_one_line_before_anything_is_made(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(making.shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match="expected 2 GB free for tiny-engine in .*; there are 0.0: free some"):
        install(TINY, Requirements("tiny-engine", "1.0", gigabytes=2.0), lambda python: None)
    assert not (folder / "tiny@1.0").exists()


def test_a_folder_that_cannot_be_made_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ORDERPROOF_ENGINES", str(tmp_path / "file" / "engines"))
    with pytest.raises(EngineError, match="tiny@1.0 cannot be installed in .*: Not a directory"):
        make()


def test_an_engine_that_is_not_installed_says_how(tmp_path: Path) -> None:
    (finding,) = audit("arch:llama", against="onnxruntime-genai", laws=["same_prefill"]).findings
    assert finding.verdict == "undecided"
    assert finding.reason == ("onnxruntime-genai is not installed: orderproof engines install onnxruntime-genai")


def test_an_installed_environment_is_used_and_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder / "numpy@1.5"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (place / "bin" / "python").chmod(0o755)
    (place / RECORD).write_text(json.dumps({"installed_on": "2026-11-30"}))
    (folder / "difference.txt").write_text("")
    engine = EnvironmentEngine(
        name="numpy", title="numpy", distribution="numpy", side=str(SIDE), requirements=Requirements("numpy", "1.5"),
        variables={"DIFFERENCE_FILE": str(folder / "difference.txt")},
    )  # fmt: skip
    report = audit("arch:llama", against=engine, laws=["same_prefill"])
    assert report.exit_code == 0, report.findings[0].reason
    assert report.versions["numpy"] == "1.5"
    other = engine.for_version("1.6")
    assert (other.name, other.is_installed) == ("numpy@1.6", False)


def test_versions_and_interpreters_are_checked_at_once(tmp_path: Path) -> None:
    assert find_engine("onnxruntime-genai@0.17.1").name == "onnxruntime-genai@0.17.1"
    for spec, reason in (
        ("onnxruntime-genai@new", "expected a version as onnxruntime-genai@"),
        (f"onnxruntime-genai:{tmp_path}/none", "expected the interpreter of an environment with onnxruntime-genai"),
        ("onnx@1", "expected engine onnx without a version; got onnx@1"),
    ):
        with pytest.raises(UsageError, match=reason):
            find_engine(spec)


def test_a_folder_that_the_library_exported_is_read_in_place_of_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    engine = replace(numpy_engine(tmp_path / "cache"), exported="model.safetensors")
    with pytest.raises(UsageError, match=r"expected the interpreter .*, or a folder with model.safetensors; no file "):
        engine.for_target(str(tmp_path / "cache"))
    for seed, verdict in ((0, "held"), (1, "refuted")):
        folder = tmp_path / str(seed)
        load_reference("arch:llama?num_hidden_layers=1", seed=seed).save(folder)
        own = engine.for_target(str(folder))
        assert own.name == f"numpy:{folder}"
        (finding,) = audit("arch:llama?num_hidden_layers=1", against=own, laws=["same_prefill"]).findings
        assert finding.verdict == verdict, finding.reason
        assert ("Check first that" in finding.remedy) == (verdict == "refuted")


def test_every_environment_pins_all_its_versions() -> None:
    own = [engine for engine in engines().values() if isinstance(engine, EnvironmentEngine)]
    assert own
    for engine in own:
        assert all("==" in each for each in engine.requirements.others), engine.name
        assert engine.requirements.distribution == engine.distribution


def test_no_environment_of_a_library_has_the_name_of_an_engine() -> None:
    assert not {library.environment.name for library in libraries().values()} & set(engines())


@pytest.mark.parametrize("name", ["mlx", "ctranslate2"])
def test_another_version_of_an_engine_that_runs_here_has_an_environment(name: str, folder: Path) -> None:
    here, other = find_engine(name), find_engine(f"{name}@0.1.0")
    assert not here.has_environment
    assert isinstance(other, EnvironmentEngine)
    assert (other.environment.folder, other.abilities) == (folder / f"{name}@0.1.0", here.abilities)
    assert other.how_to_install == f"orderproof engines install {name}@0.1.0"


def test_a_build_without_a_compiler_takes_the_place_of_llama_cpp(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(type(engines()["llamacpp"]), "is_installed", False)
    assert find_engine("llamacpp").name == "llamacpp"
    assert find_engine("llamacpp").missing.endswith("without a compiler: orderproof engines install xllamacpp")
    python = folder / f"xllamacpp@{engines()['xllamacpp'].requirements.version}" / "bin" / "python"  # type: ignore[attr-defined]
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (python.parent.parent / RECORD).write_text(json.dumps({"installed_on": "2026-11-30"}))
    assert find_engine("llamacpp").name == "xllamacpp"


def test_parts_of_a_source_package_are_kept_with_an_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    Steps(monkeypatch)
    asked = []
    monkeypatch.setattr(making, "kept_sources", lambda *given: asked.append(given))
    assert install(TINY, Requirements("tiny-engine", "1.0", source=("inner", ("tool.py",)), gigabytes=0.0), lambda _: 0)
    assert asked == [("tiny-engine", "1.0", "inner", ("tool.py",), folder / "tiny@1.0" / "source")]
