"""Which code made a result: a digest of the sources that it depends on, and torch's version.

Results of different code are not put into one study. Only what a run's numbers can depend on counts: the lab's training
and questions, the blocks and the encodings. A proof depends on every line of the package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch

import orderproof

ROOT = Path(orderproof.__file__).parent
PARTS = ("lab/questions", "blocks", "encodings")
FILES = ("checkpoints.py", "configuration.py", "network.py", "question.py", "scoring.py", "training.py")


@cache
def code_version() -> str:
    """What a run's numbers depend on: twelve digits for our sources, and torch's version without its build."""
    lab = ROOT / "lab"
    inside = [file for part in PARTS for file in (ROOT / part).rglob("*.py")]
    return _digest([*(lab / name for name in FILES), *inside])


@cache
def prover_version() -> str:
    """The same for proofs."""
    return _digest(ROOT.rglob("*.py"))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for name, file in sorted((file.relative_to(ROOT).as_posix(), file) for file in files):
        digest.update(name.encode() + file.read_bytes())
    return f"{digest.hexdigest()[:12]}-torch{torch.__version__.partition('+')[0]}"
