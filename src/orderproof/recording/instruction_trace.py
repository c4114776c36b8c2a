"""The instructions of Python that a model executes, with their results: those of a recording are those of eager calls.

In a recording with open sizes a model computes with symbols and meta tensors. It can tell them from numbers and tensors
in more ways than can be listed: by an error that it catches, by a class, by a function in C. Whatever the way, either
its code then executes other instructions, or an instruction has another result. Both are traced here, in the recording
and in an eager call. The result of a recorded instruction is an expression in the open sizes, so that one recording is
compared with calls of any size.

Not traced: code of torch and of Python's library (its results are, where the model gets them), what operators and the
arithmetic of symbols call, also those in Python, and the contents of objects other than numbers, text, classes, and the
first parts of containers. What no result can show is noted by `hidden_calls`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import takewhile, zip_longest
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from orderproof.recording.hidden_calls import calls_of, hidden_call, hidden_class
from orderproof.recording.instruction_results import Descriptions, Plain, Result, is_same
from orderproof.recording.outside_calls import EXAMINING_FUNCTIONS, examines_modes
from orderproof.recording.source import TORCH_FOLDER, is_model_code
from orderproof.recording.torch_switches import switch_name
from orderproof.recording.value_stack import EMPTY, is_readable, stack_reader

_RETURN = -1  # the offset of an event that is no instruction; that of line 12 is -13
_OURS = ("orderproof.recording", "orderproof.models")
_OF_TORCH = ("sympy", "mpmath", "typing_extensions")  # packages with which torch computes symbols
_OF_DISPLAYS = "rich"  # writes what a model prints above the progress of a command
_OF_OPERATORS = (f"{TORCH_FOLDER}_ops.py", f"{TORCH_FOLDER}_library/")
_OF_SYMBOLS = f"{TORCH_FOLDER}fx/experimental/"
_OF_A_NAMED_TUPLE = {"_tuple_new", "__builtins__", "__name__"}  # global variables of the code that Python generates
_FILES = tuple(  # a folder, or one file
    spec.origin.removesuffix("__init__.py")
    for name in (*_OF_TORCH, _OF_DISPLAYS)
    if (spec := find_spec(name)) and spec.origin
)


class Event(NamedTuple):
    """An instruction that is about to be executed, and the result on top of the stack."""

    code: CodeType
    offset: int
    result: Result

    def is_instruction_of(self, other: Event) -> bool:
        """True if both are the same instruction, whatever its results."""
        return (self.code is other.code or self.code == other.code) and self.offset == other.offset


@dataclass(frozen=True)
class Iteration:
    """A mark within the events of a recording: an iteration of a loop of open length begins, or its last one ended.

    There are three marks for a loop: two iterations are recorded.

    Attributes:
        count: The number of iterations, an expression.
        indices: The symbols of the indices of the iteration before and of this one.

    """

    count: Any
    indices: tuple[Any, Any]


class InstructionTrace:
    """The instructions of the code of a model that a block executes, in order.

    Args:
        notes_hidden_calls: Also note what the model does that no event shows.
        refuse: Called with the reason as soon as the model gets a private part of torch's dispatch; it raises.

    """

    def __init__(self, *, notes_hidden_calls: bool = False, refuse: Callable[[str], Any] | None = None) -> None:
        self.events: list[Event | Iteration] = []
        self._last: dict[tuple[int, int], Event] = {}  # by code and offset: layers have the same results
        self.asks_torch = ""  # the first function of torch's symbolic sizes that the model calls
        self.hidden_call = ""  # the first one, with its line
        self._refuse = refuse
        self._reads_stack = is_readable()  # which a trace function cannot find out
        self._notes_hidden_calls = notes_hidden_calls and self._reads_stack
        self._handled: BaseException | None = None  # around the block
        self._kernel: FrameType | None = None  # of an operator in Python, which a recording does not execute
        self._descriptions = Descriptions()
        self._hidden_classes: dict[int, tuple[type, str]] = {}

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """The block that is traced; another trace function, such as a debugger's, is silent meanwhile."""
        before, collects = sys.gettrace(), gc.isenabled()
        self._handled = sys.exc_info()[1]
        _has_instructions()
        gc.disable()  # garbage would be finalized, by code that is traced, at any time
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)
            if collects:
                gc.enable()

    def mark(self, iteration: Iteration) -> None:
        """Note that an iteration begins, or that a loop ended."""
        self.events.append(iteration)

    def note_filled(self, values: list[Any]) -> None:
        """Note that the iterations of a loop of open length fill a list: its length is another in each call."""
        self._descriptions.note_filled(values)

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        if self._kernel is not None:
            return None
        if frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(_OF_OPERATORS):
            self._kernel, frame.f_trace_lines = frame, False
            return self._end_kernel
        if not is_traced(frame):
            if self._refuse is not None and examines_modes(frame):
                self._refuse(f"it examines the modes of torch (`{frame.f_code.co_name}`)")
            if frame.f_code.co_filename.startswith(_OF_SYMBOLS) and is_traced(frame.f_back):
                self.asks_torch = self.asks_torch or frame.f_code.co_name
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, not _has_instructions()
        return self._tracer(frame)

    def _end_kernel(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "return" and frame is self._kernel:
            self._kernel = None
        return self._end_kernel

    def _tracer(self, frame: FrameType) -> Callable[[FrameType, str, Any], Any]:
        """The trace function of a frame. It is called before each instruction, so it does nothing twice."""
        code, identity, read = frame.f_code, id(frame.f_code), stack_reader(frame) if self._reads_stack else _nothing
        known, add, describe, handled = self._last, self.events.append, self._descriptions.of, self._handled
        refuse, calls = self._refuse, calls_of(code) if self._notes_hidden_calls else {}

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "opcode":
                offset, value = frame.f_lasti, read()
                if self._notes_hidden_calls:
                    found = (offset in calls and hidden_call(frame)) or self._hidden_class(type(value))
                    if found:
                        self._note_hidden_call(frame, found)
                if refuse is not None and (reason := _why_refused(value)):
                    refuse(reason)
            elif event == "return":
                offset, value = _RETURN, argument
            elif event == "line":
                offset, value = _RETURN - frame.f_lineno, EMPTY
            else:
                return step
            # In a handler, Python keeps on the stack which exception is handled around it.
            result = describe(EMPTY if value is handled and value is not None else value)
            place = (identity, offset)
            last = known.get(place)
            if last is None or last.result != result:
                last = known[place] = Event(code, offset, result)
            add(last)
            return step

        return step

    def _note_hidden_call(self, frame: FrameType, found: str) -> None:
        self._notes_hidden_calls = False
        self.hidden_call = f"{found}, at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"

    def _hidden_class(self, kind: type) -> str:
        found = self._hidden_classes.get(id(kind))
        if found is None:
            found = self._hidden_classes[id(kind)] = kind, hidden_class(kind)
        return found[1]

    @property
    def numbers(self) -> set[int]:
        """The integers that are results of instructions, with which a size may be compared."""
        results = {event.result for event in self.events if isinstance(event, Event)}
        return {one.value for one in results if isinstance(one, Plain) and one.kind is int}

    def difference(self, eager: InstructionTrace, value_of: ValueOf) -> str:
        """How an eager call differs from this recording: its first other instruction or result; empty if it does not.

        Args:
            eager: The trace of the eager call.
            value_of: The value of an expression in the sizes of the call.

        """
        executed = [event for event in eager.events if isinstance(event, Event)]
        for mine, theirs in zip_longest(self._at(value_of), executed):
            if mine is None or theirs is None:
                return f"only one of them executes {_line(theirs or mine[0])}"
            event, value = mine
            if not event.is_instruction_of(theirs):
                return _other(event, theirs)
            if not is_same(event.result, theirs.result, value):
                return f"at {_line(theirs)} it computes {theirs.result} where the recording has {event.result}"
        return ""

    def other_instruction(self, eager: InstructionTrace) -> str:
        """The first other instruction of an eager call of the same sizes, whatever the results; empty if none is."""
        pairs = zip_longest(*([e for e in each.events if isinstance(e, Event)] for each in (self, eager)))
        for event, theirs in pairs:
            if event is None or theirs is None:
                return f"only one of them executes {_line(theirs or event)}"
            if not event.is_instruction_of(theirs):
                return _other(event, theirs)
        return ""

    def other_result(self, eager: InstructionTrace, steady: InstructionTrace | None = None) -> str:
        """The line of the first other result in an eager call of the same sizes and instructions; empty if none is.

        Results that differ from those of a ``steady`` call too do not count.
        """
        again = self.events if steady is None else steady.events
        for event, theirs, same in zip(self.events, eager.events, again, strict=True):
            assert isinstance(event, Event)
            assert isinstance(theirs, Event)
            assert isinstance(same, Event)
            if not _has_result_of(event, theirs) and _has_result_of(event, same):
                return _line(theirs)
        return ""

    def _at(self, value_of: ValueOf) -> Iterator[tuple[Event, Callable[[Any], Any]]]:
        """The events of a call, in which each iteration of a loop of open length is executed; and values in each."""
        indices: dict[Any, int] = {}
        known: dict[Any, Any] = {}

        def value(expression: Any) -> Any:
            if expression not in known:
                known[expression] = value_of(expression, indices)
            return known[expression]

        events = iter(self.events)
        for event in events:
            if isinstance(event, Event):
                yield event, value
                continue
            bodies = _until_mark(events), _until_mark(events)
            before, current = event.indices
            for step in range(int(value(event.count))):
                indices |= {before: max(step - 1, 0), current: step}
                known.clear()
                for one in bodies[min(step, 1)]:
                    yield one, value


def _has_result_of(event: Event, other: Event) -> bool:
    return event is other or is_same(event.result, other.result, lambda number: number)


def _nothing() -> Any:
    return EMPTY


def _why_refused(value: Any) -> str:
    """Why no recording follows a model that gets an object; empty if one may."""
    kind = type(value)
    # The trace function of a frame shows that it is traced, as it is in each call whose instructions are compared.
    if kind is FrameType or (kind is FunctionType and value.__globals__ is globals()):
        return "it examines a frame of the interpreter"
    if id(value) in EXAMINING_FUNCTIONS:
        return f"it examines the interpreter (`{EXAMINING_FUNCTIONS[id(value)]}`)"
    name = switch_name(value)
    return f"it uses a private part of torch's dispatch (`{name}`)" if name else ""


ValueOf = Callable[[Any, Mapping[Any, int]], Any]  # of an expression, by the indices of loops


def _until_mark(events: Iterator[Event | Iteration]) -> list[Event]:
    """The events before the next mark, which is taken too."""
    return list(takewhile(lambda event: isinstance(event, Event), events))  # type: ignore[arg-type]


class untraced:  # noqa: N801 - a block, as those of contextlib, entered for every operator
    """A block that is not part of what a model executes."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        if self.before is not None:
            sys.settrace(None)

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            sys.settrace(self.before)


def is_traced(frame: FrameType | None) -> bool:
    """True if the code of a frame belongs to a model."""
    if frame is None:
        return False
    file, variables = frame.f_code.co_filename, frame.f_globals
    if file.startswith("<") and not file.startswith("<frozen "):  # generated, as the methods of dataclasses are
        name = str(variables.get("__name__"))
        if variables.keys() == _OF_A_NAMED_TUPLE:
            return False
        library = name.startswith(_OURS) or name.partition(".")[0] in ("torch", *_OF_TORCH)
        return not (library and vars(sys.modules.get(name, sys)) is variables)
    return is_model_code(file) and not file.startswith(_FILES)


@cache
def _has_instructions() -> bool:
    """True if Python reports the instructions of a frame for which its trace function asks: else lines are traced."""
    found: list[str] = []

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        frame.f_trace_opcodes = True
        found.append(event)
        return trace

    def traced() -> None:
        return

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        traced()
    finally:
        sys.settrace(before)
    return "opcode" in found


def _other(recorded: Event, eager: Event) -> str:
    mine, theirs = _line(recorded), _line(eager)
    if mine == theirs:
        return f"it executes other instructions of {theirs}"
    return f"it executes {theirs} where the recording executes {mine}"


def _line(event: Event) -> str:
    if event.offset < _RETURN:
        return f"{Path(event.code.co_filename).name}:{_RETURN - event.offset}"
    lines = event.code.co_lines()
    number = next((n for first, end, n in lines if first <= event.offset < end), event.code.co_firstlineno)
    return f"{Path(event.code.co_filename).name}:{number}"
