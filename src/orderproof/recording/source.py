"""Source lines of a model: the frames of the Python stack within a recording that belong neither to torch nor to us."""

from __future__ import annotations

import linecache
import sys
import traceback
from functools import cache
from pathlib import Path
from types import FrameType

import torch

TORCH_FOLDER = f"{Path(torch.__file__).parent}/"  # not that of `torchvision`
_PACKAGE = Path(__file__).parents[1]
_OURS = (  # blocks and encodings are parts of a model
    *(f"{_PACKAGE / folder}/" for folder in ("recording", "theorems", "diagnosis", "models", "cli")),
    str(_PACKAGE / "library_messages.py"),
)  # fmt: skip
_RECORDING = str(Path(__file__).with_name("recording.py"))
_PYTHON = f"{Path(linecache.__file__).parent}/"

Line = tuple[str, str, int]  # file, function and number: equal code objects may be of different files


@cache
def is_model_code(filename: str) -> bool:
    """True if a source file belongs neither to torch, nor to Python, nor to what calls a model in this package.

    The file need not exist: code of a notebook, of an archive, or of a text that was executed has none.
    """
    if filename.startswith((TORCH_FOLDER, *_OURS, "<frozen ")):
        return False
    return "site-packages" in Path(filename).parts or not filename.startswith(_PYTHON)


def is_installed(filename: str) -> bool:
    """True if a source file belongs to an installed package."""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(filename).parts)


def is_called_by_torch(frame: FrameType) -> bool:
    """True if the innermost frame that is not of Python's library belongs to torch."""
    found: FrameType | None = frame
    while found is not None and not is_model_code(found.f_code.co_filename):
        if found.f_code.co_filename.startswith(TORCH_FOLDER):
            return True
        found = found.f_back
    return False


def source_of_error(error: BaseException) -> str:
    """`, file.py:12`: the innermost line of the model that an error passed; empty if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if is_model_code(f.filename) and not f.filename.startswith(f"{_PACKAGE}/")]
    return f", {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def is_recording_frame(frame: FrameType) -> bool:
    """True of the frame that calls a model to record it: the frames around it are not the model's."""
    return frame.f_code.co_filename == _RECORDING


def model_lines() -> tuple[Line, ...]:
    """The lines of the model on the stack of the caller, outermost first."""
    lines: list[Line] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_recording_frame(frame):
        if is_model_code(frame.f_code.co_filename):
            lines.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(lines))


@cache
def format_lines(lines: tuple[Line, ...]) -> str:
    """The lines as in a traceback."""
    return "".join(
        f'File "{file}", line {line}, in {function}\n    {linecache.getline(file, line).strip()}\n'
        for file, function, line in lines
    )


def innermost_line() -> str:
    """`, file.py:12`: the innermost line of the model on the stack; empty if there is none."""
    lines = model_lines()
    return f", {Path(lines[-1][0]).name}:{lines[-1][2]}" if lines else ""
