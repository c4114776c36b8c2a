"""Arguments of operators are read and replaced as torch's `pytree` does."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Graph
from torch.utils import _pytree as pytree

from orderproof.recording.arguments import leaves, map_leaves

X, Y = torch.zeros(2), torch.ones(3)
Pair = namedtuple("Pair", "first second")  # noqa: PYI024 - torch's results are such tuples
VALUES: list[Any] = [
    (X, [1, 2.5, None], {"dim": -1, "dtype": torch.float32}),
    ([X, (Y, True)], {}, "text"),
    {"a": Pair(X, [Y]), "b": OrderedDict(c=X, d=(1, Y))},
    torch.Size([2, 3]),
    Graph().call_function(torch.cat, ([X, Y], 0)).args,
    (),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda value: type(value).__name__)
def test_leaves_are_those_of_pytree(values: Any) -> None:
    assert list(map(id, leaves(values))) == list(map(id, pytree.tree_leaves(values)))


@pytest.mark.parametrize("values", VALUES, ids=lambda value: type(value).__name__)
def test_replaced_leaves_are_those_of_pytree(values: Any) -> None:
    found, expected = (f(Tensor, lambda x: len(x) * 10, values) for f in (map_leaves, pytree.tree_map_only))
    assert found == expected
    assert type(found) is type(expected)


def test_several_kinds_are_replaced() -> None:
    kinds = (torch.Size, torch.device)
    assert map_leaves(kinds, type, [1, (torch.device("cpu"), 2.5)]) == [1, (torch.device, 2.5)]
