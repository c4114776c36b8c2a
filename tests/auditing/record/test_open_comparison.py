"""The eager calls with which recordings are compared."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof.auditing.record.length_ranges import Piece
from orderproof.auditing.record.open_comparison import _compare_piece


class _Calls:
    """Notes the calls, none of which differs from its recording."""

    def __init__(self) -> None:
        self.module, self.taken, self.made = nn.Identity(), set[int](), list[tuple[int, int]]()

    def difference(self, _piece: Piece, inputs: tuple[Tensor, ...], tokens: int) -> str:
        self.made.append((tokens, int(inputs[0])))
        return ""


def _two_examples(_tokens: int, _more: int) -> Iterator[tuple[Tensor, ...]]:
    yield from ((torch.tensor(0),), (torch.tensor(1),))


@pytest.mark.parametrize(("branches", "long_calls"), [(1, [1]), (2, [0, 1])])
def test_a_long_call_is_compared_once_for_each_branch(branches: int, long_calls: list[int]) -> None:
    calls = _Calls()
    graphs: Any = [SimpleNamespace(conditions=(), is_cut_off=True) for _ in range(branches)]
    _compare_piece(calls, Piece(tuple(graphs), 2, None, (), ""), _two_examples, lambda _: True, None)  # type: ignore[arg-type]
    longest = max(tokens for tokens, _ in calls.made)
    assert longest > 60
    assert [example for tokens, example in calls.made if tokens == longest] == long_calls
    assert [example for tokens, example in calls.made if tokens == 5] == [0, 1]
