"""The arguments of an operator's call, bound to the names of its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves, tree_map_only

from orderproof.recheck.fact import Fact
from orderproof.recheck.reading import DTYPES, find_operator, require

Argument: TypeAlias = (
    "Fact | str | complex | torch.dtype | torch.device | torch.layout | torch.memory_format | Sequence[Argument] | None"
)
Substitution: TypeAlias = Callable[[Fact], Tensor | None]


def facts_in(arguments: object) -> list[Fact]:
    """The facts among nested arguments, in order."""
    return [x for x in tree_leaves(arguments) if isinstance(x, Fact)]


@dataclass(frozen=True)
class BoundCall:
    """One call of an operator, with the facts about its operands in place of tensors."""

    operator: OpOverload[..., Any]
    name: str  # without the namespace, the overload and outer underscores
    overload: str
    arguments: Mapping[str, Argument]  # one for each parameter of the schema

    @property
    def facts(self) -> list[Fact]:
        """The facts about its operands, in the order of the schema."""
        return facts_in(self.arguments)

    def run(
        self, substitute: Substitution, replaced: Mapping[str, Argument | Tensor] | None = None, device: str = "cpu"
    ) -> list[Tensor]:
        """Call the operator with a tensor for each fact, and with some arguments replaced."""
        arguments = tree_map_only(Fact, substitute, dict(self.arguments))
        if "device" in arguments:
            arguments["device"] = torch.device(device)
        result = self.operator(**arguments | dict(replaced or {}))
        return [result] if isinstance(result, Tensor) else list(result)

    def run_on_meta(self) -> list[Tensor]:
        """The results without their values."""
        return self.run(lambda f: torch.empty(f.shape, dtype=DTYPES[f.dtype], device="meta"), device="meta")

    def fact(self, name: str) -> Fact:
        """The fact about an operand. Raises `CertificateError` if the argument is no tensor."""
        value = self.arguments[name]
        require(isinstance(value, Fact), f"expected a tensor for its argument {name}")
        assert isinstance(value, Fact)
        return value

    def flag(self, name: str) -> bool:
        """A boolean argument; False if the schema has no such parameter."""
        return bool(self.arguments.get(name))

    def integer(self, name: str) -> int:
        """An integer argument. Raises `CertificateError`."""
        value = self.arguments[name]
        require(isinstance(value, int), f"expected an integer for its argument {name}")
        assert isinstance(value, int)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """An argument that is an integer or a list of them; empty if it is missing or None."""
        value = self.arguments.get(name)
        values = [] if value is None else [value] if isinstance(value, int) else value
        require(isinstance(values, list | tuple), f"expected integers for its argument {name}")
        assert isinstance(values, list | tuple)
        require(all(isinstance(x, int) for x in values), f"expected integers for its argument {name}")
        return tuple(x for x in values if isinstance(x, int))

    def numbers(self) -> Iterator[float]:
        """The numbers among its arguments that can enter a result: not a probability or the order of a norm."""
        for name, value in self.arguments.items():
            if name not in ("p", "ord") and isinstance(value, int | float | complex):
                yield value if isinstance(value, int | float) else abs(value)


def bind(operator: str, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> BoundCall:
    """Bind the arguments of a functional, deterministic ATen operator. Raises `CertificateError` for any other."""
    op = find_operator(operator)
    _, name, overload = operator.split(".")
    schema = op._schema.arguments
    positional = [x.name for x in schema if not x.kwarg_only][: len(args)]
    arguments: dict[str, Argument] = {
        **{x.name: x.default_value for x in schema},
        **dict(zip(positional, args, strict=True)),
        **kwargs,
    }
    call = BoundCall(op, name.strip("_"), overload, arguments)
    require(not reads_memory(call.name), "it reads uninitialized memory, or depends on a memory layout")
    require(not op._schema.is_mutable, "it writes into its arguments")
    for parameter in schema:
        _check_argument(str(parameter.real_type), parameter.name, arguments[parameter.name], parameter.default_value)
    is_off = arguments.get("train") is False or 0 in (arguments.get("p"), arguments.get("dropout_p"))
    require(is_off or torch.Tag.nondeterministic_seeded not in op.tags, "it is random")
    return call


def _check_argument(kind: str, name: str, value: Argument, default: Argument) -> None:
    """PyTorch may crash on a missing tensor, or on a number in place of a dtype or layout."""
    missing = "Optional" not in kind and None in (value if isinstance(value, list) else [value])
    coded = any(x in kind for x in ("ScalarType", "Layout", "Memory", "Device"))
    number = coded and isinstance(value, int) and value != default
    require(not missing and not number, f"its argument {name} is missing, or of another type")


READS_MEMORY = frozenset({
    "empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided", "empty_quantized",
    "from_file", "resize", "resize_as", "resize_output",
    "as_strided", "as_strided_copy", "as_strided_scatter", "reshape_alias", "reshape_alias_copy",
})  # fmt: skip


def reads_memory(name: str) -> bool:
    """True for an operator whose result depends on uninitialized memory, a file, or the memory layout of a tensor."""
    return name in READS_MEMORY
