"""The value of a term or a formula of the recheck, for given variables and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from orderproof_recheck.logic.formulas import TRUE, AtMostZero, Every, Holds, IsZero, Not, Some
from orderproof_recheck.logic.terms import Apply, Expression, Floor, If, Product, Term, Variable


def value_of(  # noqa: C901
    expression: Expression, values: Mapping[str, int], functions: Mapping[str, Callable[..., int]]
) -> int:
    """The integer of a term, or the truth of a formula, for given variables and functions."""

    def value(e: Any) -> int:
        match e:
            case Term(fields=(constant, summands)):
                return int(constant) + sum(value(atom) * factor for atom, factor in summands)
            case Variable(fields=(name,)):
                return values[name]
            case Product(fields=(factors,)):
                return prod(map(value, factors))
            case Apply(fields=(name, arguments)) | Holds(fields=(name, arguments)):
                return functions[name](*map(value, arguments))
            case If(fields=(condition, first, second)):
                return value(first if value(condition) else second)
            case Floor(fields=(term, divisor)):
                return value(term) // int(divisor)
            case AtMostZero(fields=(term,)):
                return value(term) <= 0
            case IsZero(fields=(term,)):
                return value(term) == 0
            case Not(fields=(inner,)):
                return not value(inner)
            case Every(fields=(parts,)):
                return all(map(value, parts))
            case Some(fields=(parts,)):
                return any(map(value, parts))
        return e is TRUE

    return int(value(expression))
