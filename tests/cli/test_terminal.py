"""The command on a terminal, where progress is a live display and a model may print."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

SUBJECT = """
import torch
from torch import nn


class Prints(nn.Module):
    def forward(self, x):
        print("hello from the model")
        return x.cumsum(1)


def model():
    return Prints().eval(), torch.randn(2, 7, 6)
"""


@pytest.mark.parametrize("standard_output", ["terminal", "file"])
def test_a_command_ends_on_a_terminal(tmp_path: Path, standard_output: str) -> None:
    (tmp_path / "prints.py").write_text(SUBJECT)
    leader, terminal = pty.openpty()
    with (tmp_path / "report.txt").open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "orderproof", "prove", "prints.py:model", "--law", "causal"],
            cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=terminal if standard_output == "terminal" else file,
            stderr=terminal, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        )  # fmt: skip
        os.close(terminal)
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        shown = b""
        try:
            while part := os.read(leader, 65536):
                shown += part
        except OSError:  # Linux: no process has the terminal open any more
            pass
        finally:
            os.close(leader)
            watchdog.cancel()
        assert process.wait(timeout=10) == 0
    report = (tmp_path / "report.txt").read_bytes() if standard_output == "file" else shown
    assert b"proved for every length" in report
    assert b"hello from the model" in shown
    assert b"loading" in shown
