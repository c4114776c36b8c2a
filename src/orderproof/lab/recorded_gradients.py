"""A function of tensors, recorded as a list of operators once it was called often with the same shapes.

`torch.vmap` and `torch.func.grad` interpret every operator again in each call, which takes longer than the operators of
a small model. A recording calls the same operators in the same order, so its results have the same bits. Operators
whose inputs are constants (masks, distances, checks of positions) run once, and views that change nothing are left out.
The function must call the same operators for all values of its arguments, as any function does that `torch.vmap` takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

RECORD_AT = 100
"""The call at which a function is recorded: recording takes as long as 100 to 150 calls save."""

VIEWS = (torch.ops.aten.view.default, torch.ops.aten.expand.default, torch.ops.aten._unsafe_view.default)

Shapes = tuple[tuple[torch.Size, torch.dtype], ...]


class RecordedFunction:
    """Calls a function, or its recording for the shapes of the arguments."""

    def __init__(self, function: Callable[..., Any], *, record_at: int = RECORD_AT) -> None:
        self.function = function
        self.record_at = record_at
        self.calls = Counter[Shapes]()
        self.recordings: dict[Shapes, fx.GraphModule] = {}

    def __call__(self, *arguments: Any) -> Any:
        """The function's result. Arguments are tensors and containers of tensors."""
        shapes = tuple((x.shape, x.dtype) for x in pytree.tree_leaves(arguments))
        recording = self.recordings.get(shapes)
        if recording is not None:
            return recording(*arguments)
        self.calls[shapes] += 1
        if self.calls[shapes] < self.record_at:
            return self.function(*arguments)
        self.recordings[shapes] = recording = record(self.function, *arguments)
        return recording(*arguments)


def record(function: Callable[..., Any], *arguments: Any) -> fx.GraphModule:
    """The operators that a function calls for arguments of these shapes."""
    recording: fx.GraphModule = make_fx(function)(*arguments)
    if not any(changes_in_place(node) for node in recording.graph.nodes):  # a constant could be what is changed
        fold_constants(recording)
        remove_views(recording)
        recording.graph.eliminate_dead_code()
        recording.recompile()
    return recording


def changes_in_place(node: fx.Node) -> bool:
    """True for an operator that writes to one of its arguments."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)


def fold_constants(recording: fx.GraphModule) -> None:
    """Replace every operator that depends on no argument by its result."""
    values: dict[fx.Node, Any] = {}
    for node in list(recording.graph.nodes):
        if node.op == "get_attr":
            values[node] = getattr(recording, str(node.target))
        elif node.op == "call_function" and all(each in values for each in node.all_input_nodes):
            arguments, keywords = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*arguments, **keywords)
    for number, (node, value) in enumerate(values.items()):
        if node.op == "call_function" and isinstance(value, Tensor) and any(user not in values for user in node.users):
            recording.register_buffer(f"constant_{number}", value)
            with recording.graph.inserting_before(node):
                constant = recording.graph.get_attr(f"constant_{number}")
            node.replace_all_uses_with(constant, lambda user: user not in values)
    for node in reversed(list(values)):
        if not node.users:
            recording.graph.erase_node(node)  # also the checks of constants, which have just passed


def remove_views(recording: fx.GraphModule) -> None:
    """Remove views with the shape and the strides of their input."""
    for node in list(recording.graph.nodes):
        if node.op == "call_function" and node.target in VIEWS:
            source = node.args[0]
            before, after = source.meta.get("val"), node.meta.get("val")
            if before is not None and (before.shape, before.stride()) == (after.shape, after.stride()):
                node.replace_all_uses_with(source)
