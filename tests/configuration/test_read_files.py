"""The files that a process and its children read are seen."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from orderproof.configuration.read_files import followed_reads


def test_files_that_are_read_are_seen_and_written_ones_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    save_file({"weight": torch.zeros(2)}, "weights.safetensors")
    torch.save(torch.zeros(2), "weights.pt")
    Path("read_by_the_test.py").write_text("import json, os\nos.getenv('WIDTH')\n'DEPTH' in os.environ\n")
    Path("late.txt").write_text("not yet")
    Path("forked.txt").write_text("")
    with followed_reads() as read:
        load_file("weights.safetensors")
        torch.load("weights.pt", weights_only=True)
        __import__("read_by_the_test")
        Path("made.txt").write_text("made")
        Path("made.txt").read_text()
        with pytest.raises(FileNotFoundError):
            Path("absent.txt").read_text()
        if not (child := os.fork()):
            Path("forked.txt").read_text()
            os._exit(0)
        os.waitpid(child, 0)
        found, settings = read.paths(), read.settings()
    Path("late.txt").read_text()
    assert settings == {"WIDTH", "DEPTH"}  # and none that a library asked for
    seen = {path.name for path in found if path.parent == tmp_path.resolve()}
    assert seen == {"weights.safetensors", "weights.pt", "read_by_the_test.py", "absent.txt", "forked.txt"}
    assert not [path for path in found if "site-packages" in path.parts or path.name == "json"]
    del sys.modules["read_by_the_test"]


def test_links_lists_questions_and_libraries_of_a_model_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("step_1.txt", "here", "made_later"):
        Path(name).write_text("1")
    for name in ("listed", "globbed"):
        Path(name).mkdir()
    Path("latest.txt").symlink_to("step_1.txt")
    Path("asked_by_the_test.py").write_text(
        "import ctypes, glob, os, shutil\n"
        "from pathlib import Path\n"
        "Path('latest.txt').read_text(), os.listdir('listed'), glob.glob('globbed/*.pt')\n"
        "found = Path('here').exists(), os.path.isfile('absent'), os.path.exists('gone')\n"
        "Path('gone').write_text('now')\n"
        "try: ctypes.CDLL('./kernel.so')\n"
        "except OSError: pass\n"
        "shutil.copytree('listed', 'copied', symlinks=True)\n"
    )
    ask = os.stat
    with followed_reads() as read:
        __import__("asked_by_the_test")
        paths, questions, folders = read.paths(), read.questions(), read.module_folders()
    assert os.stat is ask
    assert os.stat in os.supports_follow_symlinks

    def names(found: set[Path]) -> set[str]:
        return {path.name for path in found if path.parent == tmp_path}

    assert names(paths) == {"asked_by_the_test.py", "latest.txt", "listed", "globbed", "kernel.so"}
    assert {"here", "absent"} <= names(questions)
    assert "gone" not in names(questions)  # the model itself has made it
    assert tmp_path in folders
    assert not [path for path in (*questions, *folders) if "site-packages" in path.parts]
    del sys.modules["asked_by_the_test"]
