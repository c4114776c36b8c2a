"""Let a recording read constants, and nothing but constants.

A model may decide by a value what to do next: `if mask.any():`, `for n in lengths.tolist()`, `x[mask]`. The exporter
refuses all of these. Where the value is the same whatever the tokens are (a mask it made itself, a grid, position
numbers), taking the branch that is taken is exact: a law compares runs that differ in their tokens alone.

While a graph is recorded no tensor has numbers: tokens and weights are shapes. So what is read here cannot come from
them. Beside that, the numbers of *constants* are kept, by this definition:

    a factory call of the model (arange, ones, full, tensor([...]), zeros_like: anything but a random or an empty one)
    makes a constant, and so does an operator all of whose operands are constants.

Constancy belongs to memory, not to tensors: a view of a constant is one, and a write of anything else into any view
ends it for all of them. What no rule here calls a constant stays unreadable, and the recording is refused as before.
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

LARGEST = 1 << 24  # [bytes] of a constant that is kept
_LIFTS = (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default)
_SHAPED = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}  # of an operand the shape alone
_EMPTY = ("empty", "new_empty", "_efficientzerotensor", "resize", "set_")  # what stands in them is anybody's guess
_COUNTED = {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount", "repeat_interleave"}
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class Memory:
    """The storages of a recording that hold constants, each with its numbers."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}  # recorded (kept alive), real

    def value(self, recorded: Tensor) -> Tensor | None:
        """The numbers of a tensor, where it lies in constant memory: a view of them."""
        if type(recorded) is not FakeTensor or recorded.layout is not torch.strided or recorded.is_quantized:
            return None
        offset, shape, stride = recorded.storage_offset(), tuple(recorded.shape), tuple(recorded.stride())
        if recorded.is_conj() or recorded.is_neg() or not isinstance(offset, int) or not _all_numbers((shape, stride)):
            return None
        found = self._kept.get(recorded.untyped_storage()._cdata)
        if found is None:
            return None
        try:
            return _view(found[1], recorded.dtype, offset, shape, stride)
        except RuntimeError:  # memory that was resized
            return None

    def note(self, recorded: Tensor, real: Tensor) -> None:
        """Keep the numbers of a tensor that was just made, and that fills its memory."""
        if type(recorded) is not FakeTensor or recorded.layout is not torch.strided:
            return
        if type(real) is not Tensor or real.device.type != "cpu":
            return
        storage = recorded.untyped_storage()
        size, shape, stride = storage.nbytes(), tuple(recorded.shape), tuple(recorded.stride())
        if storage._cdata in self._kept or not _all_numbers((size, shape, stride, recorded.storage_offset())):
            return  # a view or a result in place: its memory is known already
        if size > LARGEST or recorded.numel() * recorded.element_size() != size or not _is_dense(shape, stride):
            return
        if real.shape != recorded.shape or real.dtype != recorded.dtype:
            return
        kept = torch.UntypedStorage(size)  # type: ignore[no-untyped-call]
        with _disable_current_modes():
            _view(kept, real.dtype, 0, shape, stride).copy_(real)
        self._kept[storage._cdata] = (storage, kept)

    def forget(self, recorded: Tensor) -> None:
        """Something else was written there."""
        if type(recorded) is FakeTensor and recorded.layout is torch.strided:
            self._kept.pop(recorded.untyped_storage()._cdata, None)


def _view(
    storage: torch.UntypedStorage, dtype: torch.dtype, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]
) -> Tensor:
    with _disable_current_modes():
        return torch.empty(0, dtype=dtype).set_(storage, offset, shape, stride)


def _all_numbers(values: Any) -> bool:
    return all(type(x) is int for x in pytree.tree_leaves(values))


