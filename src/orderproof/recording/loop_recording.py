"""Record a Python loop over an open range: two of its iterations, each with an index that is a symbol.

While a call is recorded, `range(n)` of an open size n in a `for` statement of the model gives two indices, both of them
symbols between 0 and n. So do the parts of a tensor along an open dimension, with `enumerate` or `zip` around them.
That two iterations suffice is an induction over the iterations. The second one began with the local variables that the
first one left, and left the same ones: each variable has the same value, or is a tensor that the same operator of the
iteration before computed. So every further iteration records the operators of the second one again, and
`loop_rolling.py` replaces both by one for every index. Within a loop, the values of constants are not known, and an
iteration changes no object besides local variables, tensors and the lists that it fills: what the objects within reach
of the local variables contain is compared. A loop that is not of this form is refused here, and its model is recorded
with a fixed size instead.

Not machine-checked: that this is all the state of an iteration.
"""

from __future__ import annotations

import builtins
import dis
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.library_messages import suppress_warnings
from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import Term
from orderproof.recording.contents import is_plain, shows_its_state
from orderproof.recording.loop_operators import LOOP_STACK
from orderproof.recording.loop_source import LoopSource, loop_source
from orderproof.recording.open_sizes import OpenSizes
from orderproof.recording.owned_state import OwnedState, state_within
from orderproof.recording.recorded_graph import META, RecordedGraph
from orderproof.recording.source import is_model_code, is_recording_frame

_OTHER_VALUES = (type(None), torch.dtype, torch.device, torch.Size)
_STACK = torch.stack, torch.cat
LEAST_COUNT = 2  # of iterations in the example: torch treats sizes of 1 apart
_DEPTH = 4  # of nested tuples among the local variables


@dataclass
class RecordedLoop:
    """Two recorded iterations of a loop.

    Attributes:
        count: The number of iterations.
        indices: The symbol of the index of each iteration.
        line: Where it is: "file.py:12".
        frame: That of the function with the loop.
        iterations: The nodes of each iteration.
        lists: The nodes that the two iterations append to each list.
        stacked: The nodes that stack such lists.
        delayed: For each variable that has what another one had an iteration before: the tensor that it had at the
            begin of the first iteration, the one that the other had there, and what the other has after it.

    """

    count: Any
    indices: tuple[Any, Any]
    line: str
    frame: FrameType
    iterations: list[list[Node]] = field(default_factory=list)
    lists: list[tuple[Node, Node]] = field(default_factory=list)
    stacked: list[Node] = field(default_factory=list)
    delayed: dict[tuple[Node, Node], Node] = field(default_factory=dict)


