"""Find contradictions among linear comparisons of integers.

Equations with a factor of one are solved for that atom. Of the inequalities, atoms are eliminated one by one (Fourier
and Motzkin): from  a x <= s  and  t <= b x  follows  a t <= b s. Every inequality is divided by the greatest common
divisor of its factors and rounded, since atoms are integers. A contradiction that is found is one. Of some systems
without integer solutions none is found; then nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from orderproof_recheck.logic.terms import Atom, Term

MAX_INEQUALITIES = 600
MAX_FACTOR = 1 << 256  # each elimination may double the digits of all factors

Row = tuple[dict[Atom, int], int]  # factors and a constant: their sum is at most zero, or is zero


class _Contradiction(Exception):
    pass


def contradict(at_most_zero: Iterable[Term], zero: Iterable[Term]) -> bool:
    """True if no integers for the atoms make all of the first terms at most zero and all of the second ones zero."""
    try:
        rows = [(dict(t.summands), t.constant) for t in at_most_zero]
        _eliminate(_solved([(dict(t.summands), t.constant) for t in zero], rows))
    except _Contradiction:
        return True
    return False


def _solved(equations: list[Row], rows: list[Row]) -> list[Row]:
    """The inequalities after the equations are used."""
    while equations:
        factors, constant = equations.pop()
        divisor = gcd(*factors.values())
        if divisor == 0 or constant % divisor:
            if constant:
                raise _Contradiction
            continue
        factors, constant = {a: f // divisor for a, f in factors.items()}, constant // divisor
        atom = next((a for a, f in factors.items() if abs(f) == 1), None)
        if atom is None:
            rows += [(factors, constant), ({a: -f for a, f in factors.items()}, -constant)]
            continue
        sign = factors[atom]
        solution = {a: -sign * f for a, f in factors.items() if a is not atom}, -sign * constant
        equations = [_with(row, atom, solution) for row in equations]
        rows = [_with(row, atom, solution) for row in rows]
    return rows


def _with(row: Row, atom: Atom, solution: Row) -> Row:
    factors, constant = row
    if atom not in factors:
        return row
    factors = dict(factors)
    factor = factors.pop(atom)
    for a, f in solution[0].items():
        factors[a] = factors.get(a, 0) + factor * f
    return {a: f for a, f in factors.items() if f}, constant + factor * solution[1]


def _eliminate(rows: list[Row]) -> None:
    """Eliminate every atom. Raises `_Contradiction`; returns if there is none, or too much to do."""
    tight = _tightest(rows)
    while tight:
        above: dict[Atom, int] = {}
        below: dict[Atom, int] = {}
        multiples: set[Atom] = set()
        for key in tight:
            for atom, factor in key:
                side = above if factor > 0 else below
                side[atom] = side.get(atom, 0) + 1
                if abs(factor) > 1:
                    multiples.add(atom)
        atoms = above.keys() | below.keys()
        # Without an atom that has other factors than one, integers are forgotten: 1 <= 4 x <= 3. So it comes last.
        chosen = min(atoms, key=lambda a: (a in multiples, above.get(a, 0) * below.get(a, 0), a.order))
        rest: list[Row] = []
        upper: list[Row] = []
        lower: list[Row] = []
        for key, constant in tight.items():
            factors = dict(key)
            factor = factors.get(chosen, 0)
            (upper if factor > 0 else lower if factor < 0 else rest).append((factors, constant))
        if len(upper) * len(lower) > MAX_INEQUALITIES:
            return
        combined = (_combined(u, v, chosen) for u in upper for v in lower)
        tight = _tightest([*rest, *(row for row in combined if all(abs(f) < MAX_FACTOR for f in row[0].values()))])


def _combined(upper: Row, lower: Row, atom: Atom) -> Row:
    """The sum of multiples of two inequalities in which an atom disappears."""
    p, q = upper[0][atom], -lower[0][atom]
    factors = {a: f * q for a, f in upper[0].items()}
    for a, f in lower[0].items():
        factors[a] = factors.get(a, 0) + f * p
    return {a: f for a, f in factors.items() if f}, upper[1] * q + lower[1] * p


def _tightest(rows: Iterable[Row]) -> dict[tuple[tuple[Atom, int], ...], int]:
    """Of inequalities with the same factors the strongest."""
    tight: dict[tuple[tuple[Atom, int], ...], int] = {}
    for factors, constant in rows:
        if not factors:
            if constant > 0:
                raise _Contradiction
            continue
        divisor = gcd(*factors.values())
        key = tuple(sorted(((a, f // divisor) for a, f in factors.items()), key=lambda pair: pair[0].order))
        rounded = -(-constant // divisor)
        opposite = tuple((a, -f) for a, f in key)
        if opposite in tight and tight[opposite] + rounded > 0:
            raise _Contradiction
        tight[key] = max(tight.get(key, rounded), rounded)
    return tight
