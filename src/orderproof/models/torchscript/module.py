"""A TorchScript module as a module that runs its graph step by step, with one part for each of its submodules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from orderproof.errors import SubjectError
from orderproof.models.stored_weights import hold, is_weight
from orderproof.models.torchscript.functions import FUNCTIONS, OF_TENSOR, argument
from orderproof.models.torchscript.program import Block, Step
from orderproof.recording.source import mark_steps

LIMIT = 1 << 16  # turns of a loop
NO_GRADIENT = "__torch__.torch.autograd.grad_mode.no_grad"  # the only class of which code may make an object
FORBIDDEN = {"aten::save", "aten::load", "aten::from_file"}  # they read or write files


def is_known(step: Step) -> bool:
    """True for a step that can be run."""
    if step.kind in FORBIDDEN:
        return False
    if step.kind == "prim::CreateObject":
        return step.name == NO_GRADIENT
    known = (_CONTROL, FUNCTIONS, OF_TENSOR)
    return step.overload is not None or any(step.kind in kinds for kinds in known)


class ScriptPart(nn.Module):
    """A module of a file: its parameters, buffers, attributes and parts, and its methods.

    Attributes:
        methods: The steps of each method by name; `forward` is called.
        functions: The steps of each function that methods call, by its qualified name.
        parameters_of_forward: The arguments of `forward`.

    """

    def __init__(
        self, methods: Mapping[str, Block], functions: Mapping[str, Block], arguments: Sequence[inspect.Parameter]
    ) -> None:
        super().__init__()
        self.methods, self.functions, self.parameters_of_forward = dict(methods), functions, tuple(arguments)
        self.constants: dict[str, str] = {}  # the tensors in the code, by method and name
        self.tensor_lists: dict[str, list[str]] = {}  # attributes that are lists of own tensors
        for method, block in self.methods.items():
            self._hold_constants(method, block)

    def _hold_constants(self, method: str, block: Block) -> None:
        for step in block.steps:
            if isinstance(step.constant, Tensor):
                key = f"{method}:{step.outputs[0]}"
                _, self.constants[key] = hold(
                    self, f"constant_{len(self.constants)}", step.constant, weight=is_weight(step.constant)
                )
            for inner in step.blocks:
                self._hold_constants(method, inner)

    def attribute(self, key: str) -> Any:
        """An attribute that the code reads."""
        if key in self.tensor_lists:
            return [getattr(self, name) for name in self.tensor_lists[key]]
        return getattr(self, key)

    def set_attribute(self, key: str, value: Any) -> None:
        """Change an attribute, as the code does."""
        self.tensor_lists.pop(key, None)
        setattr(self, key, value)

    def forward(self, *given: Any, **named: Any) -> Any:
        """The result of the method `forward`."""
        arguments = inspect.Signature(self.parameters_of_forward).bind(*given, **named)
        arguments.apply_defaults()
        return self.call("forward", *arguments.args)

    def call(self, method: str, *given: Any) -> Any:
        """The result of a method with all its arguments."""
        block = self.methods[method]
        values = dict(zip(block.inputs, (self, *given), strict=True))
        return self._result(block, values, method)

    def _result(self, block: Block, values: dict[str, Any], method: str) -> Any:
        (found,) = self._run(block, values, method)
        return found

    def _run(self, block: Block, values: dict[str, Any], method: str) -> list[Any]:
        for step in block.steps:
            _run_step(self, step, values, method)
        return [values[name] for name in block.outputs]


def _run_step(part: ScriptPart, step: Step, values: dict[str, Any], method: str) -> None:
    """Run a step, whose outputs become values; a report names the line of the step of each such frame."""
    given = [values[name] for name in step.inputs]
    special = _CONTROL.get(step.kind)
    if special is not None:
        found = special(part, step, given, values, method)
    else:
        result = _computed(step, given)
        found = list(result) if len(step.outputs) > 1 else [result]
    values.update(zip(step.outputs, found, strict=False))


mark_steps(_run_step.__code__)


def _computed(step: Step, given: list[Any]) -> Any:
    tensors = any(isinstance(x, Tensor) for x in tree_flatten(given)[0])
    if step.kind in OF_TENSOR and given and isinstance(given[0], Tensor):
        return OF_TENSOR[step.kind](*given)
    takes_tensors = step.overload is not None and any(
        "Tensor" in str(entry.real_type) for entry in step.overload._schema.arguments
    )
    if step.kind in FUNCTIONS and not (tensors and takes_tensors):
        return FUNCTIONS[step.kind](*given)
    if step.overload is None:
        raise SubjectError(f"operator {step.kind} of TorchScript is not supported with these arguments")
    plain, named = [], {}
    for x, entry in zip(given, step.overload._schema.arguments, strict=True):
        value = argument(x, str(entry.real_type).removeprefix("Optional[").removesuffix("]"))
        if entry.kwarg_only:
            named[entry.name] = value
        else:
            plain.append(value)
    return step.overload(*plain, **named)


def _constant(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    del given, values
    place = part.constants.get(f"{method}:{step.outputs[0]}")
    return [step.name or step.constant if place is None else getattr(part, place)]


def _if(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    return part._run(step.blocks[0 if given[0] else 1], values, method)


def _loop(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    (most, go_on, *carried), (body,) = given, step.blocks
    turn = 0
    while go_on and turn < most:
        if turn >= LIMIT:
            raise SubjectError(f"a loop of TorchScript has more than {LIMIT} turns, which is not supported")
        values.update(zip(body.inputs, (turn, *carried), strict=True))
        go_on, *carried = part._run(body, values, method)
        turn += 1
    return carried


def _get(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    del part, values, method
    return [given[0].attribute(step.name)]


def _set(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    del part, values, method
    given[0].set_attribute(step.name, given[1])
    return []


def _call_method(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    del part, values, method
    other, *arguments = given
    if other == NO_GRADIENT:
        return [None]
    return [other(*arguments) if step.name == "forward" else other.call(step.name, *arguments)]


def _call_function(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    del step, values, method
    block = part.functions[given[0]]
    return part._run(block, dict(zip(block.inputs, given[1:], strict=True)), given[0])


def _no_gradient(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    del part, given, values, method
    return [step.name or None]


def _unpack(part: ScriptPart, step: Step, given: list[Any], values: dict[str, Any], method: str) -> list[Any]:
    del part, step, values, method
    return list(given[0])


_CONTROL: dict[str, Callable[..., list[Any]]] = {
    "prim::Constant": _constant, "prim::If": _if, "prim::Loop": _loop, "prim::GetAttr": _get, "prim::SetAttr": _set,
    "prim::CallMethod": _call_method, "prim::CallFunction": _call_function, "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack, "prim::CreateObject": _no_gradient, "prim::Enter": _no_gradient,
    "prim::Exit": _no_gradient,
}  # fmt: skip
