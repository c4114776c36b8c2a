"""The version of the code behind a result: a digest of the source files that it depends on, and torch's version.

A study does not mix results of different code. A result depends on the lab's training and questions, the blocks, the
encodings and their kernels, and on the text that a question reads, if any. A proof depends on the whole package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import torch

import orderproof

ROOT = Path(orderproof.__file__).parent
SOURCE_FOLDERS = ("lab/questions", "blocks", "encodings")
SOURCE_FILES = (
    "positions.py",
    "seeded_random.py",
    "lab/checkpoints.py",
    "lab/choice_question.py",
    "lab/evaluation.py",
    "lab/mode_share.py",
    "lab/model.py",
    "lab/question.py",
    "lab/recorded_gradients.py",
    "lab/result.py",
    "lab/rope_extension.py",
    "lab/run_config.py",
    "lab/seed_batch.py",
    "lab/setting_keys.py",
    "lab/string_question.py",
    "lab/trainer.py",
    "lab/transcription_question.py",
)
SOURCE_SUFFIXES = (".py", ".c", ".h")


@cache
def code_version(dataset_version: str = "") -> str:
    """Digits of the source digest, torch's version without its build, and a digest of the dataset version."""
    text = f"-text{hashlib.sha256(dataset_version.encode()).hexdigest()[:8]}" if dataset_version else ""
    return _training_version() + text


@cache
def _training_version() -> str:
    folders = (file for folder in SOURCE_FOLDERS for file in _source_files(ROOT / folder))
    return _version_of([*(ROOT / name for name in SOURCE_FILES), *folders])


@cache
def prover_version() -> str:
    """The version of the code behind a proof, in the same form."""
    return _version_of(_source_files(ROOT))


def _source_files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.suffix in SOURCE_SUFFIXES)


def _version_of(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for name, file in sorted((file.relative_to(ROOT).as_posix(), file) for file in files):
        digest.update(name.encode() + file.read_bytes())
    return f"{digest.hexdigest()[:12]}-torch{torch.__version__.partition('+')[0]}"
