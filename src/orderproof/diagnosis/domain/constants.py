"""Constants of a graph: the nodes that depend on no input, and their values.

Parameters are opaque by default: their values may not be used, so that a proof holds for every value of every
parameter. Buffers, `arange`, literals and results of these are evaluated, on the CPU, also for a graph on the meta
device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Graph, Node

from orderproof.diagnosis.domain.fact import compress
from orderproof.number_limits import ORDINARY_LIMIT
from orderproof.recording.nondeterminism import is_nondeterministic

# Operators that read the storage of their argument: their result depends on its memory layout.
LAYOUT_DEPENDENT_OPERATORS = (
    "as_strided",
    "as_strided_copy",
    "as_strided_scatter",
    "_reshape_alias",
    "_reshape_alias_copy",
)

# Operators that use only the shape of their argument: constants.
FILL_OPERATORS: dict[str, int | None] = {
    "full_like": None,
    "zeros_like": 0,
    "ones_like": 1,
    "new_zeros": 0,
    "new_ones": 1,
    "new_full": None,
}


def _fill_value(node: Node) -> Any:
    """The fill value of a shape-only operator; None for other operators and for a tensor value."""
    parts = str(node.target).split(".")
    if len(parts) < 2 or parts[0] != "aten" or parts[1] not in FILL_OPERATORS:
        return None
    value: Any = FILL_OPERATORS[parts[1]]
    if value is None:
        index = 1 if parts[1] == "full_like" else 2
        value = node.args[index] if len(node.args) > index else node.kwargs.get("fill_value")
    return None if isinstance(value, Node) else value


_WIDER_DTYPES = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64}  # of dtypes that numpy does not have

# Operators that draw random numbers. Of a tensor among their arguments they use only the shape.
DRAWING_OPERATORS = frozenset({
    "aten.rand.default", "aten.rand_like.default", "aten.randn.default", "aten.randn_like.default",
    "aten.randint.default", "aten.randint.low", "aten.randint_like.default", "aten.randint_like.low_dtype",
    "aten.randperm.default", "aten.uniform.default", "aten.normal_functional.default",
})  # fmt: skip


def draws_random_numbers(node: Node) -> bool:
    """True if the value of a node is determined by its shape and by the random numbers that it draws.

    Only ordinary numbers from torch's own generator: two runs that draw the same ones get the same value.
    """
    if node.op != "call_function" or str(node.target) not in DRAWING_OPERATORS:
        return False
    arguments = [*node.args, *node.kwargs.values()]
    numbers = [x for x in arguments if isinstance(x, int | float)]
    return not any(isinstance(x, torch.Generator) for x in arguments) and all(abs(x) < ORDINARY_LIMIT for x in numbers)


def depends_on_memory_layout(node: Node) -> bool:
    """True if a node reads the storage of its argument, of which the argument may be a part."""
    parts = str(node.target).split(".")
    return len(parts) > 1 and parts[0] == "aten" and parts[1] in LAYOUT_DEPENDENT_OPERATORS


class Constants:
    """The constant nodes of a graph, their sources and, lazily, their values."""

    def __init__(
        self,
        graph: Graph,
        state: Mapping[str, str],
        values: Mapping[str, Tensor],
        *,
        parameters: Iterable[str],
        trust_parameters: bool = False,
    ) -> None:
        """`state`: placeholder -> qualified name. `values`: qualified name -> tensor; a missing one is opaque."""
        self._state = dict(state)
        self._parameters = frozenset(parameters)
        self._use_parameter_values = trust_parameters
        self._values = values
        self._cache: dict[Node, Any] = {}
        self._array_cache: dict[Node, Any] = {}
        self._opaque: set[Node] = set()
        self._sources: dict[Node, frozenset[str]] = {}
        self._masks: dict[Node, bool] = {}
        self._large: dict[Node, bool] = {}
        self.nodes: set[Node] = set()
        self.used_names: set[str] = set()
        self.used_nodes: set[Node] = set()  # constants whose values were used, generated ones included
        for node in graph.nodes:
            self._classify(node)

    def _classify(self, node: Node) -> None:
        """Classify a node, in graph order: constant or not, opaque or not, and its sources."""
        if node.op == "placeholder":
            if node.name not in self._state:
                return
            name = self._state[node.name]
            value = self._values.get(name)
            sources = frozenset([name])
            opaque = (name in self._parameters and not self._use_parameter_values) or value is None or value.is_meta
        elif _fill_value(node) is not None:
            sources, opaque = frozenset(["a fill value"]), False
        elif node.op == "call_function" and not is_nondeterministic(node):
            if not all(n in self.nodes for n in node.all_input_nodes):
                return
            parts = [self._sources[n] for n in node.all_input_nodes]
            operator = str(node.target).removeprefix("aten.").split(".")[0]
            sources = frozenset[str]().union(*parts) if parts else frozenset([operator])
            opaque = any(n in self._opaque for n in node.all_input_nodes)
        else:
            return
        self.nodes.add(node)
        self._sources[node] = sources
        if opaque:
            self._opaque.add(node)

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def sources(self, node: Node) -> frozenset[str]:
        """The parameters, buffers and generators (arange) that a constant is computed from."""
        return self._sources[node]

    def is_parameter(self, name: str) -> bool:
        """True if a qualified name is a parameter (not a buffer)."""
        return name in self._parameters

    def is_opaque(self, node: Node) -> bool:
        """True if the value of the node may not be used."""
        return node in self._opaque

    def array(self, node: Node) -> Any:
        """The value of a constant as a numpy array; None if it is opaque or cannot be computed."""
        if node not in self._array_cache:
            value = None if self.is_opaque(node) else self._evaluate(node)
            if isinstance(value, Tensor):
                value = value.to(_WIDER_DTYPES.get(value.dtype, value.dtype))
                value = value.detach().clone().resolve_conj().resolve_neg().numpy()
            else:
                value = None
            self._array_cache[node] = value
        return self._array_cache[node]

    def preview(self, node: Node) -> Any:
        """The value of a constant as a numpy array for a picture, also of a parameter; None if there is none.

        Not for proofs: they use `array`, which withholds parameters.
        """
        value = self._evaluate(node) if node in self.nodes else None
        if not isinstance(value, Tensor) or value.is_complex() or value.is_meta:
            return None
        return value.detach().clone().double().cpu().numpy()

    def is_multiplicative_mask(self, node: Node) -> bool:
        """True if a constant factor is a mask, not a table.

        A mask has at most two values, one of them zero, or zeros that vary along more than one dimension (decay, zero
        in the future). A table of sines is zero in its first row only.
        """
        if node not in self._masks:
            array = self.array(node)
            zero = compress(array == 0) if array is not None and array.size else np.zeros(1, dtype=bool)
            several = sum(size > 1 for size in zero.shape) > 1
            self._masks[node] = bool(zero.any()) and (several or len(np.unique(array)) <= 2)
        return self._masks[node]

    def has_masking_magnitude(self, node: Node) -> bool:
        """True if a floating-point constant has an entry as large as a mask, infinite or NaN."""
        if node not in self._large:
            value = node.meta.get("val")
            floating = isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())
            array = self.array(node) if floating else None
            self._large[node] = array is not None and bool((~(np.abs(array) < ORDINARY_LIMIT)).any())
        return self._large[node]

    def mark_used(self, node: Node) -> None:
        """Record that the analysis used the value of this constant."""
        self.used_nodes.add(node)
        self.used_names.update(n for n in self.sources(node) if n in self._values)

    def _evaluate(self, node: Node) -> Any:
        if node in self._cache:
            return self._cache[node]
        result: Any
        if node.op == "placeholder":
            result = self._values.get(self._state[node.name])
        elif (fill := _fill_value(node)) is not None:
            meta = node.meta["val"]
            result = torch.full(tuple(meta.shape), fill, dtype=meta.dtype)
        elif any(self._evaluate(n) is None for n in node.all_input_nodes):
            result = None  # an operand has no value
        else:
            args = tuple(
                torch.device("cpu") if isinstance(a, torch.device) else a
                for a in torch.fx.map_arg(node.args, self._evaluate)
            )
            kwargs = dict(torch.fx.map_arg(node.kwargs, self._evaluate))
            if "device" in kwargs:
                kwargs["device"] = torch.device("cpu")
            result = self._call(node.target, args, kwargs)
        self._cache[node] = result
        return result

    @staticmethod
    def _call(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            with torch.no_grad():
                return target(*args, **kwargs)
        except (RuntimeError, TypeError, NotImplementedError, ValueError, IndexError):
            return None  # torch refuses it, for example without a kernel for the CPU: the value is unknown
