"""Operators whose result is not a function of their arguments: random numbers, and uninitialised memory."""

from __future__ import annotations

import torch
from torch.fx import Node

UNINITIALIZED_OPERATORS = (
    "empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided",
    "resize", "resize_as", "_resize_output",
)  # fmt: skip


def is_nondeterministic(node: Node) -> bool:
    """True if the value of a node is not determined by its arguments."""
    if node.op != "call_function":
        return False
    if is_uninitialised(node):
        return True
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not _is_dropout_disabled(node)


def is_uninitialised(node: Node) -> bool:
    """True if the value of a node is uninitialised memory: any number, infinity or NaN. Without elements it is not."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and 0 in value.shape:
        return False
    parts = str(node.target).split(".")
    return len(parts) > 1 and parts[0] == "aten" and parts[1] in UNINITIALIZED_OPERATORS


def _is_dropout_disabled(node: Node) -> bool:
    """True if a random operator draws nothing (dropout in eval mode, or with probability 0)."""
    name = str(node.target)
    if name.startswith(("aten.dropout", "aten.native_dropout", "aten.feature_dropout", "aten.alpha_dropout")):
        train = node.args[2] if len(node.args) > 2 else node.kwargs.get("train", True)
        p = node.args[1] if len(node.args) > 1 else node.kwargs.get("p", 0.5)
        return train is False or bool(p == 0)
    if name.startswith("aten.scaled_dot_product_attention"):
        return bool((node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)) == 0)
    if name.startswith(("aten.lstm", "aten.gru", "aten.rnn")):
        booleans = [a for a in node.args if isinstance(a, bool)]
        return len(booleans) > 1 and booleans[1] is False
    return False
