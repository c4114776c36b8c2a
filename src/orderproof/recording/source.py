"""Source lines of a model: the frames of the Python stack within a recording that belong neither to torch nor to us."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from weakref import WeakKeyDictionary

import torch
from torch.fx import GraphModule

TORCH_FOLDER = f"{Path(torch.__file__).parent}/"  # not that of `torchvision`
_PACKAGE = Path(__file__).parents[1]
_OURS = (  # blocks and encodings are parts of a model
    *(f"{_PACKAGE / folder}/" for folder in ("recording", "theorems", "diagnosis", "models", "cli")),
    str(_PACKAGE / "library_messages.py"),
)  # fmt: skip
_RECORDING = str(Path(__file__).with_name("recording.py"))
_PYTHON = f"{Path(linecache.__file__).parent}/"

Line = tuple[str, str, int]  # file, function and number: equal code objects may be of different files

_IN_TRACE = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>\S+)')
_STEPS: set[CodeType] = set()  # of functions that run one step of a program, their variable `step`
_FILES_OF_STEPS: set[str] = set()
_PROGRAMS: WeakKeyDictionary[GraphModule, tuple[Line | None, ...]] = WeakKeyDictionary()  # the lines of their nodes


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
    """The lines of the model on the stack of the caller, outermost first.

    This runs at each operator of a recording: most frames are passed with one look at the name of their file.
    """
    lines: list[Line] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file == _RECORDING:
            break
        if file in _FILES_OF_STEPS and code in _STEPS:
            lines += [line for line in (frame.f_locals["step"].line,) if line is not None]
        elif is_model_code(file):
            of_program = _line_of_program(frame) if file.startswith("<eval_with_key>") else None
            lines.append(of_program or (file, code.co_name, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(lines))


def mark_steps(code: CodeType) -> None:
    """Let lines of the model be those of the steps that a function runs: its variable `step` has a `line`, or None."""
    _STEPS.add(code)
    _FILES_OF_STEPS.add(code.co_filename)


def _line_of_program(frame: FrameType) -> Line | None:
    """The line of the exported model, in the code that torch makes of an exported program; None if it is not known."""
    owner = frame.f_locals.get("self")
    if not isinstance(owner, GraphModule):
        return None
    if owner not in _PROGRAMS:
        _PROGRAMS[owner] = tuple(_line_of_trace(str(node.meta.get("stack_trace") or "")) for node in owner.graph.nodes)
    number = getattr(owner, "_lineno_map", {}).get(frame.f_lineno - getattr(owner, "_prologue_start", 0))
    lines = _PROGRAMS[owner]
    return None if number is None or number >= len(lines) else lines[number]


def _line_of_trace(trace: str) -> Line | None:
    """The innermost line of the model in a stack trace, which may be one of another machine.

    A report shows the text of a line, and a file of a program may name any file: only code is read.
    """
    found = [(each["file"], each["function"], int(each["line"])) for each in _IN_TRACE.finditer(trace)]
    code = [line for line in found if line[0].endswith(".py") and "/torch/" not in f"/{line[0]}"]
    own = [line for line in code if is_model_code(line[0])]
    return own[-1] if own else None


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