class OpenRange:
    """The indices of a loop over an open range."""

    def __init__(self, loops: Loops, count: Any, source: LoopSource, frame: FrameType) -> None:
        self.loops, self.source, self.frame = loops, source, frame
        self.loop = RecordedLoop(count, loops.new_indices(), _line_around(frame), frame)
        self.begins: list[Node] = []  # the last node before each iteration, and after the last one
        self.locals: list[dict[str, Any]] = []
        self.filled_before: dict[str, int] = {}  # tensors in each list before the loop
        self.kept: OwnedState

    def __iter__(self) -> OpenRange:
        return self

    def __next__(self) -> Any:
        recorded = self.loops.recorded
        if len(self.begins) == 3:
            recorded.refuse("a loop over an open range is iterated again")
        self.begins.append(recorded.graph._root.prev)
        self.locals.append(self._described())
        if len(self.begins) == 1:
            roots = list(_objects_of_locals(self.frame))
            for name, one in roots:
                if not shows_its_state(one):
                    recorded.refuse(f"a loop of open length may change {name}, which does not show its state")
            self.kept = state_within(roots, self.loops.packages)
            self.filled_before = {name: len(self.frame.f_locals.get(name, ())) for name in self.source.filled}
        self._check_kept()
        if len(self.begins) < 3:
            return self.loop.indices[len(self.begins) - 1]
        self.loop.iterations = [_between(*ends) for ends in zip(self.begins, self.begins[1:], strict=False)]
        self._check_locals()
        self._note_lists()
        self.loops.finished(self.loop)
        raise StopIteration

    def _described(self) -> dict[str, Any]:
        local = self.frame.f_locals
        found = {name: self._describe(value) for name, value in local.items() if name not in self.source.filled}
        for name, places in self.source.read_from_end:
            values = local.get(name)
            last = values[: -places - 1 : -1] if type(values) is list and places else []
            found |= {f"{name}[-{k}]": self._describe(value) for k, value in enumerate(last, 1)}
        return found

    def _describe(self, value: Any, depth: int = 0) -> Any:
        """A value as text, numbers, terms, nodes and objects, so that those of two iterations can be compared."""
        if isinstance(value, Tensor):
            node = self.loops.current_node(value)
            return ("object", _Same(value)) if node is None else ("tensor", node)
        if isinstance(value, torch.SymInt):
            return ("size", self.loops.sizes.term(value))
        if is_plain(value):
            return ("number", type(value), repr(value))
        if isinstance(value, _OTHER_VALUES):
            return ("number", type(value), value)
        if type(value) in (tuple, list) and depth < _DEPTH:
            return (type(value), *(self._describe(x, depth + 1) for x in value))
        if type(value) is dict and depth < _DEPTH:
            return (dict, *((k, self._describe(x, depth + 1)) for k, x in value.items()))
        return ("object", _Same(value))

    def _check_locals(self) -> None:
        first, second = self.loop.iterations
        renamed = renaming(self.loops, self.loop)
        places = {node: k for k, node in enumerate(first)}

        def later(value: Any) -> Any:
            """The description after the next iteration."""
            if isinstance(value, Node):
                place = places.get(value)
                return value if place is None else second[place] if place < len(second) else None
            if isinstance(value, Term):
                return renamed.term(value)
            return tuple(map(later, value)) if isinstance(value, tuple) else value

        _, before, after = self.locals
        changed = {name for name, value in before.items() if later(value) != after.get(name)}
        for name in {**before, **after}:
            values = before.get(name), after.get(name)
            if name in self.source.own and all(value is not None and value[0] == "tensor" for value in values):
                continue  # whatever it holds, the next iteration does not read it
            if name not in before or name not in after or (name in changed and not self._is_delayed(name, changed)):
                self.loops.recorded.refuse(f"an iteration of a loop of open length leaves another {name}")

    def _is_delayed(self, name: str, changed: set[str]) -> bool:
        """If a variable has what another one had an iteration before, and nothing else has it."""
        start, before, after = self.locals
        values = [one.get(name, ()) for one in self.locals]
        if any(value[:1] != ("tensor",) for value in values) or values[0] == values[1]:
            return False
        others = [other for other in before if other not in changed and start.get(other) == before[name]]
        same = {k for k in before if [one.get(k) for one in self.locals] == values}
        elsewhere = (value for k, value in before.items() if k not in same | self.source.own)
        if not any(before[other] == after[name] for other in others) or any(_holds(v, values[1]) for v in elsewhere):
            return False
        (_, first), (_, second), (_, third) = values
        return self.loop.delayed.setdefault((first, second), third) is third

    def _check_kept(self) -> None:
        """Give up if an iteration changes an object: the next one may execute other instructions."""
        changed = next((state.path for state in self.kept.states if state.differs()), None)
        if changed is not None:
            self.loops.recorded.refuse(f"an iteration of a loop of open length changes {changed}")
        if not self.kept.complete:
            self.loops.recorded.refuse("an iteration of a loop of open length may change too many objects")
        if self.loops.has_attributes_of_tensors():
            self.loops.recorded.refuse("an iteration of a loop of open length may change an attribute of a tensor")

    def _note_lists(self) -> None:
        for name in self.source.filled:
            values = self.frame.f_locals.get(name)
            before = self.filled_before[name]
            if dict(self.source.left_out)[name] > before:
                self.loops.recorded.refuse(
                    f"a loop of open length fills {name}, of which the first values are left out"
                )
            if type(values) is not list or len(values) != before + 2 or not all(isinstance(x, Tensor) for x in values):
                self.loops.recorded.refuse(f"a loop of open length fills {name} with other values")
            first, second = (self.loops.current_node(x) for x in values[before:])
            if first is not None and second is not None:
                self.loop.lists.append((first, second))


