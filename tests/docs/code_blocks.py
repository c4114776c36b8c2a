"""Run the code blocks of a page, in order, in one folder and one Python namespace.

    ```python                     is run; with title="model.py", it is written to that file before the page runs
    ```python jax                 is a file for the Python that has jax: only written
    ```console jax                is run if the environment names such a Python
    ```text output                the output of the Python block before it, line by line
    ```console                    lines after `$ ` are run; the lines below must occur in the output, in order
    ```console long               is not run; listed with a reason in `LONG`
    ```yaml title="study.yaml"    is written to that file
    ```text, ```yaml, ```toml     is not code of this package

A line `...` replaces omitted lines. Numbers that are rounding errors (1.8e-07, 2^-29) may differ.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from orderproof.subject_spec import JAX_PYTHON_VARIABLE

ROOT = Path(__file__).parents[2]
PAGES = tuple(sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]))
PLAIN = {"text", "toml", "yaml"}
# Blocks that are not run: the first command of each, and the reason.
LONG = {
    "make audit": "creates an environment and installs torch; its last step is run as `orderproof audit`",
    "make theorems": "needs Coq and a minute; tests/proofs compiles the same files",
    "make test": "runs the whole test suite, which contains this test",
    "torchrun": "starts several communicating processes; tests/lab/test_distributed_training.py runs it",
    "orderproof engines install": "downloads 1 GB; tests/ports/test_environments.py makes environments",
    "orderproof audit arch:bert --against vllm": "needs 5 GB; tests/ports/test_encoders.py has the laws",
    "orderproof explain": "serves until it is interrupted; tests/cli/test_explain.py does so",
}

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_ROUNDING = re.compile(r"\d+(?:\.\d+)?e-\d+|2\^-\d+")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    words: tuple[str, ...]
    title: str
    body: str
    line: int

    def is_a(self, language: str, *words: str) -> bool:
        return self.language == language and set(words) <= set(self.words)


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        language, *words = shlex.split(found["info"]) or [""]
        titles = [word.partition("=")[2] for word in words if word.startswith("title=")]
        plain = tuple(word for word in words if "=" not in word)
        line = text.count("\n", 0, found.start()) + 1
        yield Block(language, plain, titles[0] if titles else "", found["body"], line)


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, with the output lines shown under it."""
    command, shown = "", []
    for line in block.body.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        elif command.endswith("\\"):
            command = command[:-1].rstrip() + " " + line.strip()
        else:
            shown.append(line)
    if command:
        yield command, shown


def first_missing_line(shown: list[str], output: str) -> str | None:
    """The first line that does not occur in the output after the lines before it; None if all do."""
    lines = [_plain(line) for line in output.splitlines()]
    start = 0
    for line in shown:
        if not line.strip() or line.strip() == "...":
            continue
        expected = _plain(line)
        try:
            start = lines.index(expected, start) + 1
        except ValueError:
            return line
    return None


def _plain(line: str) -> str:
    return " ".join(_ROUNDING.sub("~", line).split())


@dataclass
class Page:
    """A page being run in a folder."""

    path: Path
    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    printed: str = ""
    code: int = 0

    def run(self) -> None:
        """Run every block. Raises AssertionError with file and line where the output differs from the page."""
        with contextlib.chdir(self.folder):
            for block in blocks(self.path):  # a command may precede the file that it reads
                if block.title and not (self.folder / block.title).exists():
                    self._write(block)
            for block in blocks(self.path):
                self._run(block)

    def _run(self, block: Block) -> None:
        where = f"{self.path.relative_to(ROOT)}:{block.line}"
        if block.is_a("console", "long"):
            first = next(commands(block))[0]
            assert any(first.startswith(known) for known in LONG), f"{where}: {first!r} has no reason in LONG"
        elif block.is_a("python", "jax") or (block.is_a("console", "jax") and JAX_PYTHON_VARIABLE not in os.environ):
            return
        elif block.is_a("console"):
            for command, shown in commands(block):
                output = self._command(command, where)
                line = first_missing_line(shown, output)
                assert line is None, f"{where}: {command!r} does not print\n  {line}\nbut\n{output}"
        elif block.is_a("python"):
            self._python(block, where)
        elif block.is_a("text", "output"):
            line = first_missing_line(block.body.splitlines(), self.printed)
            assert line is None, f"{where}: the block before does not print\n  {line}\nbut\n{self.printed}"
        else:
            assert block.language in PLAIN, f"{where}: a {block.language!r} block, which is not run"
            self._write(block)

    def _write(self, block: Block) -> None:
        """Write a block that has a title to the file of that name."""
        if block.title:
            target = self.folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body, encoding="utf-8")

    def _python(self, block: Block, where: str) -> None:
        self._write(block)
        if block.title.startswith("src/orderproof/"):
            self._import(block.title)
            return
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.body, where, "exec"), self.names)
        self.printed = printed.getvalue()

    def _import(self, title: str) -> None:
        """Import a file as a module of the package. Use a separate process: the module registers its definitions."""
        import importlib

        name = title.removeprefix("src/").removesuffix(".py").replace("/", ".")
        package = importlib.import_module(name.rpartition(".")[0])
        package.__path__.append(str((self.folder / title).parent))
        module = importlib.import_module(name)
        self.names.update({k: v for k, v in vars(module).items() if not k.startswith("_")})

    def _command(self, command: str, where: str) -> str:
        if command == "echo $?":
            return f"{self.code}\n"
        program, *arguments = shlex.split(command)
        assert program == "orderproof", f"{where}: {program!r} cannot be run here"
        from orderproof.cli import main

        printed = io.StringIO()
        self.code = 0
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            mock.patch.object(sys, "argv", ["orderproof", *arguments]),
            mock.patch.dict("os.environ", {"COLUMNS": "80", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1"}),
        ):
            try:
                main()
            except SystemExit as left:
                self.code = int(left.code or 0)
        return printed.getvalue()


if __name__ == "__main__":
    Page(Path(sys.argv[1]), Path(sys.argv[2])).run()
