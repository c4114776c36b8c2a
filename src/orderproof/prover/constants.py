"""Constants of a graph: the nodes that depend on no input, and their values.

Parameters are opaque by default: nothing may be concluded from their values, so that a proof holds for
every value of every parameter. Buffers, `arange`, literals and all that is computed from them are
evaluated, on the CPU, also when the graph lives on the meta device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Graph, Node

from orderproof.prover.fact import FLOAT16_LARGE, compress

# Operators whose result is not a function of their arguments: memory as it happens to be, or chance.
UNINITIALISED = (
    "empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided",
    "resize", "resize_as", "_resize_output",
)  # fmt: skip

# Operators that read memory beside their argument: what they give depends on how it lies there.
OF_MEMORY = ("as_strided", "as_strided_copy", "as_strided_scatter", "_reshape_alias", "_reshape_alias_copy")

# Operators that take only the shape of their argument: constant whatever it is.
FILLED: dict[str, int | None] = {
    "full_like": None,
    "zeros_like": 0,
    "ones_like": 1,
    "new_zeros": 0,
    "new_ones": 1,
    "new_full": None,
}


def _filled_with(node: Node) -> Any:
    """The value a shape-only operator fills with; None where it is not one, or the value is a tensor."""
    parts = str(node.target).split(".")
    if len(parts) < 2 or parts[0] != "aten" or parts[1] not in FILLED:
        return None
    value: Any = FILLED[parts[1]]
    if value is None:
        place = 1 if parts[1] == "full_like" else 2
        value = node.args[place] if len(node.args) > place else node.kwargs.get("fill_value")
    return None if isinstance(value, Node) else value


def is_arbitrary(node: Node) -> bool:
    """Whether a node's value is not determined by its arguments."""
    if node.op != "call_function":
        return False
    if is_uninitialised(node) or isinstance(node.target, torch._ops.HigherOrderOperator):
        return True  # what is drawn in a graph of its own is not looked at
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not _switched_off(node)


def is_uninitialised(node: Node) -> bool:
    """Whether a node's value is memory as it happens to be: any number, infinite ones and none among them."""
    parts = str(node.target).split(".")
    return len(parts) > 1 and parts[0] == "aten" and parts[1] in UNINITIALISED


def reads_memory(node: Node) -> bool:
    """Whether a node reads the memory that its argument lies in, of which the argument may be a part."""
    parts = str(node.target).split(".")
    return len(parts) > 1 and parts[0] == "aten" and parts[1] in OF_MEMORY


def _switched_off(node: Node) -> bool:
    """Whether a random operator is told to draw nothing (dropout in eval, or with probability 0)."""
    name = str(node.target)
    if name.startswith(("aten.dropout", "aten.native_dropout", "aten.feature_dropout", "aten.alpha_dropout")):
        train = node.args[2] if len(node.args) > 2 else node.kwargs.get("train", True)
        p = node.args[1] if len(node.args) > 1 else node.kwargs.get("p", 0.5)
        return train is False or bool(p == 0)
    if name.startswith("aten.scaled_dot_product_attention"):
        return bool((node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)) == 0)
    if name.startswith(("aten.lstm", "aten.gru", "aten.rnn")):
        booleans = [a for a in node.args if isinstance(a, bool)]
        return len(booleans) > 1 and booleans[1] is False
    return False


