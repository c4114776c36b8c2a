"""Tell the code of transformers and torch from code that was put in its place."""

from __future__ import annotations

from typing import Any

from torch import nn

from orderproof.prover.recording.source import TORCH_FOLDER


def is_of_a_library(function: Any) -> bool:
    """True if a function is code of transformers or torch, and so are all functions that it wraps or closes over."""
    import transformers

    folders = (f"{transformers.__path__[0]}/", TORCH_FOLDER)
    queue, seen = [function], set()
    while queue:
        one = queue.pop()
        code = getattr(one, "__code__", None)
        if code is None or not code.co_filename.startswith(folders):
            return False
        seen.add(id(one))
        inner = [getattr(one, "__wrapped__", None), *_contents(one)]
        queue += [x for x in inner if hasattr(x, "__code__") and id(x) not in seen]
    return True


def _contents(function: Any) -> list[Any]:
    """The values of the variables that a function closes over."""
    found = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    return found


def has_method_of_a_library(part: nn.Module, name: str) -> bool:
    """False if other code was put in the place of a method of transformers or torch."""
    return name not in vars(part) and is_of_a_library(getattr(type(part), name, None))
