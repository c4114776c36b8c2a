"""Help, lists and refusals answer without importing torch or transformers, which takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

from orderproof.cli.application import app
from orderproof.cli.list_command import list_command

COMMANDS = sorted(str(command.name) for command in app.registered_commands)
LISTS = ("laws", "encodings", "rules", "questions", "studies", "engines")
ANSWERED = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS), *(["list", name] for name in LISTS)]
REFUSED = [
    ["nonsense"],
    ["list", "nonsense"],
    ["audit", "--nonsense"],
    ["audit", "missing_file"],
    ["audit", "./missing.py:f"],
    ["audit", "missing_package:f"],
    ["audit", "model.py:bild"],
    ["prove", "model:bild", "--law", "causal"],
    ["audit", "missing.py:f", "--token-axis", "1"],
    ["audit", "organisation/missing"],
    ["audit", "empty"],
    ["audit", "arch:lama"],
    ["audit", "--tiny"],
    ["audit", "--length", "1"],
    ["audit", "--law", "nothing"],
    ["audit", "--expect", "nothing=holds"],
    ["audit", "--expect", "causal=maybe"],
    ["audit", "--json", "missing/report.json"],
    ["prove", "arch:llama", "--law", "causl"],
    ["prove", "missing_file", "--law", "causal"],
    ["card", "missing.json"],
    ["card", "missing_file"],
    ["card", "arch:llama", "--law", "causl"],
    ["recheck", "missing.json"],
    ["claims", "99"],
    ["ceiling", "nothing"],
    ["compare", "nothing"],
    ["compare", "missing.yaml"],
    ["sensitivity", "missing_file"],
    ["sensitivity", "-", "missing.txt"],
    ["sensitivity", "--pooling", "max"],
    ["sensitivity", "--limit", "1"],
    ["explain", "--report", "missing.json"],
    ["explain", "--study", "missing.json"],
    ["audit", "--against", "mlx"],
    ["audit", "arch:llama", "--against", "mlx", "--law", "causal"],
    ["audit", "arch:llama", "--law", "same_prefill"],
    ["audit", "arch:llama", "--against", "nothing"],
    ["audit", "arch:llama", "--against", "mlx", "--length", "9"],
    ["audit", "arch:llama", "--law", "packed_loss"],
    ["training", "missing.py:f"],
    ["training", "model.py:build", "--law", "causal"],
    ["init", "config", "missing"],
    ["ports", "nosuch"],
    ["ports", "--against", "nothing"],
    ["ports", "--from-json", "missing.json"],
    ["atlas", "nosuch"],
    ["atlas", "--date", "yesterday"],
    ["atlas", "--from-json", "missing.json"],
]
# Runs each command in one process and prints its exit code and the heavy packages that it imported.
PROGRAM = """
import contextlib, io, json, sys
from orderproof.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["orderproof", *arguments]
    code = None
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as left:
            code = left.code
    print(json.dumps([code or 0, [name for name in ("torch", "transformers") if name in sys.modules]]))
"""


def outcomes(commands: list[list[str]], folder: Path) -> list[tuple[int, list[str]]]:
    """The exit code of each command, and the heavy packages imported so far."""
    (folder / "empty").mkdir()
    (folder / "model.py").write_text("import torch\n\ndef build(): ...\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(found) == len(commands)
    return found


def test_lists_help_and_refusals_do_not_import_torch(tmp_path: Path) -> None:
    commands = [*ANSWERED, *REFUSED]
    for arguments, (code, imported) in zip(commands, outcomes(commands, tmp_path), strict=True):
        assert code == (0 if arguments in ANSWERED else 2), arguments
        assert imported == [], arguments


def test_an_import_of_torch_is_seen(tmp_path: Path) -> None:
    assert outcomes([["ceiling", "even_pairs", "--length", "4"]], tmp_path) == [(0, ["torch"])]


def test_every_list_is_tested() -> None:
    hint = get_type_hints(list_command)["what"]
    assert get_args(hint) == LISTS
