"""Which code made a result: a digest of the sources that it depends on, and torch's version.

Results of different code are not put into one study. Only what a run's numbers can depend on counts: the lab's training
and questions, the blocks and the encodings with their kernels; and the text that a question is about, where it has one.
A proof depends on every line of the package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import torch

import orderproof

ROOT = Path(orderproof.__file__).parent
PARTS = ("lab/questions", "blocks", "encodings")
FILES = (
    "positions.py",
    "lab/checkpoints.py",
    "lab/choices.py",
    "lab/configuration.py",
    "lab/letter_counts.py",
    "lab/network.py",
    "lab/question.py",
    "lab/result.py",
    "lab/scoring.py",
    "lab/stretching.py",
    "lab/strings.py",
    "lab/training.py",
    "lab/transcription.py",
)
SOURCES = (".py", ".c", ".h")


@cache
def code_version(edition: str = "") -> str:
    """What a run's numbers depend on: twelve digits for our sources, torch's version without its build, and the text.

    ``edition`` is that of the question (`Question.edition`).
    """
    text = f"-text{hashlib.sha256(edition.encode()).hexdigest()[:8]}" if edition else ""
    return _of_sources() + text


@cache
def _of_sources() -> str:
    return _digest([*(ROOT / name for name in FILES), *(file for part in PARTS for file in _sources(ROOT / part))])


@cache
def prover_version() -> str:
    """The same for proofs."""
    return _digest(_sources(ROOT))


def _sources(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.suffix in SOURCES)


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for name, file in sorted((file.relative_to(ROOT).as_posix(), file) for file in files):
        digest.update(name.encode() + file.read_bytes())
    return f"{digest.hexdigest()[:12]}-torch{torch.__version__.partition('+')[0]}"