def _is_dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether elements fill their memory, each its own place."""
    expected = 1
    for step, size in sorted((s, n) for s, n in zip(stride, shape, strict=True) if n != 1):
        if step != expected:
            return False
        expected *= size
    return True


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Compute what constants give, beside the recording, operator by operator."""

    supports_higher_order_operators = True

    def __init__(self, memory: Memory) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.memory = memory

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        computed, real = self._compute(func, args, kwargs)
        if not computed:
            self._forget_written(func, args, kwargs)
            return func(*args, **kwargs)
        tags = func.tags
        if torch.Tag.data_dependent_output in tags or not _tensors(real):
            return real
        if torch.Tag.dynamic_output_shape in tags:
            mode = next(x.fake_mode for x in _tensors((args, kwargs)) if isinstance(x, FakeTensor))
            made = pytree.tree_map_only(Tensor, lambda t: mode.from_tensor(t.clone(), static_shapes=True), real)
        else:
            made = func(*args, **kwargs)
        for one, other in zip(pytree.tree_leaves(made), pytree.tree_leaves(real), strict=True):
            if isinstance(one, Tensor) and isinstance(other, Tensor):
                self.memory.note(one, other)
        return made

    def _compute(self, func: Any, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """Whether this operator gives a constant, and which. What it writes into constants is written."""
        if not isinstance(func, OpOverload) or func.namespace not in ("aten", "prims"):
            return False, None
        name = func.overloadpacket.__name__
        if torch.Tag.nondeterministic_seeded in func.tags or torch.Tag.inplace_view in func.tags:
            return False, None
        leaves = pytree.tree_leaves((args, kwargs))
        if name.startswith(_EMPTY) or any(isinstance(x, _SYMBOLS) for x in leaves):
            return False, None
        if func in _LIFTS and type(args[0]) is Tensor:  # the numbers of torch.tensor([...]), fresh
            with _disable_current_modes():
                return True, args[0].clone()
        values = {id(x): self._operand(name, x) for x in _tensors((args, kwargs))}
        if any(value is None for value in values.values()):
            return False, None
        try:
            with _disable_current_modes():
                real_args, real_kwargs = pytree.tree_map_only(Tensor, lambda x: values[id(x)], (args, kwargs))
                made = func(*real_args, **real_kwargs)
        except Exception:  # noqa: BLE001 - whatever fails on numbers is left to the recording, which says what fails
            return False, None
        assert all(type(x) is Tensor for x in _tensors(made)), "computed on what has no numbers"
        return True, made

    def _operand(self, name: str, recorded: Tensor) -> Tensor | None:
        if name in _SHAPED and _all_numbers(tuple(recorded.shape)) and recorded.device.type == "cpu":
            with _disable_current_modes():
                return torch.zeros(recorded.shape, dtype=recorded.dtype)
        return self.memory.value(recorded)

    def _forget_written(self, func: Any, args: Any, kwargs: Any) -> None:
        if not isinstance(func, OpOverload):
            written: Any = (args, kwargs)  # an operator of operators: it may write into whatever it is given
        else:
            names = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
            given = dict(zip([a.name for a in func._schema.arguments], args, strict=False)) | kwargs
            written = [given[name] for name in names if name in given]
        for x in _tensors(written):
            self.memory.forget(x)


class _Calls(TorchFunctionMode):
    """Calls whose result has as many elements as a constant says: with the constant written out."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("__getitem__", "__setitem__"):
            return func(args[0], self._places(args[1]), *args[2:])
        if name in _COUNTED or (name == "where" and len(args) + len(kwargs) == 1):
            given = _tensors((args, kwargs))
            values = {id(x): self.memory.value(x) for x in given}
            if given and all(value is not None for value in values.values()):
                return _constant(func, *pytree.tree_map_only(Tensor, lambda x: values[id(x)], (args, kwargs)))
            if name == "masked_select" and len(given) == 2 and given[0].shape == given[1].shape:
                return given[0][self._places(given[1])]
        return func(*args, **kwargs)

    def _places(self, index: Any) -> Any:
        """An index in which each constant mask is replaced by the places it shows."""
        items = index if isinstance(index, tuple) else (index,)
        found: list[Any] = []
        for item in items:
            value = self.memory.value(item) if isinstance(item, Tensor) and item.dtype == torch.bool else None
            if value is None or value.dim() == 0:
                found.append(item)
                continue
            with _disable_current_modes():
                places = value.nonzero(as_tuple=True)
            found += map(_written_out, places)
        return tuple(found) if isinstance(index, tuple) or len(found) != 1 else found[0]


def _constant(func: Any, args: Any, kwargs: Any) -> Any:
    with _disable_current_modes():
        made = func(*args, **kwargs)
    return pytree.tree_map_only(Tensor, _written_out, made)


def _written_out(real: Tensor) -> Tensor:
    """A constant of the graph with these numbers."""
    written: Tensor = torch.ops.aten.lift_fresh_copy.default(real.contiguous())
    return written


def _tensors(values: Any) -> list[Tensor]:
    return [x for x in pytree.tree_leaves(values) if isinstance(x, Tensor)]


@contextmanager
def reading_constants(module: nn.Module) -> Iterator[None]:
    """While a module is recorded, let its forward read constants."""
    forward: Callable[..., Any] = module.forward

    @wraps(forward)
    def called(*args: Any, **kwargs: Any) -> Any:
        memory = Memory()
        with ExitStack() as stack:
            stack.enter_context(_Operators(memory))
            stack.enter_context(_Calls(memory))
            return forward(*args, **kwargs)

    module.__dict__["forward"] = called
    try:
        yield
    finally:
        del module.__dict__["forward"]
