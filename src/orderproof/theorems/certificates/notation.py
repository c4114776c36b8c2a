"""Terms, formulas and operators of an open graph in the notation of certificates of theorems.

The notation is that of `orderproof_recheck/logic/notation.py`; docs/reference/certificate.md documents it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import (
    TRUE,
    And,
    Apply,
    AtMostZero,
    Atom,
    Conditional,
    EqualsZero,
    FloorDivision,
    Formula,
    Holds,
    Not,
    Or,
    Product,
    Term,
    Variable,
    as_term,
)
from orderproof.recording.open_recording import OpenGraph
from orderproof.recording.open_sizes import OpaqueNumber


def operation_data(graph: OpenGraph, node: Node, roles: Mapping[Node, str]) -> dict[str, Any]:
    """The operator of a node, its arguments, and the shapes and dtypes of its results."""
    if node.op == "placeholder":
        name = roles.get(node) or graph.state[node.name]
        operator = "input" if node in roles else "parameter" if name in graph.parameters else "buffer"
        args, options = [name], {}
    else:
        operator = "getitem" if getattr(node.target, "__name__", "") == "getitem" else str(node.target)
        args, options = [argument_data(x) for x in node.args], {k: argument_data(v) for k, v in node.kwargs.items()}
    value = node.meta["val"]
    tensors = [x for x in (value if isinstance(value, list | tuple) else [value]) if isinstance(x, torch.Tensor)]
    return {
        "node": node.name,
        "operator": operator,
        "args": args,
        "kwargs": options,
        "shape": [[term_data(size) for size in shape] for shape in graph.shapes[node]],
        "dtype": [str(x.dtype).removeprefix("torch.") for x in tensors],
    }


def argument_data(x: Any) -> Any:
    """An argument of an operator in the notation of certificates."""
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, Term):
        return {"size": term_data(x)}
    if isinstance(x, list | tuple):
        return [argument_data(y) for y in x]
    if isinstance(x, torch.dtype):
        return {"dtype": str(x).removeprefix("torch.")}
    if isinstance(x, float) and not math.isfinite(x):
        return {"float": str(x)}
    if x is None or isinstance(x, bool | int | float | str):
        return x
    return {"other": x.text if isinstance(x, OpaqueNumber) else str(x)}


def term_data(term: Term) -> Any:
    """A term in the notation of certificates."""
    parts = [_atom_data(a) if f == 1 else ["*", f, _atom_data(a)] for a, f in term.summands]
    if term.constant or not parts:
        parts.append(term.constant)
    return parts[0] if len(parts) == 1 else ["+", *parts]


def _atom_data(atom: Atom) -> Any:
    match atom:
        case Variable():
            return atom.name
        case Product(parts=(factors,)):
            return ["product", *map(_atom_data, factors)]
        case Apply(parts=(name, arguments)):
            return ["apply", name, *map(term_data, arguments)]
        case Conditional(parts=(condition, first, second)):
            return ["if", formula_data(condition), term_data(first), term_data(second)]
        case FloorDivision(parts=(term, divisor)):
            return ["floor", term_data(term), divisor]
    raise AssertionError(atom)


def formula_data(formula: Formula) -> Any:
    """A formula in the notation of certificates."""
    match formula:
        case AtMostZero(parts=(term,)):
            return ["<=", *_sides(term)]
        case EqualsZero(parts=(term,)):
            return ["=", *_sides(term)]
        case Holds(parts=(name, arguments)):
            return ["holds", name, *map(term_data, arguments)]
        case Not(parts=(inner,)):
            return ["not", formula_data(inner)]
        case And(parts=(operands,)):
            return ["and", *map(formula_data, operands)]
        case Or(parts=(operands,)):
            return ["or", *map(formula_data, operands)]
    return formula is TRUE


def _sides(term: Term) -> tuple[Any, Any]:
    """A comparison with zero with the negative summands on the right."""
    left = right = as_term(0)
    for atom, factor in term.summands:
        own = as_term(atom) * factor
        left, right = (left + own, right) if factor > 0 else (left, right - own)
    constant = term.constant
    left, right = (left + constant, right) if constant > 0 else (left, right + -constant)
    return term_data(left), term_data(right)
