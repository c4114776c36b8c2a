"""Symbolic checks of identities, exact and without numbers.

A formula declares how a permutation matrix P acts on its operands, and how it must act on the result:

    rows     A becomes P A          both     A becomes P A P^T          still     A is unchanged

The formula is evaluated on symbols before and after the permutation, for each of the n! matrices P, and the difference
of the two sides is reduced to a normal form, which must be 0. Sums, products and quotients of symbols are exact; exp(t)
is a symbol for each t. If the form is not 0, numbers are substituted: a nonzero value refutes the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.claims.claim import CheckOutcome

PermutationAction = Literal["rows", "both", "still"]
EVALUATION_DIGITS = 30
REFUTATION_TOLERANCE = 1e-20


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A function of symbolic matrices, with the name, the shape and the action on each operand."""

    text: str  # "P softmax(S) P^T"
    operands: tuple[tuple[str, tuple[int, int], PermutationAction], ...]
    result_action: PermutationAction
    function: Callable[..., Any]


def check_identity(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that the two sides of a formula are the same expression, for every permutation."""
    import sympy

    formula: Formula = make_subject()
    operands = [
        sympy.Matrix(*shape, sympy.symbols(f"{name}:{shape[0] * shape[1]}")) for name, shape, _ in formula.operands
    ]
    tokens = next(shape[0] for _, shape, action in formula.operands if action != "still")
    original, entries, count = formula.function(*operands), 0, 0
    for order in permutations(range(tokens)):
        P = sympy.Matrix(tokens, tokens, lambda i, j, order=order: int(order[i] == j))
        permuted = [_permute(A, P, action) for A, (_, _, action) in zip(operands, formula.operands, strict=True)]
        difference = formula.function(*permuted) - _permute(original, P, formula.result_action)
        difference = difference.applyfunc(_normal_form)
        if any(entry != 0 for entry in difference):
            return _refutation(formula, difference, order)
        entries, count = entries + len(difference), count + 1
    result = f"the same expression in all {entries} entries, for all {count} permutations of {tokens} tokens"
    return CheckOutcome(verdict="proved", method="algebra", evidence=(f"{formula.text}: {result}",))


def _permute(A: Any, P: Any, action: PermutationAction) -> Any:
    return P * A if action == "rows" else P * A * P.T if action == "both" else A


def _normal_form(entry: Any) -> Any:
    """The expression expanded, with the arguments of exp expanded too."""
    import sympy

    entry = sympy.sympify(entry)
    entry = entry.replace(sympy.exp, lambda t: sympy.exp(sympy.expand(t)))
    return entry if entry == 0 else sympy.cancel(sympy.together(entry)) if entry.has(sympy.Pow) else sympy.expand(entry)


def _refutation(formula: Formula, difference: Any, order: tuple[int, ...]) -> CheckOutcome:
    import sympy

    numbers = {symbol: sympy.Rational(k + 1, 10) for k, symbol in enumerate(sorted(difference.free_symbols, key=str))}
    sizes = [abs(float(entry.subs(numbers).evalf(EVALUATION_DIGITS))) for entry in difference]
    index = max(range(len(sizes)), key=sizes.__getitem__)
    text = f"{formula.text}: for the order {list(order)} and the values 0.1, 0.2, 0.3 ..., entry {index} differs by"
    verdict: Literal["refuted", "undecided"] = "refuted" if sizes[index] > REFUTATION_TOLERANCE else "undecided"
    return CheckOutcome(verdict=verdict, method="algebra", evidence=(f"{text} {sizes[index]:.3g}",))
