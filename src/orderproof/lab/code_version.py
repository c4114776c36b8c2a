"""Which code made a result: a digest of the sources that it depends on, and torch's version.

Results of different code are not put into one study. Only what a run's numbers can depend on counts: the lab's training
and questions, the blocks and the encodings with their kernels.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

import torch

PARTS = ("lab/questions", "blocks", "encodings", "encodings/schedules", "encodings/kernels")
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
    "lab/strings.py",
    "lab/training.py",
    "lab/transcription.py",
)
SOURCES = (".py", ".c", ".h")


@cache
def code_version() -> str:
    """Twelve digits for our sources, and torch's version without what names its build."""
    digest = hashlib.sha256()
    root = resources.files("orderproof")
    files = [root.joinpath(*name.split("/")) for name in FILES]
    for part in PARTS:
        files += sorted(
            (file for file in root.joinpath(*part.split("/")).iterdir() if file.name.endswith(SOURCES)),
            key=lambda file: file.name,
        )
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    return f"{digest.hexdigest()[:12]}-torch{torch.__version__.partition('+')[0]}"
