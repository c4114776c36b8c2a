"""A kept report is given again while nothing has changed, and never otherwise."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from orderproof.configuration.basis import FOLDER, SMALL, basis_of, environment, options_text
from orderproof.configuration.kept_reports import KeptReports
from tests.report import examples


@pytest.fixture
def kept(tmp_path: Path) -> KeptReports:
    (tmp_path / "model.py").write_text("WIDTH = 8\n")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "listed").mkdir()
    (tmp_path / "link").symlink_to("model.py")
    (tmp_path / "checkpoint" / "model.safetensors").write_bytes(b"0" * (SMALL + 1))
    return KeptReports(tmp_path, "decoder", {"subject": "model.py:build", "seed": 0})


@dataclass(frozen=True)
class Read:
    """The files that an audit read, in a folder."""

    folder: Path

    def paths(self) -> set[Path]:
        return {self.folder / name for name in ("model.py", "absent.json", "link", "listed")}

    def questions(self) -> set[Path]:
        return {self.folder / "asked", self.folder / "listed"}

    def module_folders(self) -> set[Path]:
        return {self.folder}

    def settings(self) -> set[str]:
        return {"WIDTH"}


def keep(kept: KeptReports, *, began: int | None = None) -> None:
    began = time.time_ns() + 10**9 if began is None else began
    stated = [kept.folder / "checkpoint"]
    basis = basis_of(Read(kept.folder), stated, began=began, environment_then=environment())
    if basis is not None:
        kept.keep(examples.everyday(), basis.model_copy(update={"options": options_text(kept.options)}))


def lead_elsewhere(folder: Path) -> None:
    (folder / "other").write_text("other")
    (folder / "link").unlink()
    (folder / "link").symlink_to("other")


def change_weights(folder: Path) -> None:
    os.utime(folder / "checkpoint" / "model.safetensors", ns=(1, 1))


CHANGES: dict[str, Callable[[Path], object]] = {
    "code": lambda folder: (folder / "model.py").write_text("WIDTH = 9\n"),
    "weights": change_weights,
    "another file of the checkpoint": lambda folder: (folder / "checkpoint" / "adapter.json").write_text("{}"),
    "a file that was looked for": lambda folder: (folder / "absent.json").write_text("{}"),
    "a symbolic link that leads elsewhere": lead_elsewhere,
    "a file in a folder that was listed": lambda folder: (folder / "listed" / "b.pt").write_text(""),
    "a file of which only the existence was asked": lambda folder: (folder / "asked").write_text(""),
    "a module that another would hide": lambda folder: (folder / "helper.py").write_text(""),
    "a file that is gone": lambda folder: (folder / "model.py").unlink(),
}


def test_an_unchanged_subject_has_its_report(kept: KeptReports) -> None:
    assert kept.find() is None
    keep(kept)
    found = kept.find()
    assert found is not None
    assert (found.report, found.made[:2]) == (examples.everyday(), "20")
    (kept.folder / "model.py").write_text("WIDTH = 8\n")  # the same content, at another time
    (kept.folder / "report.html").write_text("")  # no module
    (kept.folder / "listed" / "__pycache__").mkdir()
    assert kept.find() is not None
    assert (kept.folder / FOLDER / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_makes_it_unknown(kept: KeptReports, change: str) -> None:
    keep(kept)
    CHANGES[change](kept.folder)
    assert kept.find() is None


def test_other_options_packages_and_settings_make_it_unknown(
    kept: KeptReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(kept)
    assert KeptReports(kept.folder, kept.name, {**kept.options, "seed": 1}).find() is None
    monkeypatch.setenv("COLUMNS", "77")
    assert kept.find() is not None
    for name in ("CUDA_VISIBLE_DEVICES", "WIDTH"):  # of the libraries, and one that the model asked for
        monkeypatch.setenv(name, "7")
        assert kept.find() is None
        monkeypatch.delenv(name)
    assert kept.find() is not None
    packages = kept.folder / "packages"
    (packages / "torch-1.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr("orderproof.configuration.basis.package_roots", lambda: [packages])
    assert kept.find() is None


def test_a_file_that_changed_during_the_audit_is_not_kept(kept: KeptReports) -> None:
    keep(kept, began=(kept.folder / "model.py").stat().st_mtime_ns - 1)
    assert kept.find() is None


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_a_cut_file_is_none(kept: KeptReports, part: float) -> None:
    keep(kept)
    whole = kept.file.read_bytes()
    kept.file.write_bytes(whole[: int(part * len(whole))])
    assert kept.find() is None
    kept.file.write_bytes(whole.replace(b'"pass"', b'"fail"'))
    assert kept.find() is None
    keep(kept)
    assert kept.find() is not None


def test_a_folder_that_cannot_be_written_keeps_nothing(kept: KeptReports) -> None:
    (kept.folder / FOLDER).write_text("a file")
    keep(kept)
    assert kept.find() is None
