"""The operators of two calls of a model, in the order in which they run: values, operands, modules and source lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.operator_mode import OperatorMode
from orderproof.recording.source import is_model_code

MAX_BYTES = 2**30  # [bytes] of the values of a call that are kept
_DECORATORS = ("transformers/utils/", "transformers/modeling_layers.py")


class StepKey(NamedTuple):
    """The key that one operator has in both calls."""

    module: str
    file: str  # of the model's code that runs
    line: int
    operator: str  # "aten.cumsum.default"


@dataclass(eq=False)
class Step:
    """One operator of a call."""

    key: StepKey
    operands: tuple[Step, ...]
    value: Tensor | None  # None if it is none, or too large

    @property
    def name(self) -> str:
        """The operator without its library and overload: ``cumsum``."""
        return self.key.operator.removeprefix("aten.").partition(".")[0]


@dataclass(eq=False)
class RecordedCall:
    """One call of the model: its tokens, its output [row, token, feature], and its steps if it is watched."""

    given: Tensor
    positions: Tensor | None = None  # position ids [row, token] that it is given
    output: Tensor | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.given.shape[0]

    @property
    def tokens(self) -> int:
        """The number of tokens in a row."""
        return self.given.shape[1]


class CallRecorder:
    """The calls of a model and of copies of it, with the steps of those whose index is in ``watched``."""

    def __init__(self, watched: Collection[int] = ()) -> None:
        self.calls: list[RecordedCall] = []
        self._watched = watched
        self._modules: list[str] = []

    def watch(self, adapter: ModelAdapter) -> ModelAdapter:
        """The same adapter, whose calls are recorded; so are those of copies that are made of it."""
        if self._watched:
            self._follow_modules(adapter.module)
        recorder, kind = self, type(adapter)

        def call(self: Any, tokens: Tensor, **options: Any) -> ModelOutput:
            index = len(recorder.calls)
            recorder.calls.append(RecordedCall(tokens.clone(), options.get("positions")))
            recorder._modules.clear()
            mode = _Steps(recorder) if index in recorder._watched else nullcontext()
            with mode:
                answer = kind.call(self, tokens, **options)
            recorder.calls[index].output = answer.output.clone() if answer.output.dim() >= 3 else None
            return answer

        watched = adapter.with_module(adapter.module)
        watched.__class__ = type(kind.__name__, (kind,), {"call": call})
        return watched

    @contextmanager
    def recording(self, module: nn.Module, tokens: Tensor) -> Iterator[RecordedCall]:
        """A call whose steps are those that run in this block, in the module and around it."""
        call = RecordedCall(tokens.clone())
        self.calls.append(call)
        handles = self._follow_modules(module)
        try:
            with _Steps(self):
                yield call
        finally:
            for handle in handles:
                handle.remove()

    def _follow_modules(self, module: nn.Module) -> list[RemovableHandle]:
        parts = [(path, part) for path, part in module.named_modules() if path]
        before = [part.register_forward_pre_hook(self._before(path)) for path, part in parts]
        return before + [part.register_forward_hook(self._after(), always_call=True) for _, part in parts]

    @property
    def module(self) -> str:
        """The path of the module that runs."""
        return self._modules[-1] if self._modules else ""

    def _before(self, path: str) -> Callable[..., None]:
        def hook(part: nn.Module, given: Any) -> None:
            del part, given
            self._modules.append(path)

        return hook

    def _after(self) -> Callable[..., None]:
        def hook(*_: Any) -> None:  # a function: a copy of a module would have a method of a copied recorder
            if self._modules:
                self._modules.pop()

        return hook


class _Steps(OperatorMode):
    """Appends a step for each operator to the last call of a recorder."""

    def __init__(self, recorder: CallRecorder) -> None:
        super().__init__()
        self.recorder, self.call, self.bytes = recorder, recorder.calls[-1], 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        operands = tuple(dict.fromkeys(step for x in given if (step := self._step_of(x)) is not None))
        result = func(*args, **(kwargs or {}))
        key = StepKey(self.recorder.module, *_model_line(), str(func))
        for x in tree_leaves(result):
            if isinstance(x, Tensor):
                step = Step(key, operands, self._kept(x))
                self.call.steps.append(step)
                for changed in (x, x._base if x is given[0] else None) if given else (x,):
                    if changed is not None:
                        changed.__dict__["_orderproof_step"] = (self.call, step)
        return result

    def _step_of(self, x: Tensor) -> Step | None:
        call, step = x.__dict__.get("_orderproof_step", (None, None))
        return step if call is self.call else None

    def _kept(self, x: Tensor) -> Tensor | None:
        self.bytes += x.numel() * x.element_size()
        return x.detach().clone() if self.bytes <= MAX_BYTES and not x.is_meta else None


def _model_line() -> tuple[str, int]:
    """The file and the line of the model's code that runs; empty within a wrapper of this package."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return (
        ("", 0) if frame is None or frame.f_code.co_filename == __file__ else (frame.f_code.co_filename, frame.f_lineno)
    )


@cache
def _is_machinery(file: str) -> bool:
    """True for a file that is not of the model, or of a library's decorators."""
    return not is_model_code(file) or any(part in file for part in _DECORATORS)
