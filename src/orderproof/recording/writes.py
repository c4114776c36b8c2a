"""Writes to tensors: a write gives a new value, and views of the written storage are read from that value."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node

from orderproof.recording.arguments import map_leaves, tensors_in, written_and_read
from orderproof.recording.constants import is_constant, with_values
from orderproof.recording.elements import goes_by_element, reads_what_it_writes
from orderproof.recording.operator_names import operator_name
from orderproof.recording.recorded_graph import META, SAME_VALUE, Alias, RecordedGraph
from orderproof.recording.view_parts import are_apart, are_same_or_apart
from orderproof.recording.views import positional_arguments, write_to_base

_ATEN = torch.ops.aten


def write(
    recorded: RecordedGraph,
    recording: AbstractContextManager[Any],
    func: OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Record an operator that writes to its first operand, and return that operand.

    Args:
        recorded: The graph.
        recording: The mode that records the operators called under it.
        func: The operator.
        args: Its arguments.
        kwargs: Its options.

    """
    if _reads_what_it_writes(recorded, func, args, kwargs):
        recorded.refuse(f"it reads memory to which it writes ({func})")
    written = [k for k, a in enumerate(func._schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
    if written != [0] or not isinstance(args[0], Tensor):
        recorded.refuse(f"it writes to an argument ({func})")
    target: Tensor = args[0]
    alias = recorded.alias(target)
    if alias.storage.shared:
        recorded.refuse("it writes to a tensor whose memory an array of numpy shares")
    _refuse_kept(recorded, alias)
    if reason := recorded.refusal_of_write(alias):
        recorded.refuse(reason)
    name = operator_name(func)
    if name in ("copy_", "fill_", "zero_"):
        source = 0 if name == "zero_" else args[1]
        value = (
            _node_to_copy(recorded, source) if isinstance(source, Tensor) else _emit_number(recorded, source, target)
        )
        operands = (recorded.current_node(alias), value)
        node = recorded.emit(_ATEN.copy.default, operands, {}, torch.empty_like(target))
    else:
        with recording:
            result = _functional(recorded, func)(*args, **kwargs)
        node = _broadcast(recorded, recorded.node_of(result), target)
    others = [x for x in tensors_in((args[1:], kwargs)) if x is not target]
    random = torch.Tag.nondeterministic_seeded in func.tags
    alias.storage.fixed = not random and all(recorded.is_fixed(x) for x in (target, *others))
    if alias.storage.constant and not (random or recorded.is_in_loop) and all(is_constant(recorded, x) for x in others):
        func(*with_values(recorded, args), **with_values(recorded, kwargs))
    else:
        alias.storage.constant = False
    _store(recorded, alias, node)
    return target


def _refuse_kept(recorded: RecordedGraph, alias: Alias) -> None:
    """Raise `RecordingRefused` for a tensor that the next call gets from a cache, with what is written."""
    if name := alias.storage.kept_by:
        recorded.refuse(f"it writes to what functools.lru_cache keeps of {name}")


def _reads_what_it_writes(
    recorded: RecordedGraph, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """True if another operand may share elements with one that is written: the result depends on the order of both.

    Where all sizes are numbers the elements are compared. An operator that computes each element from those at its
    place may read the very tensor to which it writes.
    """
    targets, others = written_and_read(func, args, kwargs)
    by_element = goes_by_element(func)
    for target in targets:
        alias = recorded.alias(target)
        for other in others:
            read = recorded.alias(other)
            if read.storage is not alias.storage or are_apart(alias, read):
                continue
            if recorded.open_call is not None:
                if not (by_element and are_same_or_apart(alias, read)):
                    return True
            elif reads_what_it_writes(target, other, by_element=by_element):
                return True
    return False


def change_view(recorded: RecordedGraph, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record an operator that changes the shape of a tensor in place: `unsqueeze_`, `transpose_`."""
    target, alias = args[0], recorded.alias(args[0])
    _refuse_kept(recorded, alias)
    out_of_place = getattr(_ATEN, operator_name(func).rstrip("_"), None)
    overloads = () if out_of_place is None else out_of_place.overloads()
    overload = next((name for name in (func._overloadname, "int") if name in overloads), None)
    if overload is None:
        recorded.refuse(f"it changes a tensor in place ({func})")
    view = getattr(out_of_place, overload)
    # The operator changes the object that the model has. What was recorded of it gets another one of the same shape.
    before = _ATEN.alias.default(target)
    alias.tensor, recorded.aliases[id(before)] = before, alias
    for one in (alias.node, *alias.node.all_input_nodes):  # of one of several results, the operator's node as well
        one.meta["val"] = map_leaves(Tensor, lambda x: before if x is target else x, one.meta["val"])
    after = view(before, *args[1:], **kwargs)
    node = recorded.emit(view, (recorded.current_node(alias), *args[1:]), kwargs, after)
    values = None if alias.values is None else view(alias.values, *args[1:], **kwargs)
    target.data = after
    changed = Alias(target, alias.storage, node, alias.storage.version, alias, (view, args[1:], kwargs, None), values)
    alias.storage.aliases.append(changed)
    recorded.aliases[id(target)] = changed
    return target


def _broadcast(recorded: RecordedGraph, node: Node, target: Tensor) -> Node:
    """The node of a value with the dtype and the shape of the tensor it is written to."""
    value = node.meta["val"]
    if value.dtype != target.dtype:
        node = recorded.emit_on_nodes(_ATEN.to.dtype, node, target.dtype)
    if node.meta["val"].shape != target.shape:
        node = recorded.emit_on_nodes(_ATEN.expand.default, node, list(target.shape))
    return node


def _node_to_copy(recorded: RecordedGraph, source: Tensor) -> Node:
    """The node of a tensor before it was expanded: a copy broadcasts."""
    alias = recorded.alias(source)
    while alias.parent is not None and alias.view is not None and alias.view[0] is _ATEN.expand.default:
        alias = alias.parent
    return recorded.current_node(alias)


def _emit_number(recorded: RecordedGraph, number: Any, like: Tensor) -> Node:
    """The node of a tensor of no dimensions."""
    value = torch.empty((), dtype=like.dtype, device=META)
    return recorded.emit(_ATEN.full.default, ([], number), {"dtype": like.dtype, "device": recorded.device}, value)


def _store(recorded: RecordedGraph, alias: Alias, node: Node) -> None:
    """Make a value that of an alias: replace the part of its base, and of the base's base."""
    value, current = node, alias
    while current.parent is not None:
        assert current.view is not None
        func, rest, options, place = current.view
        parent = current.parent
        arguments = positional_arguments(func, rest, options)
        if arguments is None or tensors_in(arguments):
            recorded.refuse(f"it writes through a view ({func})")
        name, base = operator_name(func), recorded.current_node(parent)
        if name in SAME_VALUE:
            current = parent
            continue
        written = write_to_base(
            recorded.emit_on_nodes, name, base, tuple(parent.tensor.shape), value, arguments, place or 0
        )
        if written is None:
            recorded.refuse(f"it writes through a view ({func})")
        value, current = written, parent
    storage = alias.storage
    storage.version += 1
    assert storage.base is not None
    storage.base.node, storage.base.version = value, storage.version
    current.node, current.version = value, storage.version
    alias.node, alias.version = node, storage.version


def _functional(recorded: RecordedGraph, func: OpOverload) -> OpOverload:
    """The operator without the write: `add` for `add_`."""
    name = operator_name(func)
    names = [name.removesuffix("_"), f"{name.removesuffix('_')}_functional"]
    if name.startswith("__i") and name.endswith("__"):
        names.insert(0, f"__{name[3:]}")
    for candidate in names:
        packet = getattr(_ATEN, candidate, None)
        if packet is not None and func._overloadname in packet.overloads():
            return getattr(packet, func._overloadname)  # type: ignore[no-any-return]
    return recorded.refuse(f"it writes to an argument ({func})")
