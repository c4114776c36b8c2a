"""Rules: for a family of operators, the fact about the result that follows from facts about the operands.

A rule is a function from an `OperatorCall` (one operator applied at one node) to a fact. It is registered under the
names of its operators and the name of its lemma. If its lemma does not cover the call, it raises `RuleNotApplicable`
with the reason; it never guesses.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from orderproof.diagnosis import lemma_summary
from orderproof.diagnosis.domain.fact import Fact, Shape
from orderproof.diagnosis.domain.values import may_be_masking_or_infinite
from orderproof.number_limits import ORDINARY_LIMIT
from orderproof.recording import kept_operators

if TYPE_CHECKING:
    from orderproof.diagnosis.domain.constants import Constants
    from orderproof.diagnosis.domain.move import Move

_NORM_ORDER_ARGUMENTS = {"p", "ord"}  # numbers that are not combined with the elements
# Their results are infinite, or of any size, for a matrix that has no inverse or no root.
_OF_INVERTIBLE_MATRICES = ("linalg_inv_ex", "linalg_solve_ex", "linalg_slogdet", "cholesky")
Facts = Fact | tuple[Fact, ...]
ArgumentRef = (
    int | str | tuple[int, int] | None
)  # an argument of a node: its index, its name, or (index, index within a list)


class RuleNotApplicable(Exception):
    """No lemma covers this operator on these facts; the message is the reason."""


@dataclass(frozen=True, slots=True)
class RelationBreak:
    """A node at which the relation between the two runs is lost: an operand does not move as the lemma requires."""

    node: Node
    operand: Node | None  # the operand that breaks the relation; None if it is the operator itself
    argument: ArgumentRef  # of that operand
    dims: tuple[int, ...]  # the operand's dimensions that would have to be uniform
    moves: tuple[Move, ...]  # the moves that these dimensions would need
    constant: bool  # the operand is a constant
    reason: str


@dataclass(slots=True)
class OperatorCall:
    """One operator applied at one node: its arguments, the facts about them, and the breaks that it reports."""

    node: Node
    facts: dict[Node, Facts]
    constants: Constants
    continue_after_break: bool  # assume after a break that the operand moved as required
    breaks: list[RelationBreak]
    assume: Callable[[str], None]  # adds an assumption to the proof

    @property
    def args(self) -> tuple[Any, ...]:
        """The node's positional arguments."""
        return self.node.args

    def argument(self, index: int, name: str, default: Any = None) -> Any:
        """A positional or keyword argument of the node; `default` if it is absent."""
        if index < len(self.node.args):
            return self.node.args[index]
        return self.node.kwargs.get(name, default)

    def fact(self, node: Node) -> Fact:
        """The fact about one tensor operand."""
        fact = self.facts[node]
        if isinstance(fact, tuple):
            raise RuleNotApplicable(f"{node.name} is several tensors where one was expected")
        return fact

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return shape_of(self.node)

    @property
    def target(self) -> str:
        """The operator's full name, such as aten.add.Tensor."""
        return str(self.node.target)

    def may_mask(self, node: Node) -> bool:
        """True if an operand may hold entries as negative as a mask, or infinite."""
        if node in self.constants and not self.constants.is_opaque(node):
            return self.constants.has_masking_magnitude(node)
        known = self.facts.get(node)
        facts = known if isinstance(known, tuple) else (known,)
        return any(f is not None and may_be_masking_or_infinite(f.ranges) for f in facts)


def shape_of(node: Node) -> Shape:
    """The shape of a node's tensor value."""
    value = node.meta["val"]
    return tuple(int(s) for s in value.shape)


def dtype_of(node: Node) -> torch.dtype:
    """The dtype of a node's tensor value."""
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def has_large_literal(node: Node) -> bool:
    """True if a number that is combined with the elements is as large as a mask, infinite or NaN."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    parameters = [(x.name, str(x.type)) for x in schema.arguments]
    values = {name: v for (name, _), v in zip(parameters, node.args, strict=False)} | node.kwargs
    if "max_pool" in str(node.target) and set(tree_leaves(values.get("dilation", 1))) != {1}:
        return True  # the maximum of a window that contains padding only is -inf
    if "solve_triangular" in str(node.target) and not values.get("unitriangular", False):
        return True  # the diagonal may be zero
    if any(name in str(node.target) for name in _OF_INVERTIBLE_MATRICES):
        return True
    numbers = [
        values.get(name)
        for name, kind in parameters
        if name not in _NORM_ORDER_ARGUMENTS and ("number" in kind or "float" in kind)
    ]
    return any(isinstance(v, int | float | complex) and not abs(v) < ORDINARY_LIMIT for v in numbers)


RuleFunction = Callable[[OperatorCall], Facts]


@dataclass(frozen=True, slots=True)
class Rule:
    """One lemma, the operators it covers, and the function that applies it."""

    lemma: str
    operators: tuple[str, ...]
    apply: RuleFunction
    module: str


_by_operator: dict[str, Rule] = {}
_rules: list[Rule] = []
_loaded = False


def rule(lemma: str, *operators: str) -> Callable[[RuleFunction], RuleFunction]:
    """Register a function as the rule of these operators (``softmax.int``, or ``softmax`` for every overload)."""

    def register(function: RuleFunction) -> RuleFunction:
        registered = Rule(lemma, operators, function, function.__module__)
        for name in operators:
            key = name if name.startswith("transformers.") else f"aten.{name}"
            if key in _by_operator:
                raise ValueError(f"{key} has a rule already: {_by_operator[key].lemma} in {_by_operator[key].module}")
            _by_operator[key] = registered
        _rules.append(registered)
        return function

    return register


def _load() -> None:
    global _loaded
    if not _loaded:
        package = importlib.import_module("orderproof.diagnosis.rules")
        for info in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{info.name}")
        _loaded = True


def rules() -> Iterator[Rule]:
    """Every registered rule."""
    _load()
    yield from _rules


def find_rule(target: object) -> Rule | None:
    """The rule of an operator: by its full name, then by the name of its overload packet, then by its tag."""
    _load()
    name = str(target)
    matching = _by_operator.get(name)
    if matching is None and name.startswith("aten."):
        matching = _by_operator.get(".".join(name.split(".")[:2]))
    # A tag of torch's own operators is a fact; a custom operator may have a wrong one.
    if matching is None and name.startswith(("aten.", "prims.")) and torch.Tag.pointwise in getattr(target, "tags", ()):
        matching = _by_operator["aten.<pointwise>"]
    return matching


def has_rule(target: object) -> bool:
    """True if an operator has a rule, so that a recording keeps it whole."""
    return find_rule(target) is not None


kept_operators.keep(has_rule)


def lemma_summaries() -> dict[str, str]:
    """Each lemma in one sentence."""
    stated = [(each.lemma, importlib.import_module(each.module).__doc__ or "") for each in rules()]
    return lemma_summary.lemma_summaries(stated)