class Constants:
    """Which nodes are constant, what they come from, and (lazily) their values."""

    def __init__(
        self,
        graph: Graph,
        state: Mapping[str, str],
        values: Mapping[str, Tensor],
        *,
        parameters: Iterable[str],
        trust_parameters: bool = False,
    ) -> None:
        """`state`: placeholder -> qualified name. `values`: qualified name -> real tensor, where there is one."""
        self._state = dict(state)
        self._parameters = frozenset(parameters)
        self._trust = trust_parameters
        self._values = values
        self._cache: dict[Node, Any] = {}
        self._array_cache: dict[Node, Any] = {}
        self._opaque: set[Node] = set()
        self._leaves: dict[Node, frozenset[str]] = {}
        self._masks: dict[Node, bool] = {}
        self._large: dict[Node, bool] = {}
        self.nodes: set[Node] = set()
        self.consulted: set[str] = set()
        self.read: set[Node] = set()  # the constants themselves, generated ones included
        for node in graph.nodes:
            self._classify(node)

    def _classify(self, node: Node) -> None:
        """Decide, in graph order, whether a node is constant, opaque, and what it is made from."""
        if node.op == "placeholder":
            if node.name not in self._state:
                return
            name = self._state[node.name]
            value = self._values.get(name)
            leaves = frozenset([name])
            opaque = (name in self._parameters and not self._trust) or value is None or value.is_meta
        elif _filled_with(node) is not None:
            leaves, opaque = frozenset(["a fill value"]), False
        elif node.op == "call_function" and not is_arbitrary(node):
            if not all(n in self.nodes for n in node.all_input_nodes):
                return
            parts = [self._leaves[n] for n in node.all_input_nodes]
            own = str(node.target).removeprefix("aten.").split(".")[0]
            leaves = frozenset[str]().union(*parts) if parts else frozenset([own])
            opaque = any(n in self._opaque for n in node.all_input_nodes)
        else:
            return
        self.nodes.add(node)
        self._leaves[node] = leaves
        if opaque:
            self._opaque.add(node)

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def leaves(self, node: Node) -> frozenset[str]:
        """The parameters, buffers and generators (arange) that a constant is made from."""
        return self._leaves[node]

    def is_parameter(self, name: str) -> bool:
        """Whether a qualified name is a parameter (not a buffer)."""
        return name in self._parameters

    def opaque(self, node: Node) -> bool:
        """Whether nothing may be concluded from the node's value."""
        return node in self._opaque

    def array(self, node: Node) -> Any:
        """The value of a constant as a numpy array, or None where it is opaque or cannot be computed."""
        if node not in self._array_cache:
            value = None if self.opaque(node) else self._evaluate(node)
            if isinstance(value, Tensor):
                value = value.float() if value.dtype is torch.bfloat16 else value
                value = value.detach().resolve_conj().resolve_neg().numpy()
            else:
                value = None
            self._array_cache[node] = value
        return self._array_cache[node]

    def is_mask(self, node: Node) -> bool:
        """Whether a constant is a mask to multiply with, not a table.

        It takes at most two values, one of them zero, or its zeros lie along no one dimension (decay, zero in the
        future). A table of sines is zero in its first row alone.
        """
        if node not in self._masks:
            array = self.array(node)
            zero = compress(array == 0) if array is not None and array.size else np.zeros(1, dtype=bool)
            several = sum(size > 1 for size in zero.shape) > 1
            self._masks[node] = bool(zero.any()) and (several or len(np.unique(array)) <= 2)
        return self._masks[node]

    def is_large(self, node: Node) -> bool:
        """Whether a floating constant has an entry as large as a mask: what it is combined with may be masked."""
        if node not in self._large:
            value = node.meta.get("val")
            floating = isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())
            array = self.array(node) if floating else None
            self._large[node] = array is not None and bool((~(np.abs(array) < FLOAT16_LARGE)).any())
        return self._large[node]

    def consult(self, node: Node) -> None:
        """Note that a proof used the value of this constant."""
        self.read.add(node)
        self.consulted.update(n for n in self.leaves(node) if n in self._values)

    def _evaluate(self, node: Node) -> Any:
        if node in self._cache:
            return self._cache[node]
        result: Any
        if node.op == "placeholder":
            result = self._values.get(self._state[node.name])
        elif (fill := _filled_with(node)) is not None:
            meta = node.meta["val"]
            result = torch.full(tuple(meta.shape), fill, dtype=meta.dtype)
        elif any(self._evaluate(n) is None for n in node.all_input_nodes):
            result = None  # an operand has no value, so neither has this
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
        if isinstance(target, torch._ops.HigherOrderOperator):
            return None
        try:
            with torch.no_grad():
                return target(*args, **kwargs)
        except (RuntimeError, TypeError, NotImplementedError, ValueError, IndexError):
            return None  # not computable on its own: treated as unknown
