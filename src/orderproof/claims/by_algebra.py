"""A ground that is an identity, checked with symbols: no number is put in, and nothing is rounded.

A formula says how its operands move and how its result should then move:

    rows     A becomes P A          both     A becomes P A P^T          still     A stays

The formula is worked out on symbols before and after, for each of the n! matrices P, and the difference of the two
sides is brought to a normal form, which must be 0. Sums, products and quotients of symbols are exact; exp(t) is a
symbol for each t. Where the form is not 0, numbers are put in: a difference then refutes the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

from orderproof.claims.bench import Bench
from orderproof.claims.claim import Make, Outcome

Moves = Literal["rows", "both", "still"]
DIGITS = 30  # that numbers put in are worked out to
APART = 1e-20


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A function of matrices of symbols: the name, the shape and the move of each, and the move of the result."""

    text: str  # "P softmax(S) P^T"
    operands: tuple[tuple[str, tuple[int, int], Moves], ...]
    result: Moves
    of: Callable[..., Any]


def exactly(make: Make, bench: Bench) -> Outcome:
    """Whether the two sides of a formula are the same expression, for every permutation."""
    import sympy

    formula: Formula = make()
    operands = [
        sympy.Matrix(*shape, sympy.symbols(f"{name}:{shape[0] * shape[1]}")) for name, shape, _ in formula.operands
    ]
    tokens = next(shape[0] for _, shape, moves in formula.operands if moves != "still")
    before, entries, orders = formula.of(*operands), 0, 0
    for order in permutations(range(tokens)):
        P = sympy.Matrix(tokens, tokens, lambda i, j, order=order: int(order[i] == j))
        moved = [_moved(A, P, moves) for A, (_, _, moves) in zip(operands, formula.operands, strict=True)]
        gap = (formula.of(*moved) - _moved(before, P, formula.result)).applyfunc(_normal)
        if any(entry != 0 for entry in gap):
            return _apart(formula, gap, order)
        entries, orders = entries + len(gap), orders + 1
    told = f"the same expression in all {entries} entries, for all {orders} orders of {tokens} tokens"
    return Outcome(found="proved", method="algebra", evidence=(f"{formula.text}: {told}",))


def _moved(A: Any, P: Any, moves: Moves) -> Any:
    return P * A if moves == "rows" else P * A * P.T if moves == "both" else A


def _normal(entry: Any) -> Any:
    """An expression in which equal sums are written alike, the arguments of exp among them."""
    import sympy

    entry = sympy.sympify(entry)
    entry = entry.replace(sympy.exp, lambda t: sympy.exp(sympy.expand(t)))
    return entry if entry == 0 else sympy.cancel(sympy.together(entry)) if entry.has(sympy.Pow) else sympy.expand(entry)


def _apart(formula: Formula, gap: Any, order: tuple[int, ...]) -> Outcome:
    import sympy

    numbers = {symbol: sympy.Rational(k + 1, 10) for k, symbol in enumerate(sorted(gap.free_symbols, key=str))}
    sizes = [abs(float(entry.subs(numbers).evalf(DIGITS))) for entry in gap]
    place = max(range(len(sizes)), key=sizes.__getitem__)
    text = f"{formula.text}: with the order {list(order)} and 0.1, 0.2, 0.3 ... put in, entry {place} differs by"
    found: Literal["refuted", "undecided"] = "refuted" if sizes[place] > APART else "undecided"
    return Outcome(found=found, method="algebra", evidence=(f"{text} {sizes[place]:.3g}",))
