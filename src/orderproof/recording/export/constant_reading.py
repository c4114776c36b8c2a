"""Let a module read the values of constants during export, and of nothing else.

A model may branch on a value: `if mask.any():`, `for n in lengths.tolist()`, `x[mask]`. The exporter refuses all of
these. If the value does not depend on the tokens (a mask that the model creates, a grid, position ids), the branch that
is taken is the same in both runs of a law, which differ in their tokens only.

During export no tensor has values: tokens and weights are fake tensors, so a value that is read cannot come from them.
In addition this module computes the values of *constants*:

    a factory call of the model (arange, ones, full, tensor([...]), zeros_like; not a random or an uninitialised one)
    creates a constant, and so does an operator all of whose operands are constants.

Constancy is a property of a storage, not of a tensor: a view of a constant is a constant, and a write of another value
into any view ends it for all of them. Any other tensor remains unreadable, and export is refused as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

MAX_CONSTANT_BYTES = 1 << 24  # bytes of one constant
_LIFT_OPERATORS = (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default)
_SHAPE_ONLY_OPERATORS = {
    "zeros_like",
    "ones_like",
    "full_like",
    "new_zeros",
    "new_ones",
    "new_full",
}  # they use the shape of an operand only
_UNINITIALIZED_PREFIXES = (
    "empty",
    "new_empty",
    "_efficientzerotensor",
    "resize",
    "set_",
)
_DYNAMIC_SHAPE_FUNCTIONS = {
    "nonzero",
    "argwhere",
    "masked_select",
    "unique",
    "unique_consecutive",
    "bincount",
    "repeat_interleave",
}
_SYMBOLIC_TYPES = (torch.SymInt, torch.SymFloat, torch.SymBool)


class ConstantStorages:
    """The storages that hold constants during an export, each with its values."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}  # fake (copied alive), real

    def value(self, recorded: Tensor) -> Tensor | None:
        """The values of a tensor whose storage holds a constant, as a view; None otherwise."""
        if type(recorded) is not FakeTensor or recorded.layout is not torch.strided or recorded.is_quantized:
            return None
        offset, shape, stride = recorded.storage_offset(), tuple(recorded.shape), tuple(recorded.stride())
        if recorded.is_conj() or recorded.is_neg() or not isinstance(offset, int) or not _all_static((shape, stride)):
            return None
        found = self._storages.get(recorded.untyped_storage()._cdata)
        if found is None:
            return None
        try:
            return _view(found[1], recorded.dtype, offset, shape, stride)
        except RuntimeError:  # the storage was resized
            return None

    def add(self, recorded: Tensor, real: Tensor) -> None:
        """Store the values of a new tensor that fills its storage."""
        if type(recorded) is not FakeTensor or recorded.layout is not torch.strided:
            return
        if type(real) is not Tensor or real.device.type != "cpu":
            return
        storage = recorded.untyped_storage()
        size, shape, stride = storage.nbytes(), tuple(recorded.shape), tuple(recorded.stride())
        if storage._cdata in self._storages or not _all_static((size, shape, stride, recorded.storage_offset())):
            return  # a view or an in-place result: its storage is known
        if (
            size > MAX_CONSTANT_BYTES
            or recorded.numel() * recorded.element_size() != size
            or not _is_dense(shape, stride)
        ):
            return
        if real.shape != recorded.shape or real.dtype != recorded.dtype:
            return
        copied = torch.UntypedStorage(size)  # type: ignore[no-untyped-call]
        with _disable_current_modes():
            _view(copied, real.dtype, 0, shape, stride).copy_(real)
        self._storages[storage._cdata] = (storage, copied)

    def invalidate(self, recorded: Tensor) -> None:
        """Remove a storage into which another value was written."""
        if type(recorded) is FakeTensor and recorded.layout is torch.strided:
            self._storages.pop(recorded.untyped_storage()._cdata, None)


def _view(
    storage: torch.UntypedStorage, dtype: torch.dtype, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]
) -> Tensor:
    with _disable_current_modes():
        return torch.empty(0, dtype=dtype).set_(storage, offset, shape, stride)


def _all_static(values: Any) -> bool:
    return all(type(x) is int for x in pytree.tree_leaves(values))


def _is_dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """True if the elements fill their storage without overlap."""
    expected = 1
    for step, size in sorted((s, n) for s, n in zip(stride, shape, strict=True) if n != 1):
        if step != expected:
            return False
        expected *= size
    return True


