"""The module and the source line at which the two runs of a measured comparison first differ.

The comparison is run again with hooks on every module. The token whose outputs differ most is found in the outputs of
both runs by its values, and is then followed through the modules in the order in which they return. If the first module
that returns something else was given something else already, the code between two modules is to blame: the module
around it, at the line that makes the call.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.auditing.explain.first_operator import OperatorTrace, common_tokens, first_operator
from orderproof.auditing.explain.source_name import source_name
from orderproof.laws.measured import CachedCalls, Comparison
from orderproof.recording.source import is_model_code
from orderproof.tolerances import FLOAT32_TOLERANCE

_CALL_MACHINERY = ("torch/nn/modules/module.py", "torch/_", "transformers/modeling_layers.py", "transformers/utils/")
MAX_TOKENS = 4096  # of the outputs of a call that is searched


class Place(NamedTuple):
    """A module of the model and a source line, `file.py:123`."""

    module: str
    source: str


@dataclass(eq=False)
class _Step:
    """One call of one module: its path, how many calls of it came before, its tensors and the line that calls it."""

    key: tuple[str, int]
    given: Tensor | None
    returned: Tensor | None
    source: str


@dataclass(eq=False)
class _Call:
    """One call of the model: its steps in the order in which they return, and its output [row, token, ..., feature]."""

    steps: list[_Step] = field(default_factory=list)
    output: Tensor | None = None
    operators: OperatorTrace | None = None


class _Token(NamedTuple):
    """A token in a call."""

    call: _Call
    row: int
    token: int


def first_difference_place(comparison: Comparison, calls: CachedCalls, length: int) -> Place | None:
    """Where the runs of a comparison first differ; None if the token cannot be followed."""
    recorder = _Recorder(operators=comparison.shares_operators)
    fresh = calls.as_before_the_first_call(own=True)  # it is given hooks
    if fresh is None or not isinstance(fresh.adapter.module, nn.Module):
        return None
    watched = recorder.watch(fresh.adapter)
    try:
        expected, actual = comparison.run(fresh.for_adapter(watched).at_length(length))[:2]
    except Exception:  # noqa: BLE001 - third-party code: hooks may change how it runs
        return None
    if expected.shape != actual.shape or expected.dim() < 2 or not expected.is_floating_point():
        return None
    worst = int((expected - actual).abs().flatten(0, -2).amax(-1).argmax())
    one = recorder.find(expected.flatten(0, -2)[worst], last=False)
    other = recorder.find(actual.flatten(0, -2)[worst], last=True)
    if one is None or other is None or one == other:
        return None
    return _compare_operators(one, other) or _compare_steps(one, other)


def _compare_operators(one: _Token, other: _Token) -> Place | None:
    """The line at which the calls part, if both were traced."""
    first, second = one.call, other.call
    if first.operators is None or second.operators is None or first.output is None or second.output is None:
        return None
    common = common_tokens((first.output.shape[1], second.output.shape[1]), (one.token, other.token))
    source = first_operator(first.operators, second.operators, *common) if common is not None else ""
    return Place("", source) if source else None


def _compare_steps(one: _Token, other: _Token) -> Place | None:
    before = {step.key: step for step in one.call.steps}
    for step in other.call.steps:
        twin = before.get(step.key)
        if twin is None or not _differ(twin.returned, one, step.returned, other):
            continue
        return _innermost(step, before, {s.key: s for s in other.call.steps}, one, other)
    return None


def _innermost(
    step: _Step, before: dict[tuple[str, int], _Step], after: dict[tuple[str, int], _Step], one: _Token, other: _Token
) -> Place:
    """The module that was given the same and does something else: this step's, or one around it."""
    path, source = step.key[0], step.source
    current: _Step | None = step
    while current is not None and (twin := before.get(current.key)) is not None:
        if not _differ(twin.given, one, current.given, other):
            break
        path, source = current.key[0].rpartition(".")[0], current.source
        current = after.get((path, 0))
    return Place(path, source)


