"""Constants of a recording: tensors whose values depend neither on tokens nor on parameters.

What a factory call creates (arange, ones, tensor([...])) is a constant, and so is the result of an operator all of
whose operands are constants. A constant may be read, because it is the same in both runs of a law; the recording notes
that it was. Constancy belongs to a storage: a write of another value into any view ends it for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from orderproof.recording.arguments import leaves, map_leaves, tensors_in
from orderproof.recording.operator_names import operator_name
from orderproof.recording.recorded_graph import Alias, RecordedGraph
from orderproof.recording.source import innermost_line
from orderproof.recording.token_branches import FLAG_READS, is_flag, values_asked_for

MAX_CONSTANT_ELEMENTS = 1 << 22
_SHAPE_ONLY = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
_WITHOUT_VALUES = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}
_SYMBOLS = {torch.SymInt, torch.SymFloat}
_CPU = torch.device("cpu")


def is_constant(recorded: RecordedGraph, tensor: Tensor) -> bool:
    """True if the values of a tensor are known and depend neither on tokens nor on parameters."""
    return _is_constant(recorded.alias(tensor))


def _is_constant(alias: Alias) -> bool:
    return alias.values is not None and alias.storage.constant


def with_values(recorded: RecordedGraph, arguments: Any) -> Any:
    """The arguments with the values of constants in place of their meta tensors."""
    return map_leaves(Tensor, lambda x: recorded.alias(x).values, arguments)


def values_of_result(recorded: RecordedGraph, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The values of the result of an operator, if it is a constant; otherwise None."""
    name = operator_name(func)
    if name in _WITHOUT_VALUES or torch.Tag.nondeterministic_seeded in func.tags:
        return None
    if recorded.open_call is not None and (recorded.is_in_loop or _has_open_size(args, kwargs)):
        return None
    if name in _SHAPE_ONLY:
        arguments, options = map_leaves(Tensor, lambda x: torch.zeros(x.shape, dtype=x.dtype), (args, kwargs))
    elif all(_is_constant(recorded.alias(x)) for x in tensors_in((args, kwargs))):
        arguments, options = with_values(recorded, (args, kwargs))
    else:
        return None
    values = func(*_on_cpu(arguments), **_on_cpu(options))
    return None if any(x.numel() > MAX_CONSTANT_ELEMENTS for x in tensors_in(values)) else values


def read(recorded: RecordedGraph, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The number that an operator reads from constants. Refuses anything else."""
    operands = tensors_in((args, kwargs))
    if recorded.open_call is not None and len(operands) == 1 and operands[0].dtype is torch.bool:
        tensor = operands[0]
        if recorded.is_fixed(tensor) and not is_constant(recorded, tensor):
            return recorded.open_call.ask(recorded.node_of(tensor), innermost_line())
    if recorded.open_call is None and operator_name(func) in FLAG_READS and is_flag(args[0]):
        place, recorded.branches.reads = recorded.branches.reads, recorded.branches.reads + 1
        if not is_constant(recorded, args[0]):
            values = values_asked_for(recorded.node_of(args[0]), recorded.inputs)
            answer = None if values is None else recorded.branches.take(place, values)
            if answer is not None:
                return answer
    _require_constants(recorded, operands, "control flow depends on data (`if tensor:`, `.item()`, `nonzero`)")
    arguments, options = with_values(recorded, (args, kwargs))
    return func(*arguments, **options)


def constant_of_its_own(
    recorded: RecordedGraph, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of an operator whose shape depends on constants, as a new constant."""
    _require_constants(recorded, tensors_in((args, kwargs)), f"the size of a tensor depends on data ({func})")
    arguments, options = with_values(recorded, (args, kwargs))
    found = func(*arguments, **options)
    return map_leaves(Tensor, lambda x: recorded.alias(x.contiguous()).tensor, found)


def with_indices_of_masks(recorded: RecordedGraph, func: OpOverload, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of an index operator with each boolean mask replaced by the indices of its true elements."""
    indices: list[Any] = []
    for index in args[1]:
        if not isinstance(index, Tensor) or index.dtype not in (torch.bool, torch.uint8):
            indices.append(index)
            continue
        _require_constants(recorded, [index], f"the size of a tensor depends on data ({func})")
        values = recorded.alias(index).values
        assert values is not None
        indices += [recorded.alias(x.contiguous()).tensor for x in values.nonzero(as_tuple=True)]
    return (args[0], indices, *args[2:])


def _require_constants(recorded: RecordedGraph, operands: Iterable[Tensor], refusal: str) -> None:
    if not all(is_constant(recorded, x) for x in operands):
        recorded.refuse(refusal)
    recorded.constants_read = True


def _has_open_size(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    given = leaves((args, kwargs))
    shapes = [x.shape for x in given if isinstance(x, Tensor)]
    return any(type(x) in _SYMBOLS for x in (*given, *(s for shape in shapes for s in shape)))


def _on_cpu(arguments: Any) -> Any:
    return map_leaves(torch.device, lambda _: _CPU, arguments)