@dataclass(frozen=True)
class OpenParts:
    """The numbers of an open range, or the parts of a tensor along an open dimension, through which a loop runs.

    Attributes:
        at: The number or part at an index.

    """

    loops: Loops
    count: Any
    source: LoopSource
    frame: FrameType
    at: Callable[[Any], Any]

    def __iter__(self) -> Iterator[Any]:
        caller: Any = sys._getframe(1)
        if caller.f_code is Tensor.__iter__.__code__:
            caller = caller.f_back
        if caller is not self.frame or not _begins_a_loop(caller):  # such as `islice`, which may end before the last
            self.loops.recorded.refuse("another function reads what a loop of open length runs through: loop over it")
        apart = self.loops.apart
        others = OpenRange(self.loops, self.count - apart, self.source, self.frame)
        return map(self.at, itertools.chain(range(apart), (index + apart for index in others)))

    def mapped(self, at: Callable[[Any], Any]) -> OpenParts:
        """Other values at the same indices."""
        return replace(self, at=at)


def _begins_a_loop(frame: FrameType) -> bool:
    """True if the instruction of a frame is that of a `for` statement which asks for an iterator."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "GET_ITER"


def _line_around(frame: FrameType) -> str:
    """`file.py:12`: the innermost line of the model at a frame or around it."""
    found: FrameType | None = frame
    while found is not None and not is_model_code(found.f_code.co_filename):
        found = found.f_back
    found = found or frame
    return f"{Path(found.f_code.co_filename).name}:{found.f_lineno}"


def _objects_of_locals(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """The objects among the local variables of the model, with their names: those that are not described by value."""
    while frame is not None and not is_recording_frame(frame):
        if is_model_code(frame.f_code.co_filename):
            for name, value in frame.f_locals.items():
                for one in _objects(value):
                    yield name, one
        frame = frame.f_back


def _objects(value: Any, depth: int = 0) -> Iterator[Any]:
    if is_plain(value) or isinstance(value, (*_OTHER_VALUES, torch.SymInt)):
        return
    if type(value) in (tuple, list, dict) and depth < _DEPTH:
        for one in value.values() if type(value) is dict else value:
            yield from _objects(one, depth + 1)
    else:
        yield value


def _holds(value: Any, part: Any) -> bool:
    """If a description contains another one."""
    return bool(value == part) or (isinstance(value, tuple) and any(_holds(x, part) for x in value))


class _Same:
    """An object that is equal to itself only."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _between(before: Node, last: Node) -> list[Node]:
    """The nodes after one up to another."""
    found, node = [], before
    while node is not last:
        node = node.next
        found.append(node)
    return found


def renaming(loops: Loops, loop: RecordedLoop) -> Substitution:
    """The index of the second iteration in place of that of the first."""
    first, second = (loops.sizes.term(index) for index in loop.indices)
    if not first.variables:
        loops.recorded.refuse("the index of a loop of open length is read as a number")
    (variable,) = first.variables
    return Substitution({variable: second})


def _holds_objects(tensor: Tensor) -> bool:
    """True if a tensor has an attribute that an iteration may have set: those that a library sets are flags."""
    values: Iterable[Any] = (*vars(tensor).values(), *vars(tensor.untyped_storage()).values())
    hidden = tensor.grad is not None or bool(tensor._backward_hooks)
    return hidden or any(type(value) is not bool for value in values)


