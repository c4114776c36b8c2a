"""Streams that cannot be written, and Ctrl-C: one line on standard error, and the documented exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interruptible import start_interruptible

COMMAND = [sys.executable, "-m", "orderproof"]
FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["list", "laws"], ["list", "encodings"]])
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.decode() == "orderproof: standard output cannot be written: No space left on device\n"


def test_a_closed_standard_output_is_no_error() -> None:
    done = subprocess.run(
        [*COMMAND, "list", "laws"], preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [["list", "laws"], ["--help"], ["audit", "--help"]])
def test_a_pipe_that_nobody_reads_has_its_own_exit_code(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, *arguments], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_name_that_cannot_be_opened_is_one_line() -> None:
    name = f"{'x' * 300}.py:build"
    done = subprocess.run([*COMMAND, "audit", name], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"orderproof: {name!r} cannot be opened: File name too long\n"


SUBJECT = """
import time
from torch import nn


def model():
    time.sleep(1000)
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_loading_is_one_line(tmp_path: Path, sent: signal.Signals) -> None:
    (tmp_path / "waits.py").write_text(SUBJECT)
    process = start_interruptible(
        [*COMMAND, "prove", "waits.py:model", "--law", "causal"], cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    first = process.stderr.readline()
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert first == b"orderproof: loading waits.py:model ...\n"
    assert (out, err) == (b"", b"orderproof: interrupted\n")


def test_a_negative_time_limit_is_refused() -> None:
    done = subprocess.run([*COMMAND, "audit", "--timeout", "-1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Invalid value for '--timeout'" in done.stderr


def test_an_error_without_a_text_has_a_line() -> None:
    from orderproof.errors import first_line

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    assert first_line(Silent()) == "Silent"


def test_a_model_may_ask_for_the_encoding_of_its_streams(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(
        "import sys, torch\nfrom torch import nn\nsys.stdout.reconfigure(encoding=sys.stdout.encoding.lower())\n"
        "def model():\n    return nn.Linear(6, 6).eval(), torch.randn(2, 7, 6)\n"
    )
    done = subprocess.run(
        [*COMMAND, "prove", "asks.py:model", "--law", "batch", "-q"], cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