def _differ(first: Tensor | None, one: _Token, second: Tensor | None, other: _Token) -> bool:
    """True if both tensors have a vector for the token, and the vectors differ by more than rounding."""
    if first is None or second is None or first.dim() != second.dim() or first.shape[2:] != second.shape[2:]:
        return False
    pair = [_vector(x, place) for x, place in ((first, one), (second, other))]
    if pair[0] is None or pair[1] is None:
        return False
    return bool((pair[0] - pair[1]).abs().max() > FLOAT32_TOLERANCE * pair[0].abs().max())


def _vector(x: Tensor, place: _Token) -> Tensor | None:
    """The values of a token [...]; cosines and sines may have one row for all rows of the batch."""
    assert place.call.output is not None
    rows, tokens = place.call.output.shape[:2]
    if x.shape[1] != tokens or x.shape[0] not in (1, rows):
        return None
    return x[min(place.row, x.shape[0] - 1), place.token].double()


class _Recorder:
    """The calls of a model and of copies of it."""

    def __init__(self, *, operators: bool = False) -> None:
        self.operators = operators
        self.calls: list[_Call] = []
        self._counts: Counter[str] = Counter()

    def watch(self, adapter: ModelAdapter) -> ModelAdapter:
        """The same adapter, whose calls are recorded; so are those of copies that are made of it."""
        for path, part in adapter.module.named_modules():
            if path:
                part.register_forward_pre_hook(self._before(path), with_kwargs=True)
                part.register_forward_hook(self._after(path))
        recorder, kind = self, type(adapter)

        def call(self: Any, *arguments: Any, **options: Any) -> ModelOutput:
            recorder.calls.append(_Call())
            recorder._counts.clear()
            trace = OperatorTrace() if recorder.operators else None
            with nullcontext() if trace is None else trace:
                answer = kind.call(self, *arguments, **options)
            recorder.calls[-1].operators = trace
            recorder.calls[-1].output = answer.output.clone() if answer.output.dim() >= 3 else None
            return answer

        watched = adapter.with_module(adapter.module)
        watched.__class__ = type(kind.__name__, (kind,), {"call": call})
        return watched

    def find(self, vector: Tensor, *, last: bool) -> _Token | None:
        """The token whose output is this vector, in the first or the last call that has it."""
        for call in reversed(self.calls) if last else self.calls:
            output = call.output
            if output is None or output.shape[-1] != vector.shape[-1] or output.shape[:2].numel() > MAX_TOKENS:
                continue
            places = (output == vector).all(-1).nonzero()
            if len(places):
                return _Token(call, int(places[0][0]), int(places[0][1]))
        return None

    def _before(self, path: str) -> Callable[..., None]:
        def hook(part: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            if self.calls:
                step = _Step((path, self._counts[path]), _first_tensor((given, named)), None, _calling_line())
                self._counts[path] += 1
                part.__dict__.setdefault("_orderproof_steps", []).append(step)

        return hook

    def _after(self, path: str) -> Callable[..., None]:
        def hook(part: nn.Module, given: tuple[Any, ...], returned: Any) -> None:
            del given
            if self.calls and part.__dict__.get("_orderproof_steps"):
                step = part.__dict__["_orderproof_steps"].pop()
                step.returned = _first_tensor(returned)
                self.calls[-1].steps.append(step)

        return hook


def _first_tensor(value: Any) -> Tensor | None:
    """A copy of the first tensor with a row and a token axis in a structure."""
    leaves = torch.utils._pytree.tree_leaves(value)
    found = (x for x in leaves if isinstance(x, Tensor) and x.dim() >= 3 and x.is_floating_point())
    return next((x.detach().clone() for x in found), None)


def _calling_line() -> str:
    """The line of the model's code that calls the module: `modeling_llama.py:250`; empty if it is the model itself."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and any(part in frame.f_code.co_filename for part in _CALL_MACHINERY):
        frame = frame.f_back
    if frame is None or not is_model_code(frame.f_code.co_filename):
        return ""  # a wrapper of this package calls the whole model
    return f"{source_name(frame.f_code.co_filename)}:{frame.f_lineno}"
