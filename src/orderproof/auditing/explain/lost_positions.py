"""The line at which numbers that differ from token to token become the same for all: positions that are lost.

A table times a mask that is zero at real tokens, or one row of a table instead of one for each token.
"""

from __future__ import annotations

from torch import Tensor
from torch.fx import Node

from orderproof.auditing.explain.entries import Frame, frame_of
from orderproof.auditing.record.law_walk import LawWalk
from orderproof.diagnosis.domain.constants import Constants
from orderproof.diagnosis.domain.fact import compress
from orderproof.recording.captured_graph import ancestors


def line_of_lost_positions(walk: LawWalk, output: str, tokens: int) -> Frame:
    """The last line of the model's code where positions are lost; empty if there is none."""
    constants, needed = walk.constants, ancestors([walk.captured.outputs[output]])
    used = {n for node in needed if node not in constants for n in node.all_input_nodes if n in constants}
    lost = [n for n in walk.captured.graph.nodes if n in ancestors(list(used)) and _loses(n, constants, tokens)]
    return frame_of(lost[-1]) if lost else Frame()


def _loses(node: Node, constants: Constants, tokens: int) -> bool:
    """True if an operand has other numbers for other tokens, and the result of floating point has not."""
    value = node.meta["val"]  # a list, of an operator that splits a table
    if node not in constants or node.op != "call_function":
        return False
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return False
    return _varies(node, constants, tokens) is False and any(
        _varies(operand, constants, tokens) for operand in node.all_input_nodes if operand in constants
    )


def _varies(node: Node, constants: Constants, tokens: int) -> bool | None:
    """True if a vector, one for each token or more, is not the same for all; None if its values are not known."""
    if not isinstance(node.meta["val"], Tensor):
        return None
    shape = tuple(node.meta["val"].shape)
    array = None if constants.is_opaque(node) or len(shape) < 2 else constants.array(node)
    if array is None:
        return False if len(shape) == 1 else None
    return any(size > 1 and full >= tokens for size, full in zip(compress(array).shape[:-1], shape[:-1], strict=True))
