"""Steps that repeat: the same operator on the same facts gives the same fact, so it is interpreted once.

Two steps are the same when operator, literal arguments, shapes and dtypes are the same and each operand is the
same: the same constant, or a tensor about which the same is known. A parameter of which only the shape may be used
is the same as any other of its shape and dtype. That is how the second layer of a model, and each after it, costs
next to nothing: nothing in it need be recognised as a layer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from torch import Tensor
from torch.fx import Node

from orderproof.prover.constants import Constants
from orderproof.prover.fact import Fact
from orderproof.prover.rule import Facts


class Sharing:
    """The steps of one walk by what they are made of."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.first: dict[Hashable, Node] = {}
        self._numbers: dict[Hashable, int] = {}
        self._seen: dict[int, tuple[Fact, int]] = {}  # by identity; holding the fact keeps its identity its own

    def key(self, node: Node, facts: Mapping[Node, Facts]) -> Hashable | None:
        """What a step is made of; None where it is not to be shared."""
        if not isinstance(node.meta.get("val"), Tensor):
            return None  # of several results it matters which are read
        try:
            arguments = self._argument(node.args, facts), self._argument(tuple(sorted(node.kwargs.items())), facts)
            made: Hashable = (node.target, _form(node), node in self.constants, *arguments)
            hash(made)
        except (KeyError, TypeError):
            return None
        return made

    def _argument(self, x: Any, facts: Mapping[Node, Facts]) -> Hashable:
        if isinstance(x, Node):
            fact = facts[x]
            if not isinstance(fact, Fact):
                raise KeyError(x)
            if x not in self.constants:
                return "tensor", _form(x), self.number(fact)
            if self.constants.opaque(x):
                return "opaque", _form(x), self.number(fact)
            return "constant", x.name
        if isinstance(x, list | tuple):
            return tuple(self._argument(y, facts) for y in x)
        return type(x).__name__, repr(x) if isinstance(x, float) else x  # 1, 1.0 and True are different arguments

    def number(self, fact: Fact) -> int:
        """The same number for facts that say the same."""
        found = self._seen.get(id(fact))
        if found is None:
            known = fact.known
            content = (
                fact.shape,
                tuple(map(id, fact.moves)),  # moves are interned
                fact.level.shape,
                fact.level.tobytes(),
                known and (known.status.shape, known.status.tobytes(), *_value(known.value)),
                fact.among and (fact.among.dim, *_value(fact.among.sure)),
            )
            found = self._seen[id(fact)] = (fact, self._numbers.setdefault(content, len(self._numbers)))
        return found[1]


def _value(value: Any) -> tuple[Hashable, ...]:
    return value.dtype.str, value.shape, value.tobytes()


def _form(node: Node) -> Hashable:
    value = node.meta["val"]
    return tuple(value.shape), value.dtype
