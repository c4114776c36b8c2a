from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orderproof import positions
from orderproof.encodings.visibility_mask import causal_mask, visibility_mask
from orderproof.errors import UsageError


def test_rising_positions_give_the_lower_triangle() -> None:
    assert torch.equal(causal_mask(positions.arange(5), positions.arange(5))[0], torch.ones(5, 5).tril().bool())
    gaps = torch.tensor([2, 3, 50, 51, 900])
    assert torch.equal(causal_mask(gaps, gaps)[0], torch.ones(5, 5).tril().bool())


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_of_two_tokens_exactly_one_is_after_the_other(places: list[int]) -> None:
    p = torch.tensor(places)
    seen = causal_mask(p, p)[0]
    assert seen.diagonal().all()
    assert torch.equal(seen ^ seen.T, ~torch.eye(len(places), dtype=torch.bool))


def test_equal_positions_never_show_what_follows() -> None:
    zeros = torch.zeros(4, dtype=torch.int64)
    assert torch.equal(causal_mask(zeros, zeros)[0], torch.ones(4, 4).tril().bool())


def test_new_queries_see_all_earlier_keys_and_themselves() -> None:
    keys = positions.arange(6)
    assert torch.equal(causal_mask(keys[4:], keys), causal_mask(keys, keys)[:, 4:])


def test_masks_narrow_each_other() -> None:
    p, real = positions.arange(3), torch.tensor([[False, True, True]])
    diagonal = torch.eye(3, dtype=torch.bool)
    assert visibility_mask(p, p, causal=False) is None
    assert torch.equal(visibility_mask(p, p, causal=False, padding_mask=real), real[:, None, None])
    both = visibility_mask(p, p, causal=True, padding_mask=real, mask=diagonal)
    assert torch.equal(both, (diagonal & real[:, None])[None])
    for shape in ((3, 3), (1, 3, 3), (1, 1, 3, 3)):
        assert torch.equal(visibility_mask(p, p, causal=True, mask=diagonal.reshape(shape)), diagonal[None, None])


def test_more_queries_than_keys_have_no_causal_order() -> None:
    with pytest.raises(
        UsageError, match="causal attention: expected at least as many keys as queries, got 2 keys and 3 queries"
    ):
        causal_mask(positions.arange(3), positions.arange(2))