def _stacks_itself(frame: FrameType) -> bool:
    """True if the function of this frame calls `torch.stack` or `torch.cat` now, and not code that it calls."""
    caller = sys._getframe(1)
    while caller is not frame and not is_model_code(caller.f_code.co_filename):
        if caller.f_back is None:
            return False
        caller = caller.f_back
    known = caller.f_locals.get("torch", caller.f_globals.get("torch"))
    return caller is frame and known is torch and (torch.stack, torch.cat) == _STACK


class Loops:
    """The loops of open length of a recording.

    The first `apart` iterations of each are recorded by themselves, with their numbers for an index.
    """

    def __init__(self, recorded: RecordedGraph, packages: frozenset[str], apart: int = 0) -> None:
        self.recorded, self.packages, self.apart = recorded, packages, apart
        self.found: list[RecordedLoop] = []
        self.active = False

    @property
    def sizes(self) -> OpenSizes:
        """The open sizes of the call."""
        assert self.recorded.open_call is not None
        return self.recorded.open_call.sizes

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The sentence about the loops, if there are any."""
        lines = ", ".join(dict.fromkeys(loop.line for loop in self.found))
        others = " (from the second iteration on)" if self.apart else ""
        return (f"each iteration of a loop runs the operators of the one before{others}: {lines}",) if lines else ()

    def new_indices(self) -> tuple[Any, Any]:
        """Symbols for the indices of two iterations."""
        self.active = True
        name = f"step {len(self.found)}"
        return self.sizes.new_index(f"{name} before"), self.sizes.new_index(name)

    def finished(self, loop: RecordedLoop) -> None:
        """Add a loop whose iterations were recorded."""
        self.active = False
        self.found.append(loop)

    def range(self, *arguments: Any) -> Any:
        """`range` as the model calls it."""
        frame = sys._getframe(1)
        first, end = arguments[0] if len(arguments) == 2 else 0, arguments[-1]
        starts = len(arguments) < 3 and type(first) is int and first >= 0
        if not self.active and starts and isinstance(end, torch.SymInt) and self._is_long(end.node.hint - first):
            source = loop_source(frame.f_code, frame.f_lineno)
            if source is not None:
                return OpenParts(self, end - first, source, frame, lambda i: i + first)
        return builtins.range(*arguments)

    def unbind(self, tensor: Tensor, dim: int, frame: FrameType) -> OpenParts | None:
        """The parts of `for part in x.unbind(dim)` in a frame, or of `for part in x`; None for another call.

        The dimension is open. `enumerate` and `zip` may be around the parts.
        """
        is_iterated = frame.f_code is Tensor.__iter__.__code__ and frame.f_back is not None
        if is_iterated:
            frame = frame.f_back  # type: ignore[assignment]
        count: Any = tensor.shape[dim]
        if not self._may_stay_open(count):
            return None
        source = loop_source(frame.f_code, frame.f_lineno, over="tensor" if is_iterated else "unbind")
        return None if source is None else OpenParts(self, count, source, frame, partial(tensor.select, dim))

    def split(self, tensor: Tensor, size: Any, dim: int, frame: FrameType | None) -> OpenParts | None:
        """The parts of `for part in x.split(size, dim)` around a frame; None for another call.

        The dimension is open, and a multiple of the size: no part is shorter than the others.
        """
        while frame is not None and not is_model_code(frame.f_code.co_filename):
            frame = frame.f_back
        whole: Any = tensor.shape[dim]
        if frame is None or type(size) is not int or size < 1 or not isinstance(whole, torch.SymInt):
            return None
        length = self.sizes.term(whole)
        if any(factor % size for factor in (length.constant, *(factor for _, factor in length.summands))):
            return None
        if not self._may_stay_open(count := whole // size):
            return None
        source = loop_source(frame.f_code, frame.f_lineno, over="split")
        parts = partial(tensor.narrow, dim, length=size)
        return None if source is None else OpenParts(self, count, source, frame, lambda i: parts(start=i * size))

    def _may_stay_open(self, count: Any) -> bool:
        return not self.active and isinstance(count, torch.SymInt) and self._is_long(count.node.hint)

    def _is_long(self, count: int) -> bool:
        return count >= LEAST_COUNT + self.apart

    def enumerate(self, values: Any, start: int = 0) -> Any:
        """`enumerate` as the model calls it."""
        parts = self._parts(values, sys._getframe(1))
        if parts is None:
            return builtins.enumerate(values, start)
        return parts.mapped(lambda i: (i + start, parts.at(i)))

    def zip(self, *values: Any, **options: Any) -> Any:
        """`zip` as the model calls it."""
        parts = [self._parts(x, sys._getframe(1)) for x in values]
        found = [x for x in parts if x is not None]
        if not found or (len(found) < len(parts) and not any(isinstance(x, OpenParts) for x in values)):
            return builtins.zip(*values, **options)  # noqa: B905 - as the model calls it
        if len(found) < len(parts) or len({self.sizes.term(x.count) for x in found}) > 1:
            self.recorded.refuse("a loop of open length runs through something of another length too")
        return found[0].mapped(lambda i: tuple(x.at(i) for x in found))

    def _parts(self, values: Any, frame: FrameType) -> OpenParts | None:
        if isinstance(values, OpenParts):
            return values
        if not isinstance(values, Tensor) or not values.dim() or not self._may_stay_open(values.shape[0]):
            return None
        source = loop_source(frame.f_code, frame.f_lineno, over="tensor")
        return None if source is None else OpenParts(self, values.shape[0], source, frame, partial(values.select, 0))

    @property
    def builtins(self) -> dict[str, Any]:
        """Builtins that a model calls in the head of a loop."""
        return {"range": self.range, "enumerate": self.enumerate, "zip": self.zip}

    def has_attributes_of_tensors(self) -> bool:
        """True if a tensor of the recording has an attribute, which no local variable shows."""
        with torch._C.DisableTorchFunction(), suppress_warnings():  # storages are refused to the model
            return any(_holds_objects(alias.tensor) for alias in self.recorded.aliases.values())

    def current_node(self, tensor: Tensor) -> Node | None:
        """The node of the value of a tensor; None if it was written through another tensor since."""
        alias = self.recorded.aliases.get(id(tensor))
        return alias.node if alias is not None and alias.version == alias.storage.version else None

    def tensors_before(self, tensors: Any) -> int:
        """The number of tensors in a list before those that a loop added."""
        added = [self.recorded.node_of(x) for x in tensors[-2:]] if len(tensors) > 2 else []
        return len(tensors) - 2 if any(tuple(added) in loop.lists for loop in self.found) else 0

    def stack(self, tensors: Any, dim: int = 0, *, joined: bool = False) -> tuple[Node, Tensor] | None:
        """The node of `torch.stack` of a list that a loop fills, and its meta tensor; None for another list.

        `joined`: of `torch.cat` of such a list, as the stack before two of its dimensions become one.
        """
        if not isinstance(tensors, list | tuple) or len(tensors) < 2:
            return None
        for loop in self.found:
            nodes = self.recorded.node_of(tensors[-2]), self.recorded.node_of(tensors[-1])
            if nodes in loop.lists and _stacks_itself(loop.frame):
                last = tensors[-1]
                dim = dim % (last.dim() + (not joined))
                shape = [*last.shape[:dim], loop.count, *last.shape[dim:]]
                value = torch.empty(shape, dtype=last.dtype, device=META)
                node = self.recorded.emit(LOOP_STACK, (last, dim, loop.indices[1], loop.count), {}, value)
                loop.stacked.append(node)
                return node, value
        return None
