"""The lines of the user's code that made the tensors of a batch, as a collator or a function runs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from orderproof.auditing.explain.entries import Frame, frame_at
from orderproof.auditing.explain.source_name import is_own_file
from orderproof.laws.training import TrainingBatch
from orderproof.operator_mode import OperatorMode
from orderproof.recording.source import is_model_code

_PACKAGE = str(Path(__file__).parents[1])
_LINE = "_orderproof_line"


class MadeLines(OperatorMode):
    """Notes in each tensor that an operator gives the line that ran it; see `made_line`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result, line = func(*args, **(kwargs or {})), None
        for x in tree_leaves(result):
            if isinstance(x, Tensor):
                line = line or users_line()
                x.__dict__[_LINE] = line
        return result


def made_line(tensor: Tensor) -> Frame:
    """The line that made a tensor; empty if no `MadeLines` saw it."""
    found = tensor.__dict__.get(_LINE)
    return found if isinstance(found, Frame) else Frame()


def note_shared_labels(batch: Any, make: Callable[[], Any]) -> None:
    """Note the line that makes the tokens of a batch its labels too, if `make` gives them as one tensor."""
    roles = TrainingBatch.roles_of(batch)
    if "labels" in roles and batch[roles["labels"]] is batch.get(roles.get("tokens")):
        _note_key(make, roles["labels"], batch[roles["labels"]])


def _note_key(make: Callable[[], Any], key: str, tensor: Tensor) -> None:
    """Note in a tensor of two keys the last line of the user's code that gives it this one, as `make` runs again."""
    lines: list[tuple[str, int]] = []

    def in_frame(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        return in_frame

    before = sys.gettrace()
    sys.settrace(lambda frame, *_: in_frame if _is_users(frame.f_code.co_filename) else None)
    try:
        make()
    finally:
        sys.settrace(before)
    for file, line in reversed(lines):
        if line in _lines_of_key(file, key):
            tensor.__dict__[_LINE] = frame_at(file, line)
            return


@cache
def _lines_of_key(file: str, key: str) -> frozenset[int]:
    """The lines of a file that give a dictionary a value for a key: an entry, an assignment, an argument by name."""
    with suppress(OSError, SyntaxError, ValueError):
        return frozenset(_values_of_key(ast.parse(Path(file).read_text(encoding="utf-8")), key))
    return frozenset()


def _values_of_key(tree: ast.AST, key: str) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value.lineno for name, value in pairs if isinstance(name, ast.Constant) and name.value == key)
        elif isinstance(node, ast.Assign):
            targets = [x.slice for x in node.targets if isinstance(x, ast.Subscript)]
            yield from (node.lineno for x in targets if isinstance(x, ast.Constant) and x.value == key)
        elif isinstance(node, ast.keyword) and node.arg == key:
            yield node.value.lineno


def users_line() -> Frame:
    """The innermost line of the user's code that runs, within a call of this package; else that of a library."""
    frame, within = sys._getframe(1), True  # within the hook or the mode of this package that asks
    library = Frame()
    while frame is not None:
        file = frame.f_code.co_filename
        if _is_users(file):
            return frame_at(file, frame.f_lineno)
        if not file.startswith(_PACKAGE):
            within = False
            if not library.source and is_model_code(file):
                library = frame_at(file, frame.f_lineno)
        elif not within:
            break
        frame = frame.f_back  # type: ignore[assignment]
    return library


@cache
def _is_users(file: str) -> bool:
    return is_model_code(file) and is_own_file(file) and not file.startswith(_PACKAGE)
