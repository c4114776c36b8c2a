"""The change to a line of a model's own code that makes its attention causal: a diff of that line.

The line is parsed, and only what is understood is changed: the diagonal of a triangular mask, the mask that a line
assigns to a name, or a call of `scaled_dot_product_attention` without a mask. For any other line there is no diff.
"""

from __future__ import annotations

import ast

import numpy as np
from numpy.typing import NDArray

_TRIANGLES = ("tril", "triu", "tril_", "triu_")
_ATTENTION = "scaled_dot_product_attention"
_VALUES_BEFORE_MASK = 3  # query, key, value


def causal_line_change(line: str, visible: NDArray[np.bool_] | None, form: str) -> str:
    """The diff that makes a mask causal; empty if the line is not understood.

    ``visible`` is the mask [query, key], and None for a line that should use one. ``form`` says how the mask is read:
    true is "visible", true is "hidden", or it is "added" to the scores.
    """
    line = line.strip()
    try:
        tree = ast.parse(line)
    except SyntaxError:
        return ""
    if len(tree.body) != 1 or not line.isascii() or "#" in line or line.endswith(";"):
        return ""  # ast counts columns in bytes, and a comment may follow the end of the code
    if visible is None:
        edited = _with_causal_attention(line, tree)
    else:
        shift = _diagonal(visible)
        edited = _with_diagonal(line, tree, shift) if shift is not None else ""
        edited = edited or _with_causal_part(line, tree.body[0], form)
    return f"-{line}\n{edited}" if edited else ""


def _diagonal(visible: NDArray[np.bool_]) -> int | None:
    """The diagonal above the main one up to which a mask is visible; None if it has another form."""
    size = len(visible)
    return next((k for k in range(1, size - 1) if (visible == np.tri(size, k=k, dtype=bool)).all()), None)


def _with_diagonal(line: str, tree: ast.Module, shift: int) -> str:
    """The line with the literal diagonal of its only triangle moved by ``shift``; empty if it has none."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _called_name(n) in _TRIANGLES]
    if len(calls) != 1:
        return ""
    call = calls[0]
    of_torch = isinstance(call.func, ast.Name) or (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("torch", "np", "numpy")
    )
    places = [k.value for k in call.keywords if k.arg == "diagonal"] or list(call.args[int(of_torch) :][:1])
    if len(places) != 1 or not isinstance(places[0], ast.Constant) or type(places[0].value) is not int:
        return ""
    new = places[0].value - shift
    return f"+{line[: places[0].col_offset]}{new}{line[places[0].end_col_offset :]}" if new >= 0 else ""


def _with_causal_part(line: str, statement: ast.stmt, form: str) -> str:
    """The line with its mask cut to the causal part."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name | ast.Attribute):
        return ""
    name = ast.unparse(target)
    if form == "visible":
        text = line[value.col_offset : value.end_col_offset]
        simple = isinstance(value, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
        return f"+{line[: value.col_offset]}{text if simple else f'({text})'}.tril()"
    if form == "hidden":
        return f"+{line}\n+{name} = {name} | torch.ones_like({name}).triu(1)"
    return f"+{line}\n+{name} = {name} + torch.full_like({name}, float('-inf')).triu(1)"


def _with_causal_attention(line: str, tree: ast.Module) -> str:
    """The line with ``is_causal=True`` in its only call of attention; empty if it has a mask or flag already."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _called_name(n) == _ATTENTION]
    if len(calls) != 1 or len(calls[0].args) > _VALUES_BEFORE_MASK:
        return ""
    if any(k.arg in (None, "attn_mask", "is_causal") for k in calls[0].keywords):
        return ""
    end = (calls[0].end_col_offset or 1) - 1
    return f"+{line[:end].rstrip().removesuffix(',')}, is_causal=True{line[end:]}"


def _called_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
