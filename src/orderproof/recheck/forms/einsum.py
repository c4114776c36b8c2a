"""Contractions, reductions and everything else that labels describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import DIMENSION_LABELS, INDEPENDENT, Fact
from orderproof.recheck.labelled import Combination, labelled_fact
from orderproof.recheck.reading import require

# Letters are labels, as in torch.einsum. These signs are groups of labels, one for each dimension:
ALL = "*"  # all dimensions, aligned from the right
OUTSIDE = "-"  # all dimensions except those of the argument `dim`
ALONG = "#"  # the dimensions of `dim`
READ = "<"  # all dimensions; those of `dim` have labels of their own
WRITTEN = ">"  # the same with other labels

READ_LABELS, WRITTEN_LABELS = "ABCDEFGHIJ", "abcdefghij"


@dataclass(frozen=True)
class Einsum:
    """The labels of the operands and of the result. Further operands have the labels of the last."""

    operands: tuple[str, ...]
    result: str
    by_position: str = ""  # labels along which it reads by position
    later_by_position: str = ""  # the same, for results other than the first (indices)
    factors: int = 0  # operands that are multiplied, if there are no others: an exact zero among them gives zero
    first_operand_twice: bool = False  # a normalisation reads an element, and the whole line it is in
    default_dims: Literal["all", "all but the first", "the first"] = "all"  # where there is no argument `dim`
    equal_lines: bool = False  # operands must have the same size outside `dim`
    cumulative: bool = False  # an element depends on those before it
    bounds_include_literals: bool = False

    def __post_init__(self) -> None:
        """Raises `ValueError` for an operand with one label twice."""
        for labels in self.operands:
            if len(set(labels)) < len(labels):
                raise ValueError(f"expected each label once in an operand; got {labels!r}, a diagonal")

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        facts = call.facts
        return self.of_facts(algebra, call, outputs, [*facts[:1], *facts] if self.first_operand_twice else facts)

    def of_facts(
        self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact], facts: Sequence[Fact]
    ) -> list[Fact]:
        """The derived facts, of these facts in place of the call's operands."""
        require(not call.flag("training"), "it depends on the training mode")
        if ALL in self.result or WRITTEN in self.result:
            rank = len(outputs[0].shape) - sum(x.isalnum() for x in self.result)
        else:  # dimensions of the operand are lost
            rank = len(facts[0].shape)
        dims = self._dims(call, rank)
        if self.equal_lines:
            lines = [[size for d, size in enumerate(f.shape) if d not in dims] for f in facts]
            require(all(x == lines[0] for x in lines), "it does not read or write every line")

        labels = [_expanded(x, rank, dims) for x in self.operands]
        labels += [labels[-1]] * (len(facts) - len(labels))
        operands = [(f, own[len(own) - len(f.shape) :]) for f, own in zip(facts, labels, strict=False)]
        result = _expanded(ALL if call.flag("keepdim") else self.result, rank, dims)
        product = Combination(_product, "monotone") if len(facts) <= self.factors else None
        later = self.later_by_position
        first = self.by_position + ("" if call.arguments.get("sorted", True) else later)  # unsorted: in any order
        derived = []
        for k, out in enumerate(outputs):
            if 0 in out.shape:
                fact = algebra.derived(out, INDEPENDENT)
            else:
                by_position = _only_dims(first + (later if k > 0 else ""), dims)
                fact = labelled_fact(algebra, out, operands, result, by_position, product)
            derived.append(self._adjusted(fact, facts, dims))
        return derived

    def _adjusted(self, fact: Fact, facts: Sequence[Fact], dims: Sequence[int]) -> Fact:
        """Indices and counts are ordinary numbers; a running value has the facts of all before it."""
        if "int" in fact.dtype and all("float" in f.dtype for f in facts):
            one = np.ones(fact.dependence.shape)
            fact = replace(fact, low=-one, high=one)
        if self.cumulative:
            dim = dims[0]
            fact = replace(
                fact,
                dependence=np.maximum.accumulate(fact.dependence, axis=dim),
                low=fact.low.min(axis=dim, keepdims=True),
                high=fact.high.max(axis=dim, keepdims=True),
            )
        return fact

    def _dims(self, call: BoundCall, rank: int) -> list[int]:
        """The dimensions of `dim`, or of `normalized_shape`, or the default ones."""
        dims = call.integers("dim")
        if not dims:
            if self.default_dims == "the first":
                dims = (0,)
            else:
                skipped = self.default_dims == "all but the first"
                trailing = call.integers("normalized_shape") or call.integers("s")
                count = len(trailing) or max(rank - skipped, 0)
                dims = tuple(range(rank - count, rank))
        return sorted({d % max(rank, 1) for d in dims})


def _product(*factors: Tensor) -> Tensor:
    return reduce(torch.mul, factors)


def _labels_of(sign: str, rank: int, dims: Sequence[int]) -> str:
    along = {READ: READ_LABELS, WRITTEN: WRITTEN_LABELS}.get(sign, DIMENSION_LABELS)
    kept = {OUTSIDE: [d for d in range(rank) if d not in dims], ALONG: dims}.get(sign, range(rank))
    return "".join((along if d in dims else DIMENSION_LABELS)[d] for d in kept)


def _expanded(text: str, rank: int, dims: Sequence[int]) -> str:
    """Labels with each sign replaced by the labels of its group."""
    signs = (ALL, OUTSIDE, ALONG, READ, WRITTEN)
    return "".join(_labels_of(x, rank, dims) if x in signs else x for x in text)


def _only_dims(text: str, dims: Sequence[int]) -> str:
    """Labels with each sign replaced by the labels of `dim` in its group."""
    labels = {ALL: DIMENSION_LABELS, ALONG: DIMENSION_LABELS, READ: READ_LABELS, WRITTEN: WRITTEN_LABELS}
    return "".join("".join(labels[x][d] for d in dims) if x in labels else x for x in text)


@dataclass(frozen=True)
class Equation:
    """torch.einsum: the labels are in its argument `equation`."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        facts, equation = call.facts, call.arguments["equation"]
        require(isinstance(equation, str), "expected an equation")
        assert isinstance(equation, str)
        left, arrow, result = equation.replace(" ", "").replace("...", ALL).partition("->")
        terms = left.split(",")
        one_label_each = all(len(f.shape) == len(term) for f, term in zip(facts, terms, strict=True))
        leading = all(term.startswith(ALL) for term in terms)
        require(ALL not in left or leading or one_label_each, "it has an ellipsis behind a label")
        if not arrow:  # every label that occurs once, in alphabetical order
            once = sorted(x for x in set(left) if left.count(x) == 1 and x.isalpha())
            result = (ALL if ALL in left else "") + "".join(once)
        return Einsum(tuple(terms), result, factors=len(terms)).derive(algebra, call, outputs)
