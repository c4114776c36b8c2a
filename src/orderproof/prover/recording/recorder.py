"""Record the operators of a forward call as a graph without writes.

The call runs on meta tensors: plain `torch.Tensor` objects with a shape, a dtype and a storage, but without values. The
model therefore sees the eager world (no exporter, no tracer, no subclass of Tensor), yet no value of a token or of a
weight exists to be read. Below the autograd keys torch passes each operator to a dispatch mode before it is decomposed.
The mode

    - adds it to the graph; an operator without a rule is decomposed first,
    - replaces writes: a write gives a new value, and views of the written storage are read from that value (`views`),
    - computes constants with their values: what a factory call creates (arange, ones, tensor([...])), and each operator
      all of whose operands are constants. A constant may be read, because it is the same in both runs of a law; the
      recording notes that it was. Anything else that asks for a value is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from orderproof.prover.recording.refusal import RecordingRefused, RecordingUnsupported
from orderproof.prover.recording.source import format_lines, innermost_line, model_lines
from orderproof.prover.recording.views import write_to_base
from orderproof.prover.rule import find_rule

MAX_CONSTANT_ELEMENTS = 1 << 22
_ATEN = torch.ops.aten
_READS = {"item", "_local_scalar_dense", "is_nonzero", "equal", "allclose"}
_SHAPE_ONLY = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
_WITHOUT_VALUES = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}
_USES_ONLY_SHAPE_OR_DTYPE = {"expand_as", "view_as", "reshape_as", "type_as", "to.other"}  # of the second operand
_SAME_VALUE = {"detach", "alias"}
_STORAGE_CHANGES = {"set_", "resize_", "resize_as_", "swap_tensors"}
_ASSERTIONS = {"_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_functional_assert_async"}


@dataclass(slots=True, eq=False)
class Storage:
    """The storage of tensors: its current version, if it holds a constant, if an array shares it."""

    base: Alias | None = None
    version: int = 0
    constant: bool = False
    shared: bool = False  # with an array of numpy
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


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The dispatch mode. `lift` gives the node of a tensor that was not created during the recording."""

    supports_higher_order_operators = True  # they reach the dispatch, which gives up

    def __init__(
        self, graph: Graph, known: Mapping[int, Alias], lift: Callable[[Tensor], Alias], device: torch.device
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = graph
        self.aliases: dict[int, Alias] = dict(known)  # by id of the tensor, which the alias keeps alive
        self.storages: dict[int, Storage] = {a.tensor.untyped_storage()._cdata: a.storage for a in known.values()}
        self.lift = lift
        self.device = device  # of the tensors that the meta tensors replace
        self.module_stack: dict[str, tuple[str, type]] = {}
        self.constants_read = False
        self.refusals: list[str] = []
        self.unsupported: list[str] = []
        self.errors: list[str] = []

    # ------------------------------------------------------------------ the dispatch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            if not isinstance(func, OpOverload):
                self.give_up(f"it calls the higher-order operator {func}")
            try:
                return self._record(func, args, kwargs or {})
            except Exception as error:
                self.errors.append(f"{type(error).__name__}: {error}{innermost_line()}")
                raise

    def refuse(self, reason: str) -> NoReturn:
        """Raise `RecordingRefused`, and remember it for a model that swallows it."""
        self.refusals.append(reason + innermost_line())
        raise RecordingRefused(self.refusals[-1])

    def give_up(self, reason: str) -> NoReturn:
        """Raise `RecordingUnsupported`, and remember it for a model that swallows it."""
        self.unsupported.append(reason + innermost_line())
        raise RecordingUnsupported(self.unsupported[-1])

    def _record(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = func.overloadpacket.__name__
        if name in _ASSERTIONS:
            return None
        args, kwargs = pytree.tree_map_only(Tensor, lambda x: self.alias(x).tensor, (args, kwargs))
        operands = {id(x): self.alias(x) for x in _tensors((args, kwargs))}
        if name in _STORAGE_CHANGES:
            self.give_up(f"it replaces the storage of a tensor ({func})")
        if name in _READS or torch.Tag.data_dependent_output in func.tags:
            return self._read(func, args, kwargs, operands)
        if name in ("index", "index_put", "index_put_"):
            args = self._with_indices_of_masks(func, args)
            operands = {id(x): self.alias(x) for x in _tensors((args, kwargs))}
        elif name == "masked_select" and self.is_constant(args[1]):
            shape = (args[0].new_empty(args[0].shape) + args[1].new_empty(args[1].shape)).shape
            with self:
                return _ATEN.index.Tensor(args[0].expand(shape), [args[1].expand(shape)])
        elif torch.Tag.dynamic_output_shape in func.tags:
            return self._constant_of_its_own(func, args, kwargs, operands)
        if torch.Tag.inplace_view in func.tags:
            return self._change_view(func, args, kwargs, operands)
        if func._schema.is_mutable:
            return self._write(func, args, kwargs, operands)
        if (replaced := self._decomposition(func)) is not None:
            with self:
                result = replaced(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._call(func, args, kwargs, operands)

    def _decomposition(self, func: OpOverload) -> Any:
        name = func.overloadpacket.__name__
        if name in _USES_ONLY_SHAPE_OR_DTYPE or f"{name}.{func._overloadname}" in _USES_ONLY_SHAPE_OR_DTYPE:
            return func.decompose
        if find_rule(func) is not None:
            return None
        table = _decompositions()
        if func in table:
            return table[func]
        return func.decompose if func._can_decompose() else None

    # ------------------------------------------------------------------ operators without writes

    def _call(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], operands: dict[int, Alias]) -> Any:
        options = _on_meta(kwargs)
        if not operands and _takes_device(func):
            options["device"] = _META
        result = func(*_on_meta(args), **options)
        values = self._values(func, args, kwargs, operands)
        if isinstance(result, Tensor):
            if id(result) in self.aliases:
                return result  # the operand itself: `contiguous` of a contiguous tensor
            same = func.overloadpacket.__name__ in _SAME_VALUE
            node = self.node_of(args[0]) if same else self._emit(func, args, kwargs, result)
            self._register(result, node, func, args, kwargs, None, values)
            return result
        if not isinstance(result, list | tuple) or not _tensors(result):
            return result
        node = self._emit(func, args, kwargs, result)
        for place, one in enumerate(result):
            if isinstance(one, Tensor):
                part = self._emit(operator.getitem, (node, place), {}, one)
                self._register(one, part, func, args, kwargs, place, None if values is None else values[place])
        return result

    def _emit(self, func: Any, args: Any, kwargs: Any, value: Any) -> Node:
        """A node of the graph. Tensors among the arguments become the nodes of their current values."""
        arguments, options = pytree.tree_map_only(Tensor, self.node_of, (args, kwargs))
        arguments, options = pytree.tree_map_only(torch.device, self._real_device, (arguments, options))
        node = self.graph.call_function(func, tuple(arguments), options)
        node.meta["val"] = value
        node.meta["stack_trace"] = format_lines(model_lines())
        node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def _real_device(self, device: torch.device) -> torch.device:
        return self.device if device == _META else device

    def _emit_on_nodes(self, func: OpOverload, *args: Any) -> Node:
        value = func(*pytree.tree_map_only(Node, lambda n: n.meta["val"], args))
        return self._emit(func, args, {}, value)

    def _register(
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
            storage = self.storages[key] = Storage(constant=values is not None)
            alias = Alias(tensor, storage, node, 0, values=values)
            storage.base = alias
        else:
            parent = self.alias(args[0]) if args and isinstance(args[0], Tensor) else None
            if parent is None or parent.storage is not storage or func is None:
                self.give_up(f"a tensor shares its memory with another one ({func})")
            view = (func, args[1:], kwargs, place)
            alias = Alias(tensor, storage, node, storage.version, parent, view, values)
        storage.aliases.append(alias)
        self.aliases[id(tensor)] = alias
        return alias

    # ------------------------------------------------------------------ tensors and their nodes

    def alias(self, tensor: Tensor) -> Alias:
        """The alias of a tensor; one that was not created during the recording is lifted."""
        found = self.aliases.get(id(tensor))
        if found is not None:
            return found
        if tensor.is_meta and (storage := self.storages.get(tensor.untyped_storage()._cdata)) is not None:
            for other in storage.aliases:  # `x.data` has no operator
                if _geometry(other.tensor) == _geometry(tensor):
                    alias = Alias(tensor, storage, other.node, other.version, other.parent, other.view, other.values)
                    self.aliases[id(tensor)] = alias
                    return alias
            self.give_up("it makes a view of a tensor without an operator")
        alias = self.lift(tensor)
        self.aliases[id(tensor)] = alias
        self.aliases[id(alias.tensor)] = alias
        self.storages.setdefault(alias.tensor.untyped_storage()._cdata, alias.storage)
        return alias

    def node_of(self, tensor: Tensor) -> Node:
        """The node of the current value of a tensor."""
        return self._current(self.alias(tensor))

    def _current(self, alias: Alias) -> Node:
        if alias.version != alias.storage.version:
            if alias.parent is None:
                assert alias.storage.base is not None
                alias.node = alias.storage.base.node
            else:
                assert alias.view is not None
                func, rest, options, place = alias.view
                base = self._current(alias.parent)
                value = func(alias.parent.tensor, *rest, **options)
                node = self._emit(func, (base, *rest), options, value)
                alias.node = node if place is None else self._emit(operator.getitem, (node, place), {}, value[place])
            alias.version = alias.storage.version
        return alias.node

    # ------------------------------------------------------------------ writes

    def _write(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], operands: dict[int, Alias]
    ) -> Any:
        written = [
            k for k, a in enumerate(func._schema.arguments) if a.alias_info is not None and a.alias_info.is_write
        ]
        if written != [0]:
            self.give_up(f"it writes to an argument ({func})")
        target = args[0]
        alias = self.alias(target)
        if alias.storage.shared:
            self.refuse("it writes to a tensor whose memory an array of numpy shares")
        name = func.overloadpacket.__name__
        if name in ("copy_", "fill_", "zero_"):
            source = 0 if name == "zero_" else args[1]
            written_node = (
                self._node_to_copy(source) if isinstance(source, Tensor) else self._emit_number(source, target)
            )
            node = self._emit(_ATEN.copy.default, (self._current(alias), written_node), {}, torch.empty_like(target))
        else:
            with self:
                result = _functional(self, func)(*args, **kwargs)
            node = self._broadcast(self.node_of(result), target)
        others = [x for x in _tensors((args[1:], kwargs)) if x is not target]
        constant = alias.storage.constant and all(self.is_constant(x) for x in others)
        if constant and torch.Tag.nondeterministic_seeded not in func.tags:
            func(*self._with_values(args), **self._with_values(kwargs))
        else:
            alias.storage.constant = False
        self._store(alias, node)
        return target

    def _broadcast(self, node: Node, target: Tensor) -> Node:
        """The node of a value with the dtype and the shape of the tensor it is written to."""
        value = node.meta["val"]
        if value.dtype != target.dtype:
            node = self._emit_on_nodes(_ATEN.to.dtype, node, target.dtype)
        if node.meta["val"].shape != target.shape:
            node = self._emit_on_nodes(_ATEN.expand.default, node, list(target.shape))
        return node

    def _node_to_copy(self, source: Tensor) -> Node:
        """The node of a tensor before it was expanded: a copy broadcasts."""
        alias = self.alias(source)
        while alias.parent is not None and alias.view is not None and alias.view[0] is _ATEN.expand.default:
            alias = alias.parent
        return self._current(alias)

    def _emit_number(self, number: Any, like: Tensor) -> Node:
        """The node of a tensor of no dimensions."""
        value = torch.empty((), dtype=like.dtype, device=_META)
        return self._emit(_ATEN.full.default, ([], number), {"dtype": like.dtype, "device": self.device}, value)

    def _store(self, alias: Alias, node: Node) -> None:
        """Make a value that of an alias: replace the part of its base, and of the base's base."""
        value, current = node, alias
        while current.parent is not None:
            assert current.view is not None
            func, rest, options, place = current.view
            parent = current.parent
            arguments = _positional(func, rest, options)
            if arguments is None or _tensors(arguments):
                self.give_up(f"it writes through a view ({func})")
            written = write_to_base(
                self._emit_on_nodes,
                func.overloadpacket.__name__,
                self._current(parent),
                tuple(parent.tensor.shape),
                value,
                arguments,
                place or 0,
            )
            if written is None:
                self.give_up(f"it writes through a view ({func})")
            value, current = written, parent
        storage = alias.storage
        storage.version += 1
        assert storage.base is not None
        storage.base.node, storage.base.version = value, storage.version
        current.node, current.version = value, storage.version
        alias.node, alias.version = node, storage.version

    def _change_view(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], operands: dict[int, Alias]
    ) -> Any:
        """An operator that changes the shape of a tensor in place: `unsqueeze_`, `t_`."""
        target, alias = args[0], self.alias(args[0])
        out_of_place = getattr(_ATEN, func.overloadpacket.__name__.rstrip("_"), None)
        if out_of_place is None or func._overloadname not in out_of_place.overloads():
            self.give_up(f"it changes a tensor in place ({func})")
        view = getattr(out_of_place, func._overloadname)
        before = target.view_as(target) if target.numel() else target.clone()
        kept = Alias(before, alias.storage, alias.node, alias.version, alias.parent, alias.view, alias.values)
        self.aliases[id(before)] = kept
        node = self._emit(view, (self._current(kept), *args[1:]), kwargs, view(before, *args[1:], **kwargs))
        values = None
        if alias.values is not None:
            values = view(alias.values, *args[1:], **kwargs)
        func(*args, **kwargs)
        changed = Alias(
            target, alias.storage, node, alias.storage.version, kept, (view, args[1:], kwargs, None), values
        )
        if alias.storage.base is alias:
            alias.storage.base = kept
        alias.storage.aliases.append(changed)
        self.aliases[id(target)] = changed
        return target

    # ------------------------------------------------------------------ constants

    def is_constant(self, tensor: Tensor) -> bool:
        """True if the values of a tensor are known and depend neither on tokens nor on parameters."""
        alias = self.alias(tensor)
        return alias.values is not None and alias.storage.constant

    def is_lifted_parameter(self, tensor: Tensor) -> bool:
        """True for a real tensor that is a parameter or buffer of the module."""
        return self.alias(tensor).values is None

    def _with_values(self, arguments: Any) -> Any:
        return pytree.tree_map_only(Tensor, lambda x: self.alias(x).values, arguments)

    def _values(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], operands: dict[int, Alias]
    ) -> Any:
        """The values of the result, if it is a constant; otherwise None."""
        name = func.overloadpacket.__name__
        if name in _WITHOUT_VALUES or torch.Tag.nondeterministic_seeded in func.tags:
            return None
        if name in _SHAPE_ONLY:
            blank = pytree.tree_map_only(Tensor, lambda x: torch.zeros(x.shape, dtype=x.dtype), (args, kwargs))
            return self._limited(func(*blank[0], **_on_cpu(blank[1])))
        if not all(a.values is not None and a.storage.constant for a in operands.values()):
            return None
        return self._limited(func(*self._with_values(args), **_on_cpu(self._with_values(kwargs))))

    def _limited(self, values: Any) -> Any:
        return None if any(x.numel() > MAX_CONSTANT_ELEMENTS for x in _tensors(values)) else values

    def _read(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], operands: dict[int, Alias]) -> Any:
        if not all(self.is_constant(a.tensor) for a in operands.values()):
            self.refuse("control flow depends on data (`if tensor:`, `.item()`, `nonzero`)")
        self.constants_read = True
        return func(*self._with_values(args), **self._with_values(kwargs))

    def _constant_of_its_own(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], operands: dict[int, Alias]
    ) -> Any:
        """The result of an operator whose shape depends on constants, as a new constant."""
        if not all(self.is_constant(a.tensor) for a in operands.values()):
            self.refuse(f"the size of a tensor depends on data ({func})")
        self.constants_read = True
        found = func(*self._with_values(args), **self._with_values(kwargs))
        return pytree.tree_map_only(Tensor, lambda x: self.alias(x.contiguous()).tensor, found)

    def _with_indices_of_masks(self, func: OpOverload, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an index operator with each boolean mask replaced by the indices of its true elements."""
        indices: list[Any] = []
        for index in args[1]:
            if not isinstance(index, Tensor) or index.dtype not in (torch.bool, torch.uint8):
                indices.append(index)
                continue
            if not self.is_constant(index):
                self.refuse(f"the size of a tensor depends on data ({func})")
            self.constants_read = True
            values = self.alias(index).values
            assert values is not None
            indices += [self.alias(x.contiguous()).tensor for x in values.nonzero(as_tuple=True)]
        return (args[0], indices, *args[2:])


@cache
def _decompositions() -> dict[Any, Any]:
    table: Any = torch.export.default_decompositions()
    return dict(table.items())


def _functional(recorder: Recorder, func: OpOverload) -> OpOverload:
    """The operator without the write: `add` for `add_`."""
    name = func.overloadpacket.__name__
    names = [name.removesuffix("_"), f"{name.removesuffix('_')}_functional"]
    if name.startswith("__i") and name.endswith("__"):
        names.insert(0, f"__{name[3:]}")
    for candidate in names:
        packet = getattr(_ATEN, candidate, None)
        if packet is not None and func._overloadname in packet.overloads():
            return getattr(packet, func._overloadname)  # type: ignore[no-any-return]
    return recorder.give_up(f"it writes to an argument ({func})")


@cache
def _takes_device(func: OpOverload) -> bool:
    return any(a.name == "device" for a in func._schema.arguments)


def _positional(func: OpOverload, rest: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...] | None:
    """The arguments after the first by position, with defaults; None if they cannot be written so."""
    found: list[Any] = list(rest)
    for argument in func._schema.arguments[1 + len(rest) :]:
        if argument.name in options:
            found.append(options[argument.name])
        elif argument.has_default_value():
            found.append(argument.default_value)
        else:
            return None
    return tuple(found)


def _geometry(x: Tensor) -> tuple[Any, ...]:
    return tuple(x.shape), tuple(x.stride()), x.storage_offset(), x.dtype


def _tensors(values: Any) -> list[Tensor]:
    return [x for x in pytree.tree_leaves(values) if isinstance(x, Tensor)]


_META, _CPU = torch.device("meta"), torch.device("cpu")


def _on_meta(arguments: Any) -> Any:
    return pytree.tree_map_only(torch.device, lambda _: _META, arguments)


def _on_cpu(arguments: Any) -> Any:
    return pytree.tree_map_only(torch.device, lambda _: _CPU, arguments)
