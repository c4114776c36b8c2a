"""python_source: predict the next byte of the source of Python's standard library.

    b_0 ... b_{T-1}          an excerpt of the sources; the target at each b_t is b_{t+1}

Real text that needs no download: the *.py files of the standard library of the running Python, without its tests and
without installed packages, sorted by name. Every tenth file is held out for testing. A row starts anywhere in one of
the two byte streams, so it can cross from one file into the next.

Another version of Python has another text, which `dataset_version` identifies. The ceiling is unknown, because the
information of a bag of bytes about the next byte depends on the text. `unigram_entropy` is the cross-entropy of a
predictor that knows only the byte frequencies of the held-out text. A bag-of-tokens predictor also counts the bytes of
the row, so this is *not* a ceiling, only a reference value.
Source: ours.
"""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import torch

from orderproof.errors import UsageError
from orderproof.lab.question import Batch, Measure, Question

EXCLUDED_FOLDERS = {"__pycache__", "dist-packages", "idle_test", "site-packages", "test", "tests"}
BUILD_FILE_PREFIXES = ("_sysconfigdata", "config-")
"""Names of files that describe the build of Python and so differ between machines."""
HELD_OUT_EVERY = 10
"""One file in ten is held out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """The two byte streams."""

    files: int
    trained: torch.Tensor
    held_out: torch.Tensor


def _is_excluded(name: Path) -> bool:
    return not EXCLUDED_FOLDERS.isdisjoint(name.parts) or any(
        part.startswith(BUILD_FILE_PREFIXES) for part in name.parts
    )


@cache
def read_corpus(folder: Path) -> Corpus:
    """The sources in a folder. Raises `UsageError` if there are too few."""
    named = ((path.relative_to(folder), path) for path in folder.rglob("*.py"))
    files = sorted((name.as_posix(), path) for name, path in named if not _is_excluded(name))
    if len(files) < 2 * HELD_OUT_EVERY:
        raise UsageError(
            f"expected {2 * HELD_OUT_EVERY} or more source files of Python's library in {folder}; found {len(files)}"
        )
    streams: tuple[list[bytes], list[bytes]] = ([], [])
    for number, (_, path) in enumerate(files):
        streams[number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1].append(path.read_bytes())
    trained, held_out = (torch.frombuffer(bytearray(b"".join(each)), dtype=torch.uint8) for each in streams)
    return Corpus(files=len(files), trained=trained, held_out=held_out)


class PythonSource(Question):
    """Language modelling of bytes."""

    name: ClassVar[str] = "python_source"
    statement: ClassVar[str] = "What is the next byte in the source of Python's standard library?"
    source: ClassVar[str] = "ours; the text is the standard library of the running Python"
    measure: ClassVar[Measure] = "nats"
    requires_causal: ClassVar[bool | None] = True
    train_lengths: ClassVar[tuple[int, int]] = (256, 256)
    test_lengths: ClassVar[tuple[int, ...]] = (256, 512, 1024, 2048)

    @property
    def vocabulary(self) -> int:
        return 256

    @property
    def corpus(self) -> Corpus:
        """The sources of the running Python."""
        return read_corpus(Path(sysconfig.get_path("stdlib")))

    @property
    def dataset_version(self) -> str:
        return _corpus_version(self.corpus)

    @property
    def unigram_entropy(self) -> float:
        """The entropy of the byte frequencies in the held-out text [nats]."""
        frequencies = self.corpus.held_out.bincount(minlength=256).double() / len(self.corpus.held_out)
        return float(torch.special.entr(frequencies).sum())

    def row_length(self, length: int) -> int:
        return length

    def sample(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        stream = self.corpus.trained
        _check_length(stream, length)
        return _excerpts(stream, torch.randint(len(stream) - length, (rows,), generator=generator), length)

    def test_batch(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Excerpts at equal distances in the held-out files, from a random first one.

        The same state of the generator gives the same starts at every length, so that lengths are comparable.
        """
        stream = self.corpus.held_out
        _check_length(stream, length)
        stride = len(stream) // rows
        first = torch.randint(stride, (1,), generator=generator)
        starts = (first + torch.arange(rows) * stride).clamp(max=len(stream) - length - 1)
        return _excerpts(stream, starts, length)


@cache
def _corpus_version(corpus: Corpus) -> str:
    digest = hashlib.sha256(corpus.trained.numpy().tobytes() + corpus.held_out.numpy().tobytes()).hexdigest()
    size = len(corpus.trained) + len(corpus.held_out)
    return f"Python {platform.python_version()}: {corpus.files} files, {size} bytes, sha256 {digest[:16]}"


def _check_length(stream: torch.Tensor, length: int) -> None:
    if length >= len(stream):
        raise UsageError(f"expected a length below the {len(stream)} bytes of the text; got {length}")


def _excerpts(stream: torch.Tensor, starts: torch.Tensor, length: int) -> Batch:
    """The excerpts from these starts; each target is the next byte."""
    excerpt = stream[starts.unsqueeze(1) + torch.arange(length + 1)].long()
    return Batch(tokens=excerpt[:, :-1].contiguous(), targets=excerpt[:, 1:].contiguous())


QUESTION = PythonSource
