"""python_source: say the next byte of Python's own library.

    b_0 ... b_{T-1}          a stretch of the sources; at each b_t it is to say b_{t+1}

Real text that every reader of this has, and that nobody has to download: the *.py files of the standard library of the
Python that runs, without its tests and without installed packages, in the order of their names. Every tenth file is
held out and tested on. A row begins anywhere in one of the two streams, so it may run from one file into the next.

Another Python is another text: numbers are of one `edition`, which names it. No ceiling is known: what a bag of bytes
tells of the next one hangs on the text. `unigram` is what one pays who knows only how often each byte comes in the
text held out; who counts the bytes so far knows more than that, so it is *no* ceiling, only a mark to be passed.
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

LEFT_OUT = {"__pycache__", "dist-packages", "idle_test", "site-packages", "test", "tests"}
OF_THE_BUILD = ("_sysconfigdata", "config-")
"""How the names begin of what says where and how a Python was built: it differs from machine to machine."""
HELD_OUT = 10
"""One file in so many."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Text:
    """The two streams."""

    files: int
    trained: torch.Tensor
    held_out: torch.Tensor


def _left_out(name: Path) -> bool:
    return not LEFT_OUT.isdisjoint(name.parts) or any(part.startswith(OF_THE_BUILD) for part in name.parts)


@cache
def read(folder: Path) -> Text:
    """The sources in a folder. Raises `UsageError` where there are too few."""
    inside = ((path.relative_to(folder), path) for path in folder.rglob("*.py"))
    kept = sorted((name.as_posix(), path) for name, path in inside if not _left_out(name))
    if len(kept) < 2 * HELD_OUT:
        raise UsageError(f"expected the sources of Python's library in {folder}; found {len(kept)} files of them")
    streams: tuple[list[bytes], list[bytes]] = ([], [])
    for number, (_, path) in enumerate(kept):
        streams[number % HELD_OUT == HELD_OUT - 1].append(path.read_bytes())
    trained, held_out = (torch.frombuffer(bytearray(b"".join(each)), dtype=torch.uint8) for each in streams)
    return Text(files=len(kept), trained=trained, held_out=held_out)


class PythonSource(Question):
    """Language modelling of bytes."""

    name: ClassVar[str] = "python_source"
    statement: ClassVar[str] = "What is the next byte of Python's own library?"
    source: ClassVar[str] = "ours; the text is the standard library of the Python that runs"
    measure: ClassVar[Measure] = "nats"
    causal: ClassVar[bool | None] = True
    train_lengths: ClassVar[tuple[int, int]] = (256, 256)
    test_lengths: ClassVar[tuple[int, ...]] = (256, 512, 1024, 2048)

    @property
    def vocabulary(self) -> int:
        return 256

    @property
    def text(self) -> Text:
        """The sources of the Python that runs."""
        return read(Path(sysconfig.get_path("stdlib")))

    @property
    def edition(self) -> str:
        return _edition(self.text)

    @property
    def unigram(self) -> float:
        """The nats a byte of who knows how often each comes in the text held out, and nothing else."""
        shares = self.text.held_out.bincount(minlength=256).double() / len(self.text.held_out)
        return float(torch.special.entr(shares).sum())

    def tokens(self, length: int) -> int:
        return length

    def draw(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        stream = self.text.trained
        _check(stream, length)
        return _at(stream, torch.randint(len(stream) - length, (rows,), generator=generator), length)

    def test(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Stretches of the files held out, that begin at the same places whatever their length.

        Other places for each length would tell two lengths apart by which text is the harder one.
        """
        stream = self.text.held_out
        _check(stream, length)
        begins = (torch.arange(rows) * (len(stream) // rows)).clamp(max=len(stream) - length - 1)
        return _at(stream, begins, length)


@cache
def _edition(text: Text) -> str:
    digest = hashlib.sha256(text.trained.numpy().tobytes() + text.held_out.numpy().tobytes()).hexdigest()
    size = len(text.trained) + len(text.held_out)
    return f"Python {platform.python_version()}: {text.files} files, {size} bytes, sha256 {digest[:16]}"


def _check(stream: torch.Tensor, length: int) -> None:
    if length >= len(stream):
        raise UsageError(f"expected a length below the {len(stream)} bytes of the text; got {length}")


def _at(stream: torch.Tensor, begins: torch.Tensor, length: int) -> Batch:
    """The stretches that begin at these places, and at each place the byte that follows."""
    made = stream[begins.unsqueeze(1) + torch.arange(length + 1)].long()
    return Batch(tokens=made[:, :-1].contiguous(), targets=made[:, 1:].contiguous())


QUESTION = PythonSource
