"""The change to a line of a model's own code that makes its attention causal: a diff of that line.

The line is parsed, and only what is understood is changed: the diagonal of a triangular mask, the mask that a line
assigns to a name, the mask in a call that applies it to scores, or a call of `scaled_dot_product_attention` without a
mask. For any other line there is no diff.
"""

from __future__ import annotations

import ast

import numpy as np
from numpy.typing import NDArray

_TRIANGLES = ("tril", "triu", "tril_", "triu_")
_ATTENTION = "scaled_dot_product_attention"
_VALUES_BEFORE_MASK = 3  # query, key, value
_FILLS = ("masked_fill", "masked_fill_")
_MODULES = ("torch", "np", "numpy")


def causal_line_change(line: str, visible: NDArray[np.bool_] | None, form: str, *, applied: bool) -> str:
    """The diff that makes a mask causal; empty if the line is not understood.

    ``visible`` is the mask [query, key], and None for a line that should use one. ``form`` says how the mask is read:
    true is "visible", true is "hidden", or it is "added" to the scores. ``applied`` is true for a line that applies the
    mask to scores: what it assigns is then not the mask.
    """
    line = line.strip()
    if (tree := _parsed(line)) is None:
        return ""
    if visible is None:
        edited = _with_causal_attention(line, tree)
    elif not (visible & np.tri(len(visible), k=-1, dtype=bool)).any():  # cut to its causal part, it would show nothing
        edited = _with_other_triangle(line, tree, form)
    else:
        shift = _diagonal(visible)
        edited = _with_diagonal(line, tree, shift) if shift is not None else ""
        if not edited:
            edited = _with_causal_use(line, tree, form) if applied else _with_causal_part(line, tree.body[0], form)
    return f"-{line}\n{edited}" if edited else ""


def cached_line_change(line: str) -> str:
    """The diff that aligns a causal mask to the end of the keys: for a call of attention with a flag, or with nothing.

    Empty for any other line.
    """
    line = line.strip()
    calls = [] if (tree := _parsed(line)) is None else _attention_calls(tree)
    if len(calls) != 1 or not all(isinstance(each, ast.Name) for each in calls[0].args[:2]) or len(calls[0].args) < 2:
        return ""
    if len(calls[0].args) > _VALUES_BEFORE_MASK or any(k.arg in (None, "attn_mask") for k in calls[0].keywords):
        return ""
    query, key = (ast.unparse(each) for each in calls[0].args[:2])
    sizes = f"{query}.shape[-2], {key}.shape[-2]"
    mask = f"attn_mask={query}.new_ones({sizes}).tril({key}.shape[-2] - {query}.shape[-2]).bool()"
    flag = next((k for k in calls[0].keywords if k.arg == "is_causal"), None)
    if flag is not None:
        return f"-{line}\n+{line[: flag.col_offset]}{mask}{line[flag.end_col_offset :]}"
    end = (calls[0].end_col_offset or 1) - 1
    return f"-{line}\n+{line[:end].rstrip().removesuffix(',')}, {mask}{line[end:]}"


def _parsed(line: str) -> ast.Module | None:
    """The only statement of a line; None if it is not understood."""
    try:
        tree = ast.parse(line)
    except SyntaxError:
        return None
    if len(tree.body) != 1 or not line.isascii() or "#" in line or line.endswith(";"):
        return None  # ast counts columns in bytes, and a comment may follow the end of the code
    return tree


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
    places = [k.value for k in call.keywords if k.arg == "diagonal"] or list(call.args[int(_is_function(call)) :][:1])
    if len(places) != 1 or not isinstance(places[0], ast.Constant) or type(places[0].value) is not int:
        return ""
    new = places[0].value - shift
    return f"+{line[: places[0].col_offset]}{new}{line[places[0].end_col_offset :]}" if new >= 0 else ""


