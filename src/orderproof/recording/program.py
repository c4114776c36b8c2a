"""The operators of one call with their arguments, so that two calls can be compared.

The names of the operators alone do not make a program: `x.roll(1)` and `x.roll(2)` have the same, and so have two calls
that give an operator other tensors. Here each operator is kept with its numbers, and each tensor under its origin: an
input, a parameter or buffer by name, the result of an earlier operator, or a constant by its values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from orderproof.recording.arguments import leaves, tensors_in
from orderproof.recording.operator_names import operator_name
from orderproof.recording.source import innermost_line

_SAME_TENSOR = {"detach", "detach_", "alias", "contiguous", "lift_fresh", "lift", "to", "_to_copy"}  # unless cast
_PLAIN = (int, float, bool, str, torch.dtype)

Origin = tuple[Any, ...]
Run = Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], Any]


class Program:
    """The operators that one call ran, in order, with their arguments.

    Args:
        name_of: The name of a tensor that the call did not create, if it is a parameter or buffer of the module.

    """

    def __init__(self, name_of: Callable[[Tensor], str | None]) -> None:
        self.name_of = name_of
        self.calls: list[tuple[Any, ...]] = []
        self.lines: list[str] = []  # of the model, for each call
        self._origins: dict[int, Origin] = {}  # by id of a tensor, which `_kept` keeps alive
        self._places: dict[tuple[Any, ...], Origin] = {}  # by the part of a storage: `x.data` has no operator
        self._kept: list[Tensor] = []
        self._inside = False

    def follow(self, run: Run, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator and add it. Operators that it calls itself are not added."""
        if self._inside:
            return run(func, args, kwargs)
        self._inside = True
        try:
            call = (str(func), *map(self._described, leaves((args, kwargs))))
            result = run(func, args, kwargs)
            self._add(func, args, call, result)
        finally:
            self._inside = False
        return result

    def name(self, tensor: Tensor, *origin: Any) -> None:
        """Give a tensor its origin."""
        self._kept.append(tensor)
        self._origins[id(tensor)] = origin
        self._places[_place(tensor)] = origin

    def end(self, outputs: dict[str, Any]) -> None:
        """Add the tensors that the call returned, by name."""
        tensors = {name: self._origin(x) for name, x in outputs.items() if isinstance(x, Tensor)}
        self.calls.append(("the results of the model", *tensors.items()))
        self.lines.append("")

    def difference(self, other: Program) -> str:
        """The first difference from another program, with the line of the model there; empty if there is none."""
        for ours, theirs, line in zip_longest(self.calls, other.calls, self.lines, fillvalue=None):
            if ours != theirs:
                first, second = (x[0] if x is not None else "no further operator" for x in (ours, theirs))
                if first == second:
                    return f"gives {first} other arguments{line or ''}"
                return f"runs {second} where the recording has {first}{line or ''}"
        return ""

    def _add(self, func: OpOverload, args: tuple[Any, ...], call: tuple[Any, ...], result: Any) -> None:
        found = tensors_in(result)
        if not found and not func._schema.is_mutable:
            return  # a number that is read from constants
        if operator_name(func) == "scalar_tensor":  # an eager call makes tensors of numbers without it
            self.name(found[0], *origin_by_values(torch.tensor(args[0], dtype=found[0].dtype)))
            return
        first = args[0] if args and isinstance(args[0], Tensor) else None
        if first is not None and len(found) == 1:
            same = operator_name(func) in _SAME_TENSOR and found[0].dtype == first.dtype
            if same or (func._schema.is_mutable and func._schema.arguments[0].alias_info is not None):
                self.name(found[0], *self._origin(first))
            if same:
                return
        self.calls.append(call)
        self.lines.append(innermost_line())
        for place, tensor in enumerate(found):
            if id(tensor) not in self._origins:
                self.name(tensor, len(self.calls) - 1, place)

    def _described(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._origin(value)
        if isinstance(value, torch.device | torch.layout):
            return None  # a recording has devices of its own
        if isinstance(value, torch.Generator):
            return "a generator"  # its state is compared with that of the module
        return value if isinstance(value, _PLAIN) and value == value else repr(value)

    def _origin(self, tensor: Tensor) -> Origin:
        """The origin of a tensor. One that the call did not create has its name or its values."""
        found = self._origins.get(id(tensor)) or self._places.get(_place(tensor))
        if found is not None:
            return found
        name = self.name_of(tensor)
        self.name(tensor, *(("of the module", name) if name is not None else origin_by_values(tensor)))
        return self._origins[id(tensor)]


def _place(x: Tensor) -> tuple[Any, ...]:
    if x.layout is not torch.strided:
        return (id(x),)
    storage = x.untyped_storage()._cdata
    return storage, x.storage_offset(), tuple(x.shape), tuple(x.stride()), x.dtype, x.is_conj(), x.is_neg()


def origin_by_values(x: Tensor) -> Origin:
    """The origin of a tensor without a name: two with the same values have the same one."""
    if x.is_meta or x.layout is not torch.strided or x.is_quantized:
        return "without values", tuple(x.shape), str(x.dtype)
    data = x.detach().clone().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy()
    return "values", tuple(x.shape), str(x.dtype), hashlib.sha1(data.tobytes(), usedforsecurity=False).hexdigest()
