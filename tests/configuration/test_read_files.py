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
