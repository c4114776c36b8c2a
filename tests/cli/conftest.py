"""The command line, run in the process of the tests."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from orderproof.cli import main

Run = Callable[..., tuple[int, str, str]]
STAGE = re.compile(r"^orderproof: .* \.\.\.\n", re.MULTILINE)  # a line of progress, which test_progress.py tests


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command, run in this process: its exit code and its two streams, without the lines of progress."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["orderproof", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, STAGE.sub("", captured.err)

    return call
