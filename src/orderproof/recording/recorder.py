"""Record the operators of a forward call as a graph without writes.

The call runs on meta tensors: plain `torch.Tensor` objects with a shape, a dtype and a storage, but without values. The
model therefore sees the eager world (no exporter, no tracer, no subclass of Tensor), yet no value of a token or of a
weight exists to be read. Below the autograd keys torch passes each operator to a dispatch mode before it is decomposed.
The mode

    - adds it to the graph (`recorded_graph`); an operator without a rule is decomposed first,
    - replaces writes: a write gives a new value, and views of the written storage are read from that value (`writes`),
    - computes the values of constants, which may be read (`constants`). Anything else that asks for a value is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload

from orderproof.operator_mode import OperatorMode
from orderproof.recording import constants, quantization, recurrent_layers, writes
from orderproof.recording.arguments import leaves, map_leaves, tensors_in
from orderproof.recording.eager_view import EagerView
from orderproof.recording.kept_operators import is_kept
from orderproof.recording.memory_layouts import unsound_layout
from orderproof.recording.nested_calls import written_out
from orderproof.recording.operator_names import is_of_torch, operator_name
from orderproof.recording.program import Program
from orderproof.recording.recorded_graph import META, SAME_VALUE, Alias, RecordedGraph
from orderproof.recording.running_statistics import hidden_write
from orderproof.recording.sizes_as_integers import one_hot
from orderproof.recording.source import innermost_line

_ATEN = torch.ops.aten
_UNTAGGED_OPEN_RESULTS = {_ATEN.where.default, _ATEN.nonzero_numpy.default}
_READS = {"item", "_local_scalar_dense", "is_nonzero", "equal", "allclose"}
_USES_ONLY_SHAPE_OR_DTYPE = {"expand_as", "view_as", "reshape_as", "type_as", "to.other"}  # of the second operand
_STORAGE_CHANGES = {"set_", "resize_", "resize_as_", "swap_tensors"}
_NUMBERS_OF_A_SHAPE = {"size", "stride", "storage_offset"}  # asked for by code of torch in C++
_BY_MASKS = {"masked_select", "index_put", "index_put_"}
_ASSERTIONS = {"_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_functional_assert_async"}
_DROPOUTS = {"dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"}
_JOINS = (_ATEN.stack.default, _ATEN.cat.default)
_BACKENDS = ("CPU", "CUDA", "CompositeExplicitAutograd")


class Recorder(OperatorMode):
    """The dispatch mode, which adds operators to a graph."""

    def __init__(self, recorded: RecordedGraph, program: Program | None = None) -> None:
        super().__init__()
        self.recorded = recorded
        self.program = program  # to which the operators are added as the model called them

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not isinstance(func, OpOverload):
            return self._call_functions(func, args, kwargs or {})
        autocast = self.recorded.autocast
        with torch._C.DisableTorchFunction(), autocast.operands(func, args, kwargs or {}, self._cast) as given:
            try:
                if self.recorded.open_call is not None:
                    with enable_python_dispatcher():
                        return self._record(func, *given)
                if self.program is None:
                    return self._record(func, *given)
                return self.program.follow(self._record, func, *given)
            except Exception as error:
                self.recorded.errors.append(f"{type(error).__name__}: {error}{innermost_line()}")
                raise

    def _cast(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        with self:
            return x.to(dtype)

    def _call_functions(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the functions of the model that an operator runs, in its place."""
        recorded, function = self.recorded, written_out(func)
        if function is None:
            recorded.refuse(f"it calls the higher-order operator {func}")
        recorded.nested[func.name()] = None
        before, outer = recorded.refusal_of_write, {id(x) for x in recorded.storages.values()}

        def refusal_of_write(alias: Alias) -> str:
            base = alias.storage.base
            if id(alias.storage) in outer or (base is not None and base.node.op == "placeholder"):
                return f"a function that {func} runs writes to a tensor that it did not make"
            return before(alias)

        recorded.refusal_of_write = refusal_of_write
        try:
            with self, EagerView(recorded):
                return function(*args, **kwargs)
        finally:
            recorded.refusal_of_write = before

    def _record(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        recorded, name = self.recorded, operator_name(func)
        if name in _ASSERTIONS:
            return None
        args, kwargs = map_leaves(Tensor, lambda x: recorded.alias(x).tensor, (args, kwargs))
        if refusal := _refusal(func, args, kwargs):
            recorded.refuse(refusal)
        if name in _READS or torch.Tag.data_dependent_output in func.tags:
            return constants.read(recorded, func, args, kwargs)
        if name in _BY_MASKS and (found := self._by_mask(name, args, kwargs)) is not NotImplemented:
            return found
        if name in ("index", "index_put", "index_put_"):
            args = constants.with_indices_of_masks(recorded, func, args)
        elif _has_open_result(func) and not _has_classes(name, args):
            return constants.constant_of_its_own(recorded, func, args, kwargs)
        if torch.Tag.inplace_view in func.tags:
            return writes.change_view(recorded, func, args, kwargs)
        if func._schema.is_mutable:
            return writes.write(recorded, self, func, args, kwargs)
        by_others = func.decompose if name not in _DROPOUTS and recorded.autocast.is_open(func) else None
        is_whole = recorded.open_call is not None and func in recurrent_layers.LAYERS
        if not is_whole and (replaced := by_others or _decomposition(func, args, kwargs)) is not None:
            with self:
                result = replaced(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._call(func, args, kwargs)

    def _by_mask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an operator with a mask by operators whose results have known sizes, if there are such."""
        if name == "masked_select":
            if not constants.is_constant(self.recorded, args[1]):
                return NotImplemented
            shape = (args[0].new_empty(args[0].shape) + args[1].new_empty(args[1].shape)).shape
            with self:
                return _ATEN.index.Tensor(args[0].expand(shape), [args[1].expand(shape)])
        with self:
            chosen = self._with_values_at_a_mask(*args, **kwargs)
            if chosen is None:
                chosen = self._with_a_number_at_places(*args, **kwargs)
            if chosen is None:
                return NotImplemented
            return args[0].copy_(chosen) if name == "index_put_" else chosen

    def _with_values_at_a_mask(
        self, x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: Any = None
    ) -> Tensor | None:
        """The result of `x[mask] = values` if each true element of the mask gets the same values, else None."""
        *before, mask = indices or [None]
        if accumulate or not isinstance(mask, Tensor) or mask.dtype is not torch.bool or values.dtype is not x.dtype:
            return None
        shares_memory = self.recorded.alias(values).storage is self.recorded.alias(x).storage
        end, is_number = len(before) + mask.dim(), values.dim() == 0
        if shares_memory or any(one is not None for one in before) or mask.shape != x.shape[len(before) : end]:
            return None
        if not is_number and (before or constants.is_constant(self.recorded, mask)):
            return None
        rest = x.dim() - end
        if values.dim() == rest + 1 and values.shape[0] == 1:
            values = values.squeeze(0)
        shape = torch.broadcast_shapes(values.shape, x.shape)  # type: ignore[no-untyped-call]
        if values.dim() > rest or shape != x.shape:
            return None
        return torch.where(mask.reshape(*mask.shape, *[1] * rest), values, x)

    def _with_a_number_at_places(
        self, x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: Any = None
    ) -> Tensor | None:
        """The result of `x[:, i, j] = number` at several known indices, else None."""
        first = next((k for k, one in enumerate(indices) if one is not None), 0)
        places = indices[first:]
        if accumulate or values.dim() or values.dtype is not x.dtype or constants.is_constant(self.recorded, x):
            return None
        if self.recorded.alias(values).storage is self.recorded.alias(x).storage or len(places) < 2:
            return None
        known = (isinstance(i, Tensor) and i.dtype is torch.int64 for i in places)
        if not all(known) or not all(constants.is_constant(self.recorded, i) for i in places):
            return None
        end = first + len(places)
        mask = torch.zeros(x.shape[first:end], dtype=torch.bool, device=x.device)
        mask = mask.index_put(tuple(places), torch.ones((), dtype=torch.bool, device=x.device))
        return torch.where(mask.reshape(*mask.shape, *[1] * (x.dim() - end)), values, x)

    def _of_loop(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        """The result of `stack` or `cat` of a list that a loop of open length fills; None for another list."""
        recorded, loops = self.recorded, self.recorded.loops
        assert loops is not None
        if before := loops.tensors_before(args[0]):
            with self:
                parts: list[Tensor] = [func(x, *args[1:], **kwargs) for x in (args[0][:before], args[0][before:])]
                return torch.cat(parts, *args[1:], **kwargs)
        joined = func is _ATEN.cat.default
        stacked = loops.stack(*args, **kwargs, joined=joined)
        if stacked is None:
            return None
        value: Tensor = stacked[1]
        recorded.register(value, stacked[0], func, args, kwargs, None, None)
        if not joined:
            return value
        dim: int = (args[1] if len(args) > 1 else 0) % (value.dim() - 1)
        if value.shape[dim + 1] == 1:
            with self:
                return value.squeeze(dim + 1)
        count, size = value.shape[dim : dim + 2]  # `view` would ask torch if the number of iterations is 1
        shape = [*value.shape[:dim], count * size, *value.shape[dim + 2 :]]
        whole = torch.empty(shape, dtype=value.dtype, device=META)
        recorded.register(
            whole, recorded.emit(_ATEN.view.default, (value, shape), {}, whole), func, args, kwargs, None, None
        )
        return whole

    def _call(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operator without writes on meta tensors, and add it to the graph."""
        recorded = self.recorded
        if recorded.loops is not None and func in _JOINS and (found := self._of_loop(func, args, kwargs)) is not None:
            return found
        options = _on_meta(kwargs)
        if _takes_device(func) and not tensors_in((args, kwargs)):
            options["device"] = META
        result = self.recorded.results.call(func, *_on_meta(args), **options)
        if not is_of_torch(func) and not all(isinstance(x, Tensor) for x in leaves(result) or [None]):
            recorded.refuse(f"an operator that is not of torch answers with a value, or only has an effect ({func})")
        values = constants.values_of_result(recorded, func, args, kwargs)
        if isinstance(result, Tensor):
            if id(result) in recorded.aliases:
                return result  # the operand itself: `contiguous` of a contiguous tensor
            same = operator_name(func) in SAME_VALUE
            node = recorded.node_of(args[0]) if same else recorded.emit(func, args, kwargs, result)
            recorded.register(result, node, func, args, kwargs, None, values)
            return result
        if not isinstance(result, list | tuple) or not tensors_in(result):
            return result
        node = recorded.emit(func, args, kwargs, result)
        for place, one in enumerate(result):
            if isinstance(one, Tensor):
                part = recorded.emit(operator.getitem, (node, place), {}, one)
                recorded.register(one, part, func, args, kwargs, place, None if values is None else values[place])
        return result


def _refusal(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why no graph describes what an operator does; empty if one may."""
    if "sparse" in operator_name(func):
        return f"the size of a tensor depends on data ({func})"
    if operator_name(func) in _STORAGE_CHANGES:
        return f"it replaces the storage of a tensor ({func})"
    if operator_name(func) in _NUMBERS_OF_A_SHAPE:
        return "torch computes a result in code that needs the sizes as numbers"
    if operator_name(func) == "set_data":
        return f"it replaces the memory of a tensor ({func})"
    if operator_name(func) == "_reshape_alias":
        return f"it states the strides of a view ({func})"
    return hidden_write(func, args, kwargs) or unsound_layout(func, args)


def _decomposition(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The decomposition of an operator that has no rule; None if it has one, or cannot be decomposed."""
    name = operator_name(func)
    if name == "one_hot":
        return one_hot
    if name == "take_along_dim":
        return _take_along_dim
    if name in quantization.BY_PARTS:
        return quantization.BY_PARTS[name]
    if name in _DROPOUTS and not (args[2] if len(args) > 2 else kwargs["train"]):
        return _operand  # the tensor itself, as in eager mode
    if name == "einsum" and len(args[1]) == 1:
        return func.decompose  # it may be a view of its operand
    if name in _USES_ONLY_SHAPE_OR_DTYPE or f"{name}.{func._overloadname}" in _USES_ONLY_SHAPE_OR_DTYPE:
        return func.decompose
    if is_kept(func):
        return None
    if not is_of_torch(func) and any(_has_kernel(func, key) for key in _BACKENDS):
        return None  # a backend runs this kernel, not the decomposition
    table = decompositions()
    if func in table:
        return table[func]
    return func.decompose if func._can_decompose() else None


def _has_open_result(func: OpOverload) -> bool:
    """True if the shape of the result depends on data; two operators lack torch's tag."""
    return torch.Tag.dynamic_output_shape in func.tags or func in _UNTAGGED_OPEN_RESULTS


def _has_classes(name: str, args: tuple[Any, ...]) -> bool:
    """True of a one-hot encoding with a number of classes, which is its size whatever the indices are."""
    return name == "one_hot" and len(args) > 1 and args[1] > 0


def _take_along_dim(x: Tensor, index: Tensor, dim: int | None = None) -> Tensor:
    """The elements at indices, with sizes that stay open: torch asks for them as numbers."""
    if dim is None or x.dim() != index.dim():
        return x.reshape(-1).gather(0, index.reshape(-1)) if dim is None else x.gather(dim, index)
    sizes = [b if type(a) is int and a == 1 else a for a, b in zip(x.shape, index.shape, strict=True)]
    own, place = list(sizes), dim % x.dim()
    own[place], sizes[place] = x.shape[place], index.shape[place]
    return x.expand(own).gather(dim, index.expand(sizes))


def _operand(x: Tensor, *_args: object, **_options: object) -> Tensor:
    return x


def _has_kernel(func: OpOverload, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)  # type: ignore[no-untyped-call]


@cache
def decompositions() -> dict[Any, Any]:
    """The decompositions of torch by operator; torch takes 0.1 s to list them."""
    table: Any = torch.export.default_decompositions()
    return dict(table.items())


@cache
def _takes_device(func: OpOverload) -> bool:
    return any(a.name == "device" for a in func._schema.arguments)


def _on_meta(arguments: Any) -> Any:
    return map_leaves(torch.device, lambda _: META, arguments)
