from __future__ import annotations

import re

import pytest
import torch

from orderproof import positions
from orderproof.blocks import KeyValueCache
from orderproof.errors import PositionError, UsageError
from tests.encodings.examples import normal


def filled(*, padded: bool = False) -> tuple[KeyValueCache, torch.Tensor, torch.Tensor]:
    cache = KeyValueCache(2, 3, 6, 4, dtype=torch.float64)
    k, v = normal(2, 3, 4, 4, seed=1), normal(2, 3, 4, 4, seed=2)
    real = torch.tensor([[False, True, True, True], [True] * 4]) if padded else None
    cache.append(k, v, positions.arange(4), real)
    return cache, k, v


def test_it_returns_and_counts_the_appended_tokens() -> None:
    cache, k, v = filled()
    held = cache.append(k[:, :, :1], v[:, :, :1], torch.tensor([[4], [9]]))
    assert torch.equal(held.keys, torch.cat([k, k[:, :, :1]], dim=2))
    assert torch.equal(held.values, torch.cat([v, v[:, :, :1]], dim=2))
    assert held.positions.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 9]]
    assert held.padding_mask is None
    assert cache.num_real_tokens == 5


def test_memory_is_allocated_once() -> None:
    cache, k, v = filled()
    place = cache.keys.data_ptr()
    held = cache.append(k[:, :, :2], v[:, :, :2], positions.offset(4, 2))
    assert held.keys.data_ptr() == place == cache.keys.data_ptr()


def test_it_stores_the_padding_mask() -> None:
    cache, k, v = filled(padded=True)
    held = cache.append(k[:, :, :1], v[:, :, :1], positions.offset(4, 1))
    assert held.padding_mask is not None
    assert held.padding_mask.tolist() == [[False, True, True, True, True], [True] * 5]
    assert cache.num_real_tokens.tolist() == [4, 5]


def test_cropping_discards_the_end_and_its_padding() -> None:
    cache, k, v = filled(padded=True)
    cache.crop(1)
    assert cache.contents().keys.shape[2] == 1
    held = cache.append(k[:, :, :2], v[:, :, :2], positions.offset(1, 2))
    assert torch.equal(held.keys[:, :, 1:], k[:, :, :2])
    assert held.padding_mask is not None
    assert held.padding_mask.tolist() == [[False, True, True], [True] * 3]


def test_reordering_moves_rows_as_a_whole() -> None:
    cache, k, v = filled(padded=True)
    cache.reorder(torch.tensor([1, 1]))
    held = cache.contents()
    assert torch.equal(held.keys, k[[1, 1]])
    assert torch.equal(held.values, v[[1, 1]])
    assert cache.num_real_tokens.tolist() == [4, 4]


def test_positions_may_have_axes() -> None:
    cache = KeyValueCache(2, 1, 6, 4, axes=2)
    held = cache.append(torch.ones(2, 1, 6, 4), torch.ones(2, 1, 6, 4), positions.grid(2, 3))
    assert held.positions[:, 1].tolist() == positions.grid(2, 3).tolist()


def test_tokens_that_do_not_fit_are_rejected_and_leave_the_cache_unchanged() -> None:
    cache, k, v = filled()
    p = positions.offset(4, 1)
    one_k, one_v = k[:, :, :1], v[:, :, :1]
    refusals = [
        (UsageError, "cache: 4 of 6 tokens are in use, 4 more do not fit", (k, v, positions.arange(4))),
        (UsageError, "cache: expected keys torch.float64 [2, 3, 1, 4], got torch.float32", (one_k.float(), one_v, p)),
        (
            UsageError,
            "cache: expected tensors without gradient; decode under torch.no_grad()",
            (one_k.clone().requires_grad_(), one_v, p),
        ),
        (
            UsageError,
            "cache: expected tensors without gradient; decode under torch.no_grad()",
            (one_k, one_v, p, None, torch.ones(2, 3, 1, 1, requires_grad=True)),
        ),
        (PositionError, "positions: expected an integer dtype, got torch.float32", (one_k, one_v, torch.ones(1))),
        (UsageError, "padding_mask: expected booleans [2, 1]", (one_k, one_v, p, torch.ones(1, 1).bool())),
    ]
    for error, message, arguments in refusals:
        with pytest.raises(error, match=re.escape(message)):
            cache.append(*arguments)
    assert cache.length == 4
    assert not cache.has_padding
    with pytest.raises(UsageError, match="cache: expected a length from 0 to 4, the tokens in use, got 5"):
        cache.crop(5)
    with pytest.raises(UsageError, match=r"cache: expected 2 row indices, got shape \[3\]"):
        cache.reorder(torch.arange(3))
