"""The counts of the last atlas that `orderproof list rules` shows."""

from __future__ import annotations

import torch

from orderproof.atlas.operator_usage import operator_usage


def test_counts_are_of_architectures_and_name_real_operators() -> None:
    used = operator_usage()
    assert used.architectures > 50
    assert all(0 < count <= used.architectures for count in used.operators.values())
    assert used.of("linear") == used.operators["aten.linear.default"]
    assert used.of("softmax.int") == used.operators["aten.softmax.int"]
    assert used.of("no_such_operator") == 0


def test_pointwise_operators_are_those_that_torch_tags() -> None:
    used = operator_usage()
    tagged = {name for name in used.operators if torch.Tag.pointwise in getattr(operator(name), "tags", ())}
    assert used.pointwise == tagged
    assert "aten.add.Tensor" in tagged


def operator(name: str) -> object:
    """The operator of torch with this full name; None if this version has none."""
    space, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, space), packet, None), overload, None)
