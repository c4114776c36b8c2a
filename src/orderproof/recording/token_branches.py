"""Branches on which values occur in an input: `if not (ids == pad).any():`.

No value of a token is known to a recording, so it cannot tell which branch is taken. Of this one kind it takes the
branch that an eager call takes on the same inputs, and every claim about it is about calls that take the same branch.
The condition depends on which values occur, and not on where: a law is tried with the values that it asks for.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node

from orderproof.errors import CaptureError
from orderproof.recording.source import model_lines

FLAG_READS = {"item", "_local_scalar_dense", "is_nonzero"}
MAX_PATHS = 8
MAX_VALUES = 3  # that decide branches: a search for a witness tries every choice of them in both runs
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
_STEPS = {"eq": (0,), "ne": (0,)}  # from the number of a comparison to the values that answer it either way
_CONNECTIVES = {
    "logical_not", "logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or", "__and__", "__or__",
}  # fmt: skip
_SHAPES = {"view", "reshape", "unsqueeze", "squeeze", "expand", "clone", "contiguous"}
_CASTS = {"_to_copy", "to"}
_REDUCTIONS = {"any", "all"}


@dataclass(frozen=True)
class TokenBranch:
    """A branch that a recording took.

    Attributes:
        answer: The value of the tensor.
        file: The file of the model, with its folders.
        line: The line.
        values: Values of the elements of an input that decide it.

    """

    answer: bool
    file: str
    line: int
    values: tuple[int, ...]

    @property
    def place(self) -> str:
        """The source text and where it is."""
        text = linecache.getline(self.file, self.line).strip()
        return f"{Path(self.file).name}:{self.line}" + (f" `{text}`" if text else "")

    def __str__(self) -> str:
        """The assumption of every claim about the recording."""
        return f"for inputs that take the same branch as the example inputs at {self.place}"


@dataclass
class TokenBranches:
    """The branches of one recording.

    Attributes:
        eager: The value of each boolean that an eager call reads, in order; None if no such call was made.
        forced: The answers of the first branches, instead of those of an eager call.
        reads: The number of booleans that were read.
        taken: The branches that were taken, in order.
        missing: A branch could not be taken, because there are no answers.

    """

    eager: Sequence[bool] | None = None
    forced: Sequence[bool] | None = None
    reads: int = 0
    taken: list[TokenBranch] = field(default_factory=list)
    missing: bool = False

    def take(self, place: int, values: Sequence[int]) -> bool | None:
        """The answer to the boolean at this place among those that are read; None if it is not known."""
        lines, count = model_lines(), len(self.taken)
        if not lines:  # an assumption that names no place could not be checked
            return None
        if self.forced is not None:
            answer = self.forced[count] if count < len(self.forced) else False
        elif self.eager is not None and place < len(self.eager):
            answer = self.eager[place]
        else:
            self.missing = self.eager is None
            return None
        file, _, line = lines[-1]
        self.taken.append(TokenBranch(answer, file, line, tuple(dict.fromkeys(values))))
        return answer


def other_paths(first: Sequence[TokenBranch], record: Callable[[Sequence[bool]], Sequence[TokenBranch]]) -> set[int]:
    """The values that decide any branch of a call, on the path of a recording and on all others.

    Args:
        first: The branches of the recording.
        record: The branches that a call takes if its first branches get these answers.

    Raises:
        CaptureError: There are more than `MAX_PATHS`, or one of them cannot be recorded.

    """
    values: set[int] = set()
    queue: list[tuple[int, Sequence[TokenBranch]]] = [(0, first)]
    paths = 1
    while queue:
        known, path = queue.pop()
        values.update(value for branch in path for value in branch.values)
        for place in range(known, len(path)):
            paths += 1
            if paths > MAX_PATHS:
                raise CaptureError(f"its inputs decide more than {MAX_PATHS} branches")
            answers = [*(branch.answer for branch in path[:place]), not path[place].answer]
            queue.append((place + 1, record(answers)))
    return values


def is_flag(x: Any) -> bool:
    """True of a tensor with one boolean."""
    return isinstance(x, Tensor) and x.dtype is torch.bool and x.numel() == 1


def values_asked_for(node: Node, inputs: set[Node]) -> list[int] | None:
    """The numbers with which a condition compares elements of inputs; None if it depends on anything else.

    Only comparisons of integers or booleans with numbers, element by element, and their reductions over whole tensors
    are followed: the condition then depends on which values occur in the inputs.
    """
    values: list[int] = []
    seen: set[Node] = set()
    queue = [node]
    while queue:
        one = queue.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.op == "placeholder":
            dtype = one.meta["val"].dtype
            if one not in inputs or dtype.is_floating_point or dtype.is_complex:
                return None
            values += (0, 1) if dtype is torch.bool else ()
            continue
        found = _values_of_operator(one)
        if found is None:
            return None
        values += found
        queue += one.all_input_nodes
    return values


def _values_of_operator(node: Node) -> list[int] | None:
    """The values that decide the result of one operator; None if it is not of the kind that is followed."""
    name = node.target.overloadpacket.__name__ if isinstance(node.target, OpOverload) else ""
    operands = [one.meta["val"].dtype for one in node.all_input_nodes]
    numbers = [x for x in node.args[1:] if not isinstance(x, Node)]
    if name in _COMPARISONS and len(operands) == 1 and all(type(x) in (int, bool) for x in numbers):
        return [int(x) + step for x in numbers for step in _STEPS.get(name, (-1, 0, 1))]  # type: ignore[arg-type]
    if name in _SHAPES:
        return []
    of_booleans = all(dtype is torch.bool for dtype in operands)
    to_booleans = node.meta["val"].dtype is torch.bool
    if name in _CASTS or (name in _REDUCTIONS and len(node.args) == 1):
        return ([] if of_booleans else [0, 1]) if to_booleans else None
    if name in _CONNECTIVES and not numbers and (of_booleans or "logical" in name):
        return [] if of_booleans else [0, 1]
    return None
