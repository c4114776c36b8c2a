"""If all, or any, of the known booleans of each row are true: a new function of other indices, named after its step.

Where all are true, each one is; and where one is true, any is. This is known of a few indices of the row: the first and
the last, those that are places along an axis as long as the row, and a real token from either end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderproof_recheck.logic.formulas import Formula, at_most, every, holds, implies, less
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Atom, Term, Variable, integer


@dataclass(frozen=True)
class WholeRow:
    """If all, or any, of the booleans of each row are true.

    Attributes:
        node: The step, after which the function is named.
        element: The booleans, over the indices of their tensor.
        row: The index within a row.
        others: The other indices.
        own: The places among them of axes that are as long as a row.
        size: The number of elements of a row.
        is_all: All of them; else any.

    """

    node: str
    element: Formula
    row: Variable
    others: tuple[Variable, ...]
    own: tuple[int, ...]
    size: Term
    is_all: bool

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """All that holds of one row."""
        whole, parts = holds(self.node, *arguments), []
        places = [integer(0), self.size - 1, *(arguments[k] for k in self.own)]
        for place in [*places, *([] if real is None else [real, self.size - 1 - real])]:
            terms: dict[Atom, Term] = {**dict(zip(self.others, arguments, strict=True)), self.row: place}
            element = Replacement(terms).formula(self.element)
            says = implies(whole, element) if self.is_all else implies(element, whole)
            parts.append(implies(every(at_most(0, place), less(place, self.size)), says))
        return every(*parts)
