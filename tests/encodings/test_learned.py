from __future__ import annotations

import pytest
import torch

from orderproof import positions
from orderproof.encodings import LearnedAbsolute, ModelSizes
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


def test_each_token_gets_the_row_of_its_position() -> None:
    learned = LearnedAbsolute(10, 6).double()
    x, p = normal(2, 3, 6), torch.tensor([[9, 0, 4], [1, 1, 2]])
    assert torch.equal(learned.embed(x, p), x + learned.weight[p])


def test_a_position_beyond_the_table_is_an_error() -> None:
    learned = LearnedAbsolute(10, 6)
    assert learned.claims.max_position == 9
    learned.embed(normal(1, 3, 6), positions.offset(7, 3))
    with pytest.raises(EncodingError, match="LearnedAbsolute: expected positions up to 9, got 10; use a longer table"):
        learned.embed(normal(1, 3, 6), positions.offset(8, 3))


def test_the_table_learns() -> None:
    learned = LearnedAbsolute(10, 6)
    learned.embed(normal(1, 2, 6, dtype=torch.float32), torch.tensor([3, 5])).sum().backward()
    assert learned.weight.grad is not None
    assert learned.weight.grad.sum(-1).tolist() == [0, 0, 0, 6, 0, 6, 0, 0, 0, 0]


def test_a_model_with_a_table_needs_a_length() -> None:
    with pytest.raises(EncodingError, match="LearnedAbsolute: a table needs a length; pass it"):
        LearnedAbsolute.for_model(ModelSizes(width=8, heads=2, causal=True))


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="LearnedAbsolute: length must be an integer, 1 or more, got 0"):
        LearnedAbsolute(0, 4)
    with pytest.raises(EncodingError, match=r"LearnedAbsolute: width must be an integer, 1 or more, got 2\.5"):
        LearnedAbsolute(4, 2.5)  # type: ignore[arg-type]
    with pytest.raises(
        EncodingError, match=r"LearnedAbsolute: x must be floating \[batch, token, 6\], got torch.int64"
    ):
        LearnedAbsolute(4, 6).embed(torch.zeros(1, 2, 6, dtype=torch.int64), positions.arange(2))
