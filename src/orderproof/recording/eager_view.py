"""Meta tensors that look to the model like the tensors they replace, and whose values cannot be read.

A function mode answers questions about the device as the replaced tensor would, and refuses the ways to read values
that are not operators: `numpy`, `tolist`, `repr`, pickling, the address and the storage of the memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from orderproof.recording.autocast import Autocast
from orderproof.recording.constants import is_constant
from orderproof.recording.eager_check import hidden_from_profile
from orderproof.recording.flex_attention import call_as_operators, is_flex_attention
from orderproof.recording.recorded_graph import RecordedGraph
from orderproof.recording.sizes_as_integers import with_open_sizes

_READS = {
    "numpy", "__array__", "tolist", "data_ptr", "const_data_ptr", "untyped_storage", "storage", "_typed_storage",
    "__repr__", "__str__", "__format__", "__reduce_ex__", "__reduce__", "__deepcopy__", "__dlpack__",
    "__cuda_array_interface__", "__hash_values__", "unique_dim",
}  # fmt: skip
# In an open recording. The layout of a result on the CPU may differ from that of its meta tensor.
_LAYOUTS = {"stride", "is_contiguous", "storage_offset", "dim_order", "_is_view", "is_set_to"}
_LAYOUT_ATTRIBUTES = {getattr(Tensor, name).__get__: name for name in ("_version", "_base")}
_FROM_DATA = {"tensor", "new_tensor"}
_INDEXING = ("__getitem__", "__setitem__")
_WITH_CONSTANTS = {"numpy", "__array__", "tolist", "__repr__", "__str__", "__format__"}


class EagerView(TorchFunctionMode):
    """The function mode of a recording."""

    def __init__(self, recorded: RecordedGraph) -> None:
        super().__init__()
        self.recorded = recorded
        self.device = device = recorded.device
        tensor = Tensor
        self._answers: dict[Any, Callable[[Tensor], Any]] = {
            tensor.device.__get__: lambda x: device,
            tensor.is_meta.__get__: lambda x: False,  # type: ignore[attr-defined]
            tensor.is_cpu.__get__: lambda x: device.type == "cpu",  # type: ignore[attr-defined]
            tensor.is_cuda.__get__: lambda x: device.type == "cuda",  # type: ignore[attr-defined]
            tensor.get_device: lambda x: device.index if device.type == "cuda" else -1,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        answer = self._answers.get(func)
        if answer is not None:
            return answer(args[0]) if args[0].is_meta else func(*args, **kwargs)
        if is_flex_attention(func):
            with self:
                return call_as_operators(args, kwargs)
        name = getattr(func, "__name__", "")
        self.recorded.autocast.follow()
        if name in _READS and args and isinstance(args[0], Tensor):
            return self._read(func, name, args, kwargs)
        if self.recorded.open_call is not None and (name in _LAYOUTS or func in _LAYOUT_ATTRIBUTES):
            self._ask_for_layout(args[0], _LAYOUT_ATTRIBUTES.get(func, name))
        if name == "type" and len(args) == 1 and not kwargs and args[0].is_meta:
            with torch._C.DisableTorchFunction(), _disable_current_modes(), hidden_from_profile():
                return torch.empty(0, dtype=args[0].dtype, device=self.device).type()
        if name == "__set__" and getattr(func, "__self__", None) is Tensor.data:
            if _is_same_tensor(*args[:2]):  # `module.to(device)` of a module that is there
                return None
            self.recorded.refuse("it assigns to tensor.data")
        if name in _FROM_DATA:
            return _from_data(func, args, kwargs, self.device)
        if name in _INDEXING and args[0].is_meta:
            return index_as_recorded(func, args, fills=self.device.type == "cpu")
        found = self._with_open_sizes(name, args, kwargs)
        return func(*args, **kwargs) if found is None else found

    def _with_open_sizes(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of a function that torch would call with numbers for open sizes; None for another call."""
        if self.recorded.open_call is not None and (same := with_open_sizes(name, args, kwargs)) is not None:
            return same(*args, **kwargs)
        loops = self.recorded.loops
        if name == "unbind" and loops is not None and isinstance(args[0], Tensor) and not kwargs.keys() - {"dim"}:
            dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
            return loops.unbind(args[0], dim, sys._getframe(2))
        if name == "split" and loops is not None and isinstance(args[0], Tensor) and len(args) + len(kwargs) <= 3:
            given = {**dict(zip(("split_size", "dim"), args[1:], strict=False)), **kwargs}
            size = given.get("split_size", given.get("split_size_or_sections"))
            return loops.split(args[0], size, given.get("dim", 0), sys._getframe(2))
        return None

    def _ask_for_layout(self, tensor: Tensor, name: str) -> None:
        """Give up an open recording in which the layout of a result decides, which is known for the example only."""
        with torch._C.DisableTorchFunction():
            alias = self.recorded.alias(tensor)
        if name == "_version" or alias.node.op != "placeholder":
            self.recorded.refuse(f"it asks for the layout of a tensor (`{name}`)")

    def _read(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with torch._C.DisableTorchFunction():
            tensor = args[0]
            if not tensor.is_meta and name not in _WITH_CONSTANTS:
                return self._read_memory(func, args, kwargs)
            if name not in _WITH_CONSTANTS or not is_constant(self.recorded, tensor):
                self.recorded.refuse(f"control flow depends on data (`{name}` of a tensor)")
            self.recorded.constants_read = True
            alias = self.recorded.alias(tensor)
            assert alias.values is not None
            with _disable_current_modes():
                with hidden_from_profile():
                    values = alias.values.clone()
                result = func(values, *args[1:], **kwargs)
            if name in ("numpy", "__array__"):
                # An array shares the memory of its tensor: a write to one would change the other.
                alias.storage.shared = True
                result.setflags(write=False)
            return result

    def _read_memory(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Give the memory of a tensor that the call did not create, if it is a constant without writes."""
        alias = self.recorded.alias(args[0])
        if alias.values is None or alias.storage.version:
            self.recorded.refuse(f"control flow depends on data (`{func.__name__}` of a tensor)")
        alias.storage.shared = True
        with _disable_current_modes():
            return func(*args, **kwargs)


class EagerReads(TorchFunctionMode):
    """The function mode of an eager call that is compared with a recording: it indexes and reads in the same way."""

    def __init__(self, autocast: Autocast) -> None:
        super().__init__()
        self.autocast = autocast

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.autocast.follow()
        if is_flex_attention(func):
            with self:
                return call_as_operators(args, kwargs)
        name = getattr(func, "__name__", "")
        if name in _READS and args and isinstance(args[0], Tensor):
            with torch._C.DisableTorchFunction(), _disable_current_modes():
                return func(*args, **kwargs)
        if name == "new_tensor":
            return _from_data(func, args, kwargs, args[0].device)
        if name in _INDEXING:
            return index_as_recorded(func, args, fills=args[0].device.type == "cpu")
        return func(*args, **kwargs)


def _from_data(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: torch.device) -> Tensor:
    """`x.new_tensor(data)` by `torch.tensor`, whose values a recording knows; of an open size without its example."""
    options = dict(kwargs)
    if func.__name__ == "new_tensor":
        options = {"dtype": args[0].dtype, "device": device, **options}
        args = args[1:]
    data = args[0] if args else options.pop("data")
    if type(data) not in (torch.SymInt, torch.SymFloat):
        return torch.tensor(data, **options)
    dtype = torch.int64 if type(data) is torch.SymInt else torch.get_default_dtype()
    return torch.scalar_tensor(data, **{"dtype": dtype, **options})


def _is_same_tensor(first: Tensor, second: Tensor) -> bool:
    """True if both are the same part of one memory, read in the same way."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        parts = [
            (x.untyped_storage()._cdata, x.storage_offset(), x.shape, x.stride(), x.dtype, x.is_conj(), x.is_neg())
            for x in (first, second)
        ]
    return parts[0] == parts[1]


def index_as_recorded(func: Any, args: tuple[Any, ...], *, fills: bool) -> Any:
    """Index a tensor, or assign to a part of it, by operators that run on meta tensors as on others."""
    # torch would put the numbers of a list on the device of the tensor, where they have no values.
    args = (args[0], _with_tensors_for_lists(args[1]), *args[2:])
    if (part := _at_symbols(args[0], args[1])) is not None:
        if len(args) == 2:
            return part
        part.copy_(args[2]) if isinstance(args[2], Tensor) else part.fill_(args[2])
        return None
    if fills and len(args) > 2 and _fills(args[1], args[2]):
        # torch fills with a number, or with a tensor of no dimensions, where it copies on other devices.
        part = args[0][args[1]]
        part.fill_(args[2]) if part.ndim else part.copy_(torch.as_tensor(args[2], dtype=part.dtype))
        return None
    return func(*args)


def _at_symbols(tensor: Tensor, index: Any) -> Tensor | None:
    """The part of a tensor at an index with symbols, which torch would replace by their examples; None without any."""
    places = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(p, torch.SymInt) for p in places):
        return None
    if not all(p is None or p is ... or type(p) in (int, slice, torch.SymInt) for p in places):
        return None
    part = tensor[tuple(slice(None) if isinstance(p, torch.SymInt) else p for p in places)]
    dims = [0 if type(p) is int else None if p is ... else 1 for p in places]
    dim = 0
    for k, (place, kept) in enumerate(zip(places, dims, strict=True)):
        if isinstance(place, torch.SymInt):
            part = part.select(dim, place)
        elif kept is None:
            dim = part.dim() - sum(d or 0 for d in dims[k + 1 :])
        else:
            dim += kept
    return part


def _with_tensors_for_lists(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(_with_tensors_for_lists, index))
    return torch.tensor(index) if isinstance(index, list) and _are_numbers(index) else index


def _are_numbers(values: list[Any]) -> bool:
    return all(isinstance(x, int) or (isinstance(x, list) and _are_numbers(x)) for x in values)


def _fills(index: Any, value: Any) -> bool:
    """True if assigning the value to this part of a tensor on the CPU calls `fill_`."""
    parts = index if isinstance(index, tuple) else (index,)
    basic = all(p is None or p is ... or type(p) in (int, slice) for p in parts)
    return basic and (isinstance(value, int | float) or (isinstance(value, Tensor) and value.ndim == 0))
