"""The graph of a recording, and which node holds the current value of each tensor.

Tensors share memory, nodes do not. Each tensor of the recording has an `Alias`: the node of its value, and for a view
the operator that reads it from its base. A write gives the storage a new version; the node of a view from an older
version is then read again from the base.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node

from orderproof.recording.arguments import map_leaves, tensors_in
from orderproof.recording.autocast import Autocast
from orderproof.recording.elements import geometry
from orderproof.recording.open_call import OpenCall
from orderproof.recording.open_sizes import SYMBOLS
from orderproof.recording.operator_names import operator_name
from orderproof.recording.refusal import RecordingRefused
from orderproof.recording.result_shapes import ResultShapes
from orderproof.recording.source import format_lines, innermost_line, model_lines
from orderproof.recording.token_branches import TokenBranches

META = torch.device("meta")
ADVICE = {  # by the beginning of a reason
    "control flow depends on data": "; choose by `torch.where`, or move the check out of `forward`",
    "the size of a tensor depends on data": "; compute every row, and set to zero by a mask what is left out",
}
SAME_VALUE = {"detach", "alias"}  # operators whose result is the operand


@dataclass(slots=True, eq=False)
class Storage:
    """The storage of tensors: its current version, if it holds a constant, if an array or a cache shares it."""

    base: Alias | None = None
    version: int = 0
    constant: bool = False
    fixed: bool = False  # the same in both runs of every law, although its values are not known
    shared: bool = False  # with an array of numpy
    kept_by: str = ""  # the function under `functools.lru_cache` that gave it
    aliases: list[Alias] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Alias:
    """A tensor of the recording: the node of its value, and for a view how it is read from its base."""

    tensor: Tensor
    storage: Storage
    node: Node
    version: int
    parent: Alias | None = None
    view: tuple[OpOverload, tuple[Any, ...], dict[str, Any], int | None] | None = None  # arguments without the base
    values: Tensor | None = None  # of a constant


class RecordedGraph:
    """The nodes and aliases of a recording, and why it ended early.

    Args:
        graph: The graph to which nodes are added.
        lift: Gives the alias of a tensor that was not created during the recording.
        device: The device of the tensors that the meta tensors replace.
        open_call: The open sizes of the call, and the branches it takes; None if every size is a number.

    """

    def __init__(
        self, graph: Graph, lift: Callable[[Tensor], Alias], device: torch.device, open_call: OpenCall | None = None
    ) -> None:
        self.graph = graph
        self.open_call = open_call
        self.lift = lift
        self.device = device
        self.results = ResultShapes(views=open_call is not None)  # an eager call is compared by its operators
        self.aliases: dict[int, Alias] = {}  # by id of the tensor, which the alias keeps alive
        self.storages: dict[int, Storage] = {}
        self.module_stack: dict[str, tuple[str, type]] = {}
        self.inputs: set[Node] = set()
        self.branches = TokenBranches()
        self.constants_read = False
        self.autocast = Autocast(device.type)
        self.nested: dict[str, None] = {}  # operators whose functions were recorded in their place
        self.loops: Any = None  # of open length
        self.refusal_of_write: Callable[[Alias], str] = lambda _: ""
        self.refusal_of_use: Callable[[Alias], str] = lambda _: ""
        self.refusals: list[str] = []
        self.errors: list[str] = []

    @property
    def is_in_loop(self) -> bool:
        """True within an iteration that stands for all: what it computes has other values in the others."""
        return self.loops is not None and self.loops.active

    def refuse(self, reason: str) -> NoReturn:
        """Raise `RecordingRefused`, and remember it for a model that swallows it."""
        advice = next((text for start, text in ADVICE.items() if reason.startswith(start)), "")
        self.refusals.append(reason + innermost_line() + advice)
        raise RecordingRefused(self.refusals[-1])

    # ------------------------------------------------------------------ nodes

    def emit(self, func: Any, args: Any, kwargs: Any, value: Any) -> Node:
        """A node of the graph. Tensors among the arguments become the nodes of their current values."""
        kinds = (Tensor, torch.device) if self.open_call is None else (Tensor, torch.device, *SYMBOLS)
        arguments, options = map_leaves(kinds, self._as_argument, (args, kwargs))
        node = self.graph.call_function(func, tuple(arguments), options)
        node.meta["val"] = value
        node.meta["stack_trace"] = format_lines(model_lines())
        node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def emit_on_nodes(self, func: OpOverload, *args: Any) -> Node:
        """A node of an operator all of whose tensors are given as nodes."""
        value = self.results.call(func, *map_leaves(Node, lambda n: n.meta["val"], args))
        return self.emit(func, args, {}, value)

    def _as_argument(self, value: Any) -> Any:
        """The argument of a node for a tensor, a device, or a symbolic number of an open call."""
        if isinstance(value, Tensor):
            return self.node_of(value)
        if isinstance(value, torch.device):
            return self.device if value == META else value
        assert self.open_call is not None
        return self.open_call.sizes.without_symbol(value)

    def node_of(self, tensor: Tensor) -> Node:
        """The node of the current value of a tensor."""
        alias = self.alias(tensor)
        if reason := self.refusal_of_use(alias):
            self.refuse(reason)
        return self.current_node(alias)

    def current_node(self, alias: Alias) -> Node:
        """The node of the value of an alias after the last write to its storage."""
        if alias.version != alias.storage.version:
            if alias.parent is None:
                assert alias.storage.base is not None
                alias.node = alias.storage.base.node
            else:
                assert alias.view is not None
                func, rest, options, place = alias.view
                base = self.current_node(alias.parent)
                if operator_name(func) in SAME_VALUE:
                    node = base
                else:
                    node = self.emit(func, (base, *rest), options, func(alias.parent.tensor, *rest, **options))
                alias.node = node if place is None else self._part(node, place)
            alias.version = alias.storage.version
        return alias.node

    def _part(self, node: Node, place: int) -> Node:
        return self.emit(operator.getitem, (node, place), {}, node.meta["val"][place])

    # ------------------------------------------------------------------ tensors

    def add(self, alias: Alias) -> None:
        """Add the alias of a tensor that the recording did not create."""
        self.aliases[id(alias.tensor)] = alias
        self.storages.setdefault(alias.tensor.untyped_storage()._cdata, alias.storage)

    def alias(self, tensor: Tensor) -> Alias:
        """The alias of a tensor; one that was not created during the recording is lifted."""
        found = self.aliases.get(id(tensor))
        if found is not None:
            if tensor.is_meta and self.storages.get(tensor.untyped_storage()._cdata) is not found.storage:
                self.refuse("it puts the memory of another tensor into a tensor")
            return found
        if tensor.is_meta and (storage := self.storages.get(tensor.untyped_storage()._cdata)) is not None:
            for other in storage.aliases:  # `x.data` has no operator
                if geometry(other.tensor) == geometry(tensor):
                    alias = Alias(tensor, storage, other.node, other.version, other.parent, other.view, other.values)
                    self.aliases[id(tensor)] = alias
                    return alias
            self.refuse("it makes a view of a tensor without an operator")
        alias = self.lift(tensor)
        self.aliases[id(tensor)] = alias
        self.add(alias)
        return alias

    def register(
        self,
        tensor: Tensor,
        node: Node,
        func: OpOverload | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        place: int | None,
        values: Tensor | None,
    ) -> Alias:
        """The alias of a new tensor: a view if it shares its storage with an operand."""
        key = tensor.untyped_storage()._cdata
        storage = self.storages.get(key)
        if storage is None:
            storage = self.storages[key] = Storage(
                constant=values is not None, fixed=self._is_fixed(func, args, kwargs)
            )
            alias = Alias(tensor, storage, node, 0, values=values)
            storage.base = alias
        else:
            parent = self.alias(args[0]) if args and isinstance(args[0], Tensor) else None
            if parent is None or parent.storage is not storage or func is None:
                self.refuse(f"a tensor shares its memory with another one ({func})")
            view = (func, args[1:], kwargs, place)
            alias = Alias(tensor, storage, node, storage.version, parent, view, values)
        storage.aliases.append(alias)
        self.aliases[id(tensor)] = alias
        return alias

    def _is_fixed(self, func: OpOverload | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """True if an operator without chance is applied to operands that are the same in both runs."""
        if self.open_call is None or func is None or torch.Tag.nondeterministic_seeded in func.tags:
            return False
        if "empty" in operator_name(func):
            return False  # memory that was not written holds anything
        return all(self.is_fixed(x) for x in tensors_in((args, kwargs)))

    def is_fixed(self, tensor: Tensor) -> bool:
        """True if a tensor is the same in both runs of every law: it depends on no token and on no parameter."""
        storage = self.alias(tensor).storage
        return storage.constant or storage.fixed
