"""The notation of terms and formulas in a certificate (JSON), and as text.

term     ::=  integer | "variable" | ["+", term, ...] | ["*", integer, term] | ["product", term, term, ...]
|  ["apply", "function", term, ...] | ["if", formula, term, term] | ["floor", term, integer]
formula  ::=  true | false | ["<=", term, term] | ["=", term, term] | ["holds", "function", term, ...]
|  ["not", formula] | ["and", formula, ...] | ["or", formula, ...]
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    AtMostZero,
    Every,
    Formula,
    Holds,
    IsZero,
    Not,
    Some,
    at_most,
    equal,
    every,
    holds,
    if_else,
    opposite,
    some,
)
from orderproof_recheck.logic.terms import (
    Apply,
    Atom,
    Floor,
    If,
    Product,
    Term,
    Variable,
    apply,
    floor_of,
    integer,
    linear,
    variable,
)

MAX_INTEGER = 1 << 64


def require(condition: object, message: str) -> None:
    """Raise `CertificateError` with the message unless the condition holds."""
    if not condition:
        raise CertificateError(message)


def is_integer(data: object) -> bool:
    """True for an integer of at most 64 bits, which a boolean is not."""
    return type(data) is int and abs(data) <= MAX_INTEGER


def read_term(data: Any) -> Term:
    """A term from its notation. Raises `CertificateError`."""
    if is_integer(data):
        return integer(data)
    if isinstance(data, str) and data:
        return variable(data)
    match data:
        case ["+", _, _, *_]:
            terms = [read_term(part) for part in data[1:]]
            return reduce(lambda a, b: a + b, terms)
        case ["*", factor, term] if is_integer(factor):
            return read_term(term) * int(factor)
        case ["product", _, _, *_]:
            return reduce(lambda a, b: a.times(b), [read_term(part) for part in data[1:]])
        case ["apply", str(name), *arguments]:
            return apply(name, *map(read_term, arguments))
        case ["if", condition, first, second]:
            return if_else(read_formula(condition), read_term(first), read_term(second))
        case ["floor", term, divisor] if is_integer(divisor) and divisor > 0:
            return floor_of(read_term(term), divisor)
    raise CertificateError(f"expected a term; got {str(data)[:60]}")


def read_formula(data: Any) -> Formula:
    """A formula from its notation. Raises `CertificateError`."""
    if data is True or data is False:
        return TRUE if data else FALSE
    match data:
        case ["<=", first, second]:
            return at_most(read_term(first), read_term(second))
        case ["=", first, second]:
            return equal(read_term(first), read_term(second))
        case ["holds", str(name), *arguments]:
            return holds(name, *map(read_term, arguments))
        case ["not", formula]:
            return opposite(read_formula(formula))
        case ["and", _, *_]:
            return every(*map(read_formula, data[1:]))
        case ["or", _, *_]:
            return some(*map(read_formula, data[1:]))
    raise CertificateError(f"expected a formula; got {str(data)[:60]}")


def written_term(term: Term) -> Any:
    """The notation of a term."""
    parts: list[Any] = [_written_atom(a) if f == 1 else ["*", f, _written_atom(a)] for a, f in term.summands] + (
        [term.constant] if term.constant or term.is_integer else []
    )
    return parts[0] if len(parts) == 1 else ["+", *parts]


def _written_atom(atom: Atom) -> Any:
    match atom:
        case Variable(fields=(name,)):
            return name
        case Product(fields=(factors,)):
            return ["product", *map(_written_atom, factors)]
        case Apply(fields=(name, arguments)):
            return ["apply", name, *map(written_term, arguments)]
        case If(fields=(condition, first, second)):
            return ["if", written(condition), written_term(first), written_term(second)]
        case Floor(fields=(term, divisor)):
            return ["floor", written_term(term), divisor]
    raise AssertionError(atom)


def written(formula: Formula) -> Any:
    """The notation of a formula."""
    match formula:
        case AtMostZero(fields=(term,)):
            return ["<=", *map(written_term, _sides(term))]
        case IsZero(fields=(term,)):
            return ["=", *map(written_term, _sides(term))]
        case Holds(fields=(name, arguments)):
            return ["holds", name, *map(written_term, arguments)]
        case Not(fields=(inner,)):
            return ["not", written(inner)]
        case Every(fields=(parts,)):
            return ["and", *map(written, parts)]
        case Some(fields=(parts,)):
            return ["or", *map(written, parts)]
    return formula is TRUE


def _sides(term: Term) -> tuple[Term, Term]:
    """The summands with positive and with negative factors, on both sides of a comparison."""
    left = linear(max(term.constant, 0), {a: f for a, f in term.summands if f > 0})
    return left, left - term


def term_text(term: Term) -> str:
    """A term as text."""
    parts = [_atom_text(a) if f == 1 else f"{f} {_atom_text(a)}" for a, f in term.summands]
    if term.constant or not parts:
        parts.append(str(term.constant))
    return " + ".join(parts).replace("+ -1 ", "- ").replace("+ -", "- ")


def _atom_text(atom: Atom) -> str:
    match atom:
        case Product(fields=(factors,)):
            return " * ".join(map(_atom_text, factors))
        case Apply(fields=(name, arguments)):
            return f"{name}({', '.join(map(term_text, arguments))})"
        case If(fields=(condition, first, second)):
            return f"({term_text(first)} if {text(condition)} else {term_text(second)})"
        case Floor(fields=(term, divisor)):
            return f"floor(({term_text(term)}) / {divisor})"
    return str(atom.fields[0])


def text(formula: Formula) -> str:
    """A formula as text."""
    match formula:
        case AtMostZero(fields=(term,)):
            left, right = _sides(term)
            if left.constant == 1 and not left.is_integer:
                return f"{term_text(left - 1)} < {term_text(right)}"
            return f"{term_text(left)} <= {term_text(right)}"
        case IsZero(fields=(term,)):
            return " = ".join(map(term_text, _sides(term)))
        case Holds(fields=(name, arguments)):
            return f"{name}({', '.join(map(term_text, arguments))})"
        case Not(fields=(inner,)):
            return f"not {text(inner)}"
        case Every(fields=(parts,)):
            return " and ".join(f"({text(p)})" if isinstance(p, Some) else text(p) for p in parts)
        case Some(fields=(parts,)):
            return " or ".join(f"({text(p)})" if isinstance(p, Every) else text(p) for p in parts)
    return "always" if formula is TRUE else "never"