class _ConstantFolding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Evaluate operators on constants during export."""

    supports_higher_order_operators = True

    def __init__(self, memory: ConstantStorages) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.memory = memory

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        computed, real = self._fold(func, args, kwargs)
        if not computed:
            self._invalidate_mutated(func, args, kwargs)
            return func(*args, **kwargs)
        tags = func.tags
        if torch.Tag.data_dependent_output in tags or not _tensors(real):
            return real
        if torch.Tag.dynamic_output_shape in tags:
            mode = next(x.fake_mode for x in _tensors((args, kwargs)) if isinstance(x, FakeTensor))
            result = pytree.tree_map_only(Tensor, lambda t: mode.from_tensor(t.clone(), static_shapes=True), real)
        else:
            result = func(*args, **kwargs)
        for one, other in zip(pytree.tree_leaves(result), pytree.tree_leaves(real), strict=True):
            if isinstance(one, Tensor) and isinstance(other, Tensor):
                self.memory.add(one, other)
        return result

    def _fold(self, func: Any, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """(True, its value) if this operator gives a constant, else (False, None); it may write to them in place."""
        if not isinstance(func, OpOverload) or func.namespace not in ("aten", "prims"):
            return False, None
        name = func.overloadpacket.__name__
        if torch.Tag.nondeterministic_seeded in func.tags or torch.Tag.inplace_view in func.tags:
            return False, None
        leaves = pytree.tree_leaves((args, kwargs))
        if name.startswith(_UNINITIALIZED_PREFIXES) or any(isinstance(x, _SYMBOLIC_TYPES) for x in leaves):
            return False, None
        if func in _LIFT_OPERATORS and type(args[0]) is Tensor:  # the values of torch.tensor([...])
            with _disable_current_modes():
                return True, args[0].clone()
        values = {id(x): self._operand(name, x) for x in _tensors((args, kwargs))}
        if any(value is None for value in values.values()):
            return False, None
        try:
            with _disable_current_modes():
                real_args, real_kwargs = pytree.tree_map_only(Tensor, lambda x: values[id(x)], (args, kwargs))
                result = func(*real_args, **real_kwargs)
        except Exception:  # noqa: BLE001 - the exporter repeats the call and reports the error
            return False, None
        assert all(type(x) is Tensor for x in _tensors(result)), "computed on a tensor without values"
        return True, result

    def _operand(self, name: str, recorded: Tensor) -> Tensor | None:
        if name in _SHAPE_ONLY_OPERATORS and _all_static(tuple(recorded.shape)) and recorded.device.type == "cpu":
            with _disable_current_modes():
                return torch.zeros(recorded.shape, dtype=recorded.dtype)
        return self.memory.value(recorded)

    def _invalidate_mutated(self, func: Any, args: Any, kwargs: Any) -> None:
        if not isinstance(func, OpOverload):
            written: Any = (args, kwargs)  # a higher-order operator may write into any argument
        else:
            names = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
            arguments = dict(zip([a.name for a in func._schema.arguments], args, strict=False)) | kwargs
            written = [arguments[name] for name in names if name in arguments]
        for x in _tensors(written):
            self.memory.invalidate(x)


class _ConstantIndexing(TorchFunctionMode):
    """Calls whose result size depends on a constant: with the constant replaced by its values."""

    def __init__(self, memory: ConstantStorages) -> None:
        super().__init__()
        self.memory = memory

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("__getitem__", "__setitem__"):
            return func(args[0], self._expand_constant_masks(args[1]), *args[2:])
        if name in _DYNAMIC_SHAPE_FUNCTIONS or (name == "where" and len(args) + len(kwargs) == 1):
            tensors = _tensors((args, kwargs))
            values = {id(x): self.memory.value(x) for x in tensors}
            if tensors and all(value is not None for value in values.values()):
                return _call_on_constants(func, *pytree.tree_map_only(Tensor, lambda x: values[id(x)], (args, kwargs)))
            if name == "masked_select" and len(tensors) == 2 and tensors[0].shape == tensors[1].shape:
                return tensors[0][self._expand_constant_masks(tensors[1])]
        return func(*args, **kwargs)

    def _expand_constant_masks(self, index: Any) -> Any:
        """An index in which each constant boolean mask is replaced by its indices."""
        items = index if isinstance(index, tuple) else (index,)
        found: list[Any] = []
        for item in items:
            value = self.memory.value(item) if isinstance(item, Tensor) and item.dtype == torch.bool else None
            if value is None or value.dim() == 0:
                found.append(item)
                continue
            with _disable_current_modes():
                places = value.nonzero(as_tuple=True)
            found += map(_lift, places)
        return tuple(found) if isinstance(index, tuple) or len(found) != 1 else found[0]


def _call_on_constants(func: Any, args: Any, kwargs: Any) -> Any:
    with _disable_current_modes():
        result = func(*args, **kwargs)
    return pytree.tree_map_only(Tensor, _lift, result)


def _lift(real: Tensor) -> Tensor:
    """A constant of the graph with these values."""
    lifted: Tensor = torch.ops.aten.lift_fresh_copy.default(real.contiguous())
    return lifted


def _tensors(values: Any) -> list[Tensor]:
    return [x for x in pytree.tree_leaves(values) if isinstance(x, Tensor)]


@contextmanager
def constants_readable(module: nn.Module) -> Iterator[None]:
    """Let the forward of a module read constants during export."""
    forward: Callable[..., Any] = module.forward

    @wraps(forward)
    def called(*args: Any, **kwargs: Any) -> Any:
        memory = ConstantStorages()
        with ExitStack() as stack:
            stack.enter_context(_ConstantFolding(memory))
            stack.enter_context(_ConstantIndexing(memory))
            return forward(*args, **kwargs)

    module.__dict__["forward"] = called
    try:
        yield
    finally:
        del module.__dict__["forward"]
