"""Sentences for the scope of a proof: the assumptions of its recording about the program."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch._ops import OpOverload
from torch.fx import Graph, Node

from orderproof.errors import CaptureError
from orderproof.recording.module_state import StateChanges
from orderproof.recording.operator_names import is_of_torch, operator_name
from orderproof.recording.owned_state import MAX_OBJECTS
from orderproof.recording.refusal import NOT_RECORDED

DEFAULTS_ASSUMPTION = "with the defaults of"
_STATED_TYPES = (bool, int, float, str, type(None))  # of arguments whose values a sentence can state
_READ_SIGNS = {"copysign", "atan2", "arctan2", "signbit"}
_READ_SIGNS_OF_COMPLEX = {  # along their branch cuts
    "angle", "sqrt", "rsqrt", "pow", "log", "log2", "log10", "log1p", "acos", "asin", "atan", "acosh", "asinh", "atanh",
}  # fmt: skip


def refuse_shared_memory(changes: StateChanges) -> None:
    """Raise `CaptureError` if an array reads the memory of a parameter."""
    if changes.shared_memory:
        raise CaptureError(f"{NOT_RECORDED}{changes.shared_memory[0]} reads the memory of a parameter")


def state_assumptions(changes: StateChanges) -> tuple[str, ...]:
    """The sentences about the state that the model owns."""
    if changes.complete:
        return ()
    return (f"its state is compared in the first {MAX_OBJECTS:,} objects that it owns only",)


def custom_calls(graph: Graph) -> list[Node]:
    """The nodes of operators that are not of torch."""
    return [n for n in graph.nodes if isinstance(n.target, OpOverload) and not is_of_torch(n.target)]


def custom_operator_assumptions(calls: list[Node], graph: Graph) -> tuple[str, ...]:
    """The sentence about custom operators, if there are any. Raises `CaptureError` if a result is not used."""
    used = set(graph.nodes)
    if unused := [n for n in calls if n not in used]:
        raise CaptureError(
            f"{NOT_RECORDED}the result of {unused[0].target} is not used: a custom operator may have another effect"
        )
    names = ", ".join(dict.fromkeys(str(n.target) for n in calls))
    return (f"without effects besides their results: {names}",) if names else ()


def signed_zero_assumption(graph: Graph) -> tuple[str, ...]:
    """The sentence about operators that tell 0 from -0, which is one real number; empty without such operators."""
    found = dict.fromkeys(str(node.target) for node in graph.nodes if _reads_sign_of_zero(node))
    return (f"0 and -0 are one number to {', '.join(found)}",) if found else ()


def _reads_sign_of_zero(node: Node) -> bool:
    if not isinstance(node.target, OpOverload):
        return False
    name = operator_name(node.target).rstrip("_")
    if name in _READ_SIGNS:
        return True
    if name == "view" and "dtype" in node.target._overloadname:
        return True
    operands = [value for n in node.all_input_nodes if isinstance(value := n.meta.get("val"), Tensor)]
    return name in _READ_SIGNS_OF_COMPLEX and any(value.is_complex() for value in operands)


@dataclass
class FixedArguments:
    """The arguments of forward that are the same in every call that a proof speaks of.

    Attributes:
        values: Numbers, flags and strings that the call gives, with their values: ``"use_cache=False"``.
        defaults: Arguments that the call leaves at their defaults.

    """

    values: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()

    def assumptions(self) -> tuple[str, ...]:
        """The sentence about these arguments, if there are any."""
        parts = [f"{DEFAULTS_ASSUMPTION} {', '.join(self.defaults)}"] if self.defaults else []
        parts += [f"with {', '.join(self.values)}"] if self.values else []
        return (f"{' and '.join(parts)} in forward",) if parts else ()


@contextmanager
def observed_arguments(module: nn.Module) -> Iterator[FixedArguments]:
    """The fixed arguments of the first call of forward in the block; filled by that call."""
    model = _within_wrappers(module)
    found = FixedArguments()

    def observe(part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hook.remove()
        try:
            signature = inspect.signature(part.forward)
            given = signature.bind(*args, **kwargs).arguments
        except (TypeError, ValueError):  # the call fails by itself
            return
        others: dict[str, Any] = {}
        for name, parameter in signature.parameters.items():
            if _is_default(parameter, given):
                found.defaults += (_shown_argument(parameter),)
            elif parameter.kind is parameter.VAR_KEYWORD:
                others |= given[name]
            else:
                others[name] = given[name]
        found.values = tuple(f"{name}={x!r}" for name, x in others.items() if type(x) in _STATED_TYPES)

    hook = model.register_forward_pre_hook(observe, with_kwargs=True)
    try:
        yield found
    finally:
        hook.remove()


def _is_default(parameter: inspect.Parameter, given: Mapping[str, Any]) -> bool:
    if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
        return not given.get(parameter.name)
    return (
        parameter.default is not parameter.empty and given.get(parameter.name, parameter.default) is parameter.default
    )


def _shown_argument(parameter: inspect.Parameter) -> str:
    """Its name, with the stars of one that takes all other arguments."""
    return str(parameter).partition(":")[0].partition("=")[0].strip()


def _within_wrappers(module: nn.Module) -> nn.Module:
    """The module of the user within those with which this package calls it."""
    while type(module).__module__.startswith("orderproof.models."):
        inner = getattr(module, "model", None) or getattr(module, "module", None)
        if not isinstance(inner, nn.Module):
            break
        module = inner
    return module
