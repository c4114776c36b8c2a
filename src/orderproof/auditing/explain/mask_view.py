"""The mask that a leak passed: which keys each query sees, and the line of the model's own code that computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.auditing.explain.entries import Frame, base_name, frame_of, is_reshape
from orderproof.auditing.explain.source_name import is_own_file
from orderproof.auditing.record.context import AuditContext
from orderproof.diagnosis.domain.constants import Constants
from orderproof.diagnosis.rule import RelationBreak
from orderproof.laws import ProvedLaw
from orderproof.records.audit import Picture

HIDING_SCORE = -1e3  # a number added to a score below this hides a key
MAX_PICTURE_SIDE = 32  # [tokens]
MAX_PICTURE_WIDTH = 48  # [features]
MaskForm = Literal["visible", "hidden", "added"]  # what a true or a large value of a mask means
_LAYOUT_OPERATORS = {  # their result means what their input means
    "alias", "clone", "contiguous", "detach", "detach_", "expand", "lift_fresh_copy", "reshape", "select", "slice",
    "squeeze", "to", "_to_copy", "unsqueeze", "view", "_unsafe_view",
}  # fmt: skip


_CONJUNCTIONS = ("__and__", "bitwise_and", "logical_and")  # of masks: a key is visible where all are true
_DISJUNCTIONS = ("__or__", "bitwise_or", "logical_or")  # of masks: a key is hidden where one is true


@dataclass(frozen=True)
class MaskView:
    """A mask at the place where it is applied, and where the model's own code computes it.

    Combined with others (a mask of pads that depends on the tokens), it is an upper bound of what is visible.
    """

    visible: NDArray[np.bool_]  # [query, key] of the first head in the first row
    is_shared: bool  # all heads and rows have this mask
    form: MaskForm
    place: Frame  # the line that computes it
    applied: bool  # that line applies it too


def view_mask(leak: Node, mask: Node | None, constants: Constants, tokens: int) -> MaskView | None:
    """Return the mask of a leak as pairs of tokens; None without a mask whose meaning is known."""
    if mask is None:
        return None
    value = constants.array(mask)
    forms = ((user, _form(user, mask, constants)) for user in mask.users)
    user, form = next(((user, form) for user, form in forms if form is not None), (leak, None))
    if value is None or form is None or value.ndim < 2 or value.shape[-2:] != (tokens, tokens):
        return None
    grids = value.reshape(-1, tokens, tokens)
    if grids.dtype != np.bool_ and form == "hidden":
        return None
    visible = grids > HIDING_SCORE if form == "added" else ~grids if form == "hidden" else grids.astype(bool)
    is_shared = bool((visible == visible[0]).all())
    use = frame_of(user)
    place = _line_of(mask, use)
    return MaskView(visible[0], is_shared, form, place, applied=place.source == use.source)


def leaking_mask(leak: RelationBreak, constants: Constants, law: ProvedLaw, context: AuditContext) -> MaskView | None:
    """The mask of a leak, if it shows a pair of tokens that the law forbids: another mask is not the cause.

    The pairs are those of the first row. A mask with other rows may show them there, unless a reshape leaks.
    """
    view = view_mask(leak.node, leak.operand, constants, context.token_count)
    forbidden = law.forbidden_pairs(context.token_count, context.batch_size)
    if view is None or forbidden is None or (forbidden & view.visible).any():
        return view
    return None if view.is_shared or is_reshape(leak.node) else view


def mask_picture(view: MaskView | None, law: ProvedLaw, rows: int) -> Picture | None:
    """The mask as rows of text, with the pairs that the law forbids marked; None if none of them is visible."""
    if view is None:
        return None
    tokens = len(view.visible)
    forbidden = law.forbidden_pairs(tokens, rows)
    if forbidden is None or not (wrong := forbidden & view.visible).any() or tokens > MAX_PICTURE_SIDE:
        return None
    cells = np.where(wrong, "!", np.where(view.visible, "1", "0"))
    return Picture(kind="mask", rows=tuple("".join(row) for row in cells))


def table_picture(table: Node, constants: Constants, dims: tuple[int, ...], tokens: int) -> Picture | None:
    """A table of positions as rows of digits, a token each; None without a value or without one row for each token."""
    value = constants.preview(table)
    if value is None or len(dims) != 1 or value.shape[dims[0]] != tokens or not np.isfinite(value).all():
        return None
    rows = np.moveaxis(value, dims[0], 0).reshape(tokens, -1)[:MAX_PICTURE_SIDE, :MAX_PICTURE_WIDTH].astype(float)
    least, spread = rows.min(), np.ptp(rows)
    if spread == 0:
        return None
    levels = np.rint((rows - least) / spread * 9).astype(int)
    return Picture(kind="table", rows=tuple("".join(map(str, row)) for row in levels))


def change_of_line(law: ProvedLaw, leak: Node, view: MaskView | None) -> tuple[Frame, str]:
    """The line of the model's own code to change and its diff; empty where the code is a library's.

    It is the line that computes the mask, or that of the leak itself.
    """
    place = view.place if view is not None and view.place.source else frame_of(leak)
    if not is_own_file(place.file):
        return Frame(), ""
    if view is None:
        return place, law.line_change(place.text, None, "", applied=True)
    return place, law.line_change(place.text, view.visible, view.form, applied=view.applied)


def _form(user: Node, mask: Node, constants: Constants) -> MaskForm | None:
    """Return how an operator reads a mask; None if it is not known."""
    name = base_name(user)
    arguments = list(user.args)
    if name == "scaled_dot_product_attention":
        given = arguments[3] if len(arguments) > 3 else user.kwargs.get("attn_mask")
        return ("visible" if _is_boolean(mask) else "added") if given is mask else None
    if name in _CONJUNCTIONS and _is_boolean(mask):
        return _form_of_result(user, "visible", constants)
    if name in _DISJUNCTIONS and _is_boolean(mask):
        return _form_of_result(user, "hidden", constants)
    if name in ("masked_fill", "masked_fill_") and arguments[1] is mask:
        return "hidden" if _hides(arguments[2], constants) else None
    if name == "where" and arguments[0] is mask:
        if _hides(arguments[2], constants):
            return "visible"
        return "hidden" if _hides(arguments[1], constants) else None
    if name in ("add", "add_"):
        return "added"
    is_factor = name in ("mul", "mul_") and mask in constants  # a combination with a mask of tokens is no constant
    return "visible" if is_factor and constants.is_multiplicative_mask(mask) else None


def _form_of_result(combined: Node, form: MaskForm, constants: Constants) -> MaskForm | None:
    """Return the form if an operator reads the combination of a mask with others so: what the mask hides is hidden."""
    for user in combined.users:
        name = base_name(user)
        found = (
            _form_of_result(user, form, constants) if name in _LAYOUT_OPERATORS else _form(user, combined, constants)
        )
        if found == form:
            return form
    return None


def _is_boolean(mask: Node) -> bool:
    return getattr(mask.meta.get("val"), "dtype", None) is torch.bool


def _hides(argument: Any, constants: Constants) -> bool:
    value = constants.array(argument) if isinstance(argument, Node) and argument in constants else argument
    return value is not None and not isinstance(value, Node) and bool(np.all(np.asarray(value) < HIDING_SCORE))


def _line_of(mask: Node, use: Frame) -> Frame:
    """The line that computes a mask, and that of its use if only that line does.

    A line of the mask before its use must have the mask's own meaning: only operators of layout are between them.
    """
    node = mask
    while (frame := frame_of(node)).source in ("", use.source):
        name = base_name(node)
        before = node.all_input_nodes[0] if node.all_input_nodes and name in _LAYOUT_OPERATORS else None
        if before is None or getattr(before.meta.get("val"), "ndim", 2) < 2:
            return use
        node = before
    return frame
