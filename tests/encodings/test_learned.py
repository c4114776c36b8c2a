from __future__ import annotations

import pytest
import torch

from orderproof import positions
from orderproof.encodings import Learned, Sizes
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


def test_each_token_gets_the_row_of_its_position() -> None:
    learned = Learned(10, 6).double()
    x, p = normal(2, 3, 6), torch.tensor([[9, 0, 4], [1, 1, 2]])
    assert torch.equal(learned.embed(x, p), x + learned.weight[p])


def test_a_position_past_the_table_is_an_error_and_never_the_last_row() -> None:
    learned = Learned(10, 6)
    assert learned.claims.max_position == 9
    learned.embed(normal(1, 3, 6), positions.offset(7, 3))
    with pytest.raises(EncodingError, match="Learned: position 10 is past the table, which ends at 9; make it longer"):
        learned.embed(normal(1, 3, 6), positions.offset(8, 3))


def test_the_table_learns() -> None:
    learned = Learned(10, 6)
    learned.embed(normal(1, 2, 6, dtype=torch.float32), torch.tensor([3, 5])).sum().backward()
    assert learned.weight.grad is not None
    assert learned.weight.grad.sum(-1).tolist() == [0, 0, 0, 6, 0, 6, 0, 0, 0, 0]


def test_a_model_must_state_the_length_of_the_table() -> None:
    with pytest.raises(EncodingError, match="Learned: a table needs a length; state it"):
        Learned.for_model(Sizes(width=8, heads=2, causal=True))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(EncodingError, match="Learned: length must be an integer, 1 or more, got 0"):
        Learned(0, 4)
    with pytest.raises(EncodingError, match=r"Learned: width must be an integer, 1 or more, got 2\.5"):
        Learned(4, 2.5)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match=r"Learned: x must be floating \[batch, token, 6\], got torch.int64"):
        Learned(4, 6).embed(torch.zeros(1, 2, 6, dtype=torch.int64), positions.arange(2))