def _with_other_triangle(line: str, tree: ast.Module, form: str) -> str:
    """The line with the upper triangle in place of the lower one, or the other way round; empty if it has none."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _called_name(n) in _TRIANGLES]
    if len(calls) != 1:
        return ""
    call, name = calls[0], _called_name(calls[0])
    end = call.func.end_col_offset or 0
    other = name.replace("tril", "tri?").replace("triu", "tril").replace("tri?", "triu")
    places = [k.value for k in call.keywords if k.arg == "diagonal"] or list(call.args[int(_is_function(call)) :][:1])
    if not places:
        return f"+{line[: end - len(name)]}{other}{line[end:]}" if form == "visible" else ""
    try:
        diagonal = ast.literal_eval(places[0])
    except ValueError:
        return ""
    if type(diagonal) is not int or (diagonal == 0) is not (form == "visible"):
        return ""
    first, last = places[0].col_offset, places[0].end_col_offset
    return f"+{line[: end - len(name)]}{other}{line[end:first]}{-diagonal}{line[last:]}"


def _with_causal_part(line: str, statement: ast.stmt, form: str) -> str:
    """The line with its mask cut to the causal part."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name | ast.Attribute):
        return ""
    name = ast.unparse(target)
    if form == "visible":
        return _with_triangle(line, value)
    if form == "hidden":
        return f"+{line}\n+{name} = {name} | torch.ones_like({name}).triu(1)"
    return f"+{line}\n+{name} = {name} + torch.full_like({name}, float('-inf')).triu(1)"


def _with_causal_use(line: str, tree: ast.Module, form: str) -> str:
    """The line with the causal part of the mask that it applies; empty if it applies it in another way."""
    statement = tree.body[0]
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        operator = {"added": ast.Add, "visible": ast.Mult}.get(form)
        if operator is not None and isinstance(statement.value.op, operator):
            return _with_causal_part(line, statement, form)
    masks = [mask for n in ast.walk(tree) if isinstance(n, ast.Call) and (mask := _mask_argument(n)) is not None]
    if len(masks) != 1 or form == "added":
        return ""
    return _with_triangle(line, masks[0]) if form == "visible" else _with_hidden_part(line, masks[0])


def _mask_argument(call: ast.Call) -> ast.expr | None:
    """The mask in a call that fills or chooses scores, or that computes attention."""
    name = _called_name(call)
    if name in _FILLS:
        place: int | None = int(_is_function(call))
    else:
        place = {"where": 0, _ATTENTION: _VALUES_BEFORE_MASK}.get(name)
    if place is None:
        return None
    named = [k.value for k in call.keywords if k.arg in ("mask", "attn_mask", "condition")]
    return next(iter([*named, *call.args[place : place + 1]]), None)


def _with_hidden_part(line: str, mask: ast.expr) -> str:
    """The line with later tokens hidden in a mask whose true values hide."""
    if isinstance(mask, ast.Compare) and isinstance(mask.ops[0], ast.Eq) and len(mask.ops) == 1:
        other = mask.comparators[0]
        none_seen = isinstance(other, ast.Constant) and isinstance(other.value, int) and other.value == 0
        return _with_triangle(line, mask.left) if none_seen else ""
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
        return _with_triangle(line, mask.operand)
    if not isinstance(mask, ast.Name | ast.Attribute | ast.Subscript):
        return ""
    text = line[mask.col_offset : mask.end_col_offset]
    return f"+{line[: mask.col_offset]}{text} | torch.ones_like({text}).triu(1){line[mask.end_col_offset :]}"


def _with_triangle(line: str, value: ast.expr) -> str:
    """The line with the lower triangle of a value in place of that value."""
    text = line[value.col_offset : value.end_col_offset]
    simple = isinstance(value, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
    return f"+{line[: value.col_offset]}{text if simple else f'({text})'}.tril(){line[value.end_col_offset :]}"


def _is_function(call: ast.Call) -> bool:
    """True for `torch.tril(x)` and `tril(x)`, false for `x.tril()`."""
    called = call.func
    return isinstance(called, ast.Name) or (
        isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in _MODULES
    )


def _with_causal_attention(line: str, tree: ast.Module) -> str:
    """The line with ``is_causal=True`` in its only call of attention; empty if it has a mask or flag already."""
    calls = _attention_calls(tree)
    if len(calls) != 1 or len(calls[0].args) > _VALUES_BEFORE_MASK:
        return ""
    if any(k.arg in (None, "attn_mask", "is_causal") for k in calls[0].keywords):
        return ""
    end = (calls[0].end_col_offset or 1) - 1
    return f"+{line[:end].rstrip().removesuffix(',')}, is_causal=True{line[end:]}"


def _attention_calls(tree: ast.Module) -> list[ast.Call]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _called_name(n) == _ATTENTION]


def _called_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
