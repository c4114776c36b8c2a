"""Shared inputs that do not distinguish the tokens of a row. Calls ask for them, and take another branch then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orderproof.logic.rewriting import with_function_true, with_function_zero, with_upper_limit_met
from orderproof.logic.terms import Formula, equal
from orderproof.theorems.facts.open_fact import Axes, index
from orderproof.theorems.statement import (
    BATCH,
    DOCUMENT_FUNCTION,
    LENGTH_FUNCTION,
    MASK,
    MASK_FUNCTION,
    RIGHT_MASK,
    TOKENS,
    Statement,
    document,
    is_real,
    is_real_on_the_left,
)


@dataclass(frozen=True)
class UniformInputs:
    """A kind of shared inputs.

    Attributes:
        name: In certificates.
        element: A formula over the first indices; the inputs are of this kind if it holds for all of them.
        sizes: The sizes of these indices.
        simplified: A formula of a statement for inputs of this kind.
        fixed: The roles of the inputs whose elements are then all true.

    """

    name: str
    element: Formula
    sizes: Axes
    simplified: Callable[[Formula], Formula]
    fixed: tuple[str, ...] = ()

    def statement(self, whole: Statement) -> Statement:
        """The statement for shared inputs of this kind."""
        return whole.simplified(self.simplified)


EVERYTHING_REAL = UniformInputs(
    "everything_real",
    is_real(index(0), index(1)),
    (BATCH, TOKENS),
    lambda formula: with_function_true(formula, MASK_FUNCTION),
    (MASK,),
)
EVERYTHING_REAL_ON_THE_LEFT = UniformInputs(
    "everything_real_on_the_left",
    is_real_on_the_left(index(0), index(1)),
    (BATCH, TOKENS),
    lambda formula: with_upper_limit_met(formula, LENGTH_FUNCTION),
    (RIGHT_MASK,),
)
# The last total is 0, so none before it is larger.
ONE_DOCUMENT = UniformInputs(
    "one_document",
    equal(document(index(0), TOKENS + -1), 0),
    (BATCH,),
    lambda formula: with_function_zero(formula, DOCUMENT_FUNCTION),
)
KINDS = (EVERYTHING_REAL, EVERYTHING_REAL_ON_THE_LEFT, ONE_DOCUMENT)
