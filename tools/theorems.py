"""Compile the theorems of proofs/ with Coq and print what each of them assumes.

python tools/theorems.py                 compile proofs/ in build/proofs; exit 1 on an error, a warning or an axiom
python tools/theorems.py --quiet         print only the summary
python tools/theorems.py --build FOLDER  compile in another folder, which is deleted first
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROOFS = ROOT / "proofs"
BUILD = ROOT / "build/proofs"
LIBRARY = "Orderproof"
# Coq's own library of algebra warns of its notations and coercions when it is loaded. No other warning is silenced.
OPTIONS = ("-w", "-notation-overridden,-ambiguous-paths", "-Q", ".", LIBRARY)
INSTALL = (
    "The theorems need Coq with Mathematical Components; they are written with versions 8.16 and 1.15.\n"
    "Debian 12: apt-get install coq libcoq-mathcomp-algebra\n"
    "opam:      opam install coq.8.16.1 coq-mathcomp-algebra.1.15.0\n"
    "Nothing else in orderproof needs Coq."
)
CLOSED = "Closed under the global context"
WORKERS = 2


class ProofError(Exception):
    """A file does not compile, warns, or a theorem rests on an axiom."""


@dataclass(frozen=True, slots=True)
class Theorem:
    """A theorem: `proofs/argument/softmax.v` has the module `argument.softmax`."""

    module: str
    name: str

    @property
    def path(self) -> str:
        """The name with which a docstring or a page refers to it."""
        return f"{self.module}.{self.name}"


def compile_proofs(source: Path, build: Path) -> list[Theorem]:
    """Compile every file of `source` in a fresh copy at `build`.

    Args:
        source: Folder of Coq files.
        build: Folder that is deleted and written.

    Returns:
        Every theorem, file by file.

    Raises:
        ProofError: a file does not compile, gives a warning or states an axiom.

    """
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(source, build, ignore=lambda folder, names: [n for n in names if _is_compiled(n)])
    order = _dependencies(build)
    futures: dict[str, Future[None]] = {}
    with ThreadPoolExecutor(WORKERS) as pool:  # a file is submitted after what it requires, so no worker waits forever
        for file, required in order.items():
            futures[file] = pool.submit(_compile_after, build, file, [futures[each] for each in required])
        for future in futures.values():
            future.result()
    return [theorem for file in sorted(order) for theorem in _theorems(build, file)]


def print_assumptions(theorems: list[Theorem], build: Path) -> dict[Theorem, str]:
    """The axioms that each theorem rests on as Coq prints them, "" for none."""
    modules = dict.fromkeys(theorem.module for theorem in theorems)
    lines = [f"Require {LIBRARY}.{module}." for module in modules]
    for number, theorem in enumerate(theorems):  # Check prints its number in front of the answer
        lines += [f"Check {number}.", f"Print Assumptions {LIBRARY}.{theorem.path}."]
    (build / "assumptions.v").write_text("\n".join(lines) + "\n", encoding="utf-8")
    printed = _coqc(build, "assumptions.v")
    answers = re.split(r"^\d+\n +: nat\n", printed, flags=re.MULTILINE)[1:]
    if len(answers) != len(theorems):
        raise ProofError(f"{len(theorems)} theorems, but {len(answers)} answers about their axioms")
    return {each: _axioms(answer) for each, answer in zip(theorems, answers, strict=True)}


def _axioms(answer: str) -> str:
    text = " ".join(answer.split())
    return "" if text == CLOSED else text


def _is_compiled(name: str) -> bool:
    return name.endswith((".vo", ".vok", ".vos", ".glob", ".aux"))


def _dependencies(build: Path) -> dict[str, list[str]]:
    """Each file after those that it requires, with these."""
    files = sorted(str(path.relative_to(build)) for path in build.rglob("*.v"))
    printed = _run(build, "coqdep", "-Q", ".", LIBRARY, *files)
    required = {}
    for line in printed.splitlines():
        target, _, needs = line.partition(":")
        if ".vo" in target.split()[0] and not target.split()[0].endswith(".vio"):
            file = target.split()[0].removesuffix("o")
            required[file] = [each.removesuffix("o") for each in needs.split() if each.endswith(".vo")]
    order: dict[str, list[str]] = {}
    while len(order) < len(files):
        ready = [file for file in files if file not in order and all(each in order for each in required[file])]
        if not ready:
            raise ProofError("the files require each other in a circle")
        order.update((file, required[file]) for file in ready)
    return order


def _compile_after(build: Path, file: str, required: list[Future[None]]) -> None:
    for each in required:
        each.result()
    _coqc(build, file)


def _coqc(build: Path, file: str) -> str:
    """Compile one file; its output."""
    return _run(build, "coqc", *OPTIONS, file)


def _run(build: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
    if done.returncode or "Warning" in done.stderr:
        raise ProofError(f"{command[-1]}\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _theorems(build: Path, file: str) -> list[Theorem]:
    """The theorems and lemmas of a compiled file, in its order; an axiom is an error."""
    module = file.removesuffix(".v").replace("/", ".")
    found = []
    for line in (build / file).with_suffix(".glob").read_text(encoding="utf-8").splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "ax":
            raise ProofError(f"{file}: {rest.split()[-1]} is an axiom")
        if kind == "prf":
            found.append(Theorem(module, rest.split()[-1]))
    return found


def main() -> int:
    """Compile, print and check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quiet", action="store_true", help="print only the summary")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder for compiled files, deleted first")
    parser.add_argument("--source", type=Path, default=PROOFS, help="folder of Coq files")
    arguments = parser.parse_args()
    if shutil.which("coqc") is None:
        sys.stderr.write(INSTALL + "\n")
        return 2
    start = time.monotonic()
    try:
        theorems = compile_proofs(arguments.source, arguments.build)
        assumed = print_assumptions(theorems, arguments.build)
    except ProofError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for theorem, axioms in assumed.items():
        if axioms or not arguments.quiet:
            print(f"{theorem.path}: {axioms or 'no axioms'}")
    files = len({theorem.module for theorem in theorems})
    print(f"{len(theorems)} theorems in {files} files, {time.monotonic() - start:.0f} s")
    return 1 if any(assumed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
