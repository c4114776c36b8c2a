from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from orderproof import positions
from orderproof.errors import PositionError


def test_arange_counts_from_zero() -> None:
    assert positions.arange(4).tolist() == [0, 1, 2, 3]
    assert positions.arange(0).tolist() == []
    assert positions.arange(3, device="meta").device.type == "meta"


def test_offset_continues_after_the_past() -> None:
    assert positions.offset(5, 3).tolist() == [5, 6, 7]
    assert positions.offset(torch.tensor(5), 3).tolist() == [5, 6, 7]
    assert positions.offset(torch.tensor([5, 0], dtype=torch.uint8), 2).tolist() == [[5, 6], [0, 1]]


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4))
def test_from_mask_counts_real_tokens_and_gives_padding_zero(rows: list[list[bool]]) -> None:
    found = positions.from_mask(torch.tensor(rows))
    for row, got in zip(rows, found.tolist(), strict=True):
        assert [p for p, real in zip(got, row, strict=True) if real] == list(range(sum(row)))
        assert all(p == 0 for p, real in zip(got, row, strict=True) if not real)


def test_from_mask_takes_left_and_right_padding_and_integers() -> None:
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])
    assert positions.from_mask(mask).tolist() == [[0, 0, 0, 1], [0, 1, 2, 0]]
    assert positions.from_mask(mask[0].bool()).tolist() == [0, 0, 0, 1]


@given(st.lists(st.integers(0, 5), min_size=0, max_size=5))
def test_packed_restarts_in_every_document(lengths: list[int]) -> None:
    boundaries = torch.tensor([0, *lengths]).cumsum(0)
    assert positions.packed(boundaries).tolist() == [p for n in lengths for p in range(n)]
    assert positions.document_ids(boundaries).tolist() == [d for d, n in enumerate(lengths) for _ in range(n)]


@given(st.lists(st.integers(0, 4), min_size=0, max_size=6), st.integers(0, 3))
def test_from_documents_is_packed_in_every_row(lengths: list[int], shift: int) -> None:
    boundaries = torch.tensor([0, *lengths]).cumsum(0)
    numbers, expected = positions.document_ids(boundaries), positions.packed(boundaries)
    assert torch.equal(positions.from_document_ids(numbers), expected)
    rows = torch.stack([numbers + shift, numbers.flip(0)]).to(torch.int32)
    found = positions.from_document_ids(rows)
    assert torch.equal(found[0], expected)
    assert torch.equal(found[1], positions.from_document_ids(numbers.flip(0)))
    assert found.dtype == torch.int64


def test_from_documents_counts_padding_on_its_own() -> None:
    numbers = torch.tensor([[0, 0, 1, 1, 1, -1], [5, 3, 3, 5, 5, 5]])
    assert positions.from_document_ids(numbers).tolist() == [[0, 1, 0, 1, 2, 0], [0, 0, 1, 0, 1, 2]]
    with FakeTensorMode():
        assert positions.from_document_ids(torch.empty(2, 3, dtype=torch.int64)).shape == (2, 3)


@given(n=st.integers(0, 9), room=st.integers(0, 9), seed=st.integers(0, 99))
def test_randomized_draws_are_different_sorted_and_repeatable(n: int, room: int, seed: int) -> None:
    largest = max(n - 1 + room, 0)
    found = positions.randomized(n, largest, generator=torch.Generator().manual_seed(seed))
    assert found.dtype == torch.int64
    assert len(found) == n
    assert (found.diff() > 0).all()
    assert ((found >= 0) & (found <= largest)).all()
    assert torch.equal(found, positions.randomized(n, largest, generator=torch.Generator().manual_seed(seed)))
    assert torch.equal(positions.validate(found), found)


def test_every_choice_of_randomized_positions_is_as_likely() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = positions.randomized(2, 3, batch=6000, generator=generator)
    assert drawn.shape == (6000, 2)
    _, counts = torch.unique(drawn, dim=0, return_counts=True)
    assert len(counts) == 6
    assert ((counts - 1000).abs() < 5 * (1000 * 5 / 6) ** 0.5).all()
    assert positions.randomized(2, 3, batch=0).shape == (0, 2)


@given(group=st.integers(1, 5), window=st.integers(1, 9))
def test_self_extend_gives_far_pairs_the_distance_of_the_paper(group: int, window: int) -> None:
    p = positions.offset(torch.tensor([0, 7]), 40)
    q, k = positions.self_extend(p, group=group, window=window)
    for row, start in enumerate((0, 7)):
        for m in range(start, start + 40):
            for n in range(start, m - window + 1):
                wanted = m // group + window - window // group - n // group
                assert int(q[row, m - start] - k[row, n - start]) == wanted
                assert abs(wanted - (window + (m - n - window) / group)) < 2
    if group == 1:
        assert torch.equal(q, p)
        assert torch.equal(k, p)
    assert (k.diff() >= 0).all()
    assert (q - k >= 0).all()


def test_grid_is_in_raster_order_with_the_row_first() -> None:
    assert positions.grid(2, 3).tolist() == [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]


@given(t=st.integers(1, 3), h=st.integers(1, 3), w=st.integers(1, 4), past=st.integers(0, 9))
def test_mrope_counts_time_row_and_column_from_the_past(t: int, h: int, w: int, past: int) -> None:
    expected = [(past + a, past + b, past + c) for a in range(t) for b in range(h) for c in range(w)]
    assert positions.mrope(t, h, w, past=past).T.tolist() == [list(point) for point in expected]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16])
def test_validate_returns_int64_so_that_distances_cannot_wrap(dtype: torch.dtype) -> None:
    checked = positions.validate(torch.arange(3).to(dtype), tokens=3, batch=2, device=torch.device("cpu"))
    assert checked.dtype == torch.int64
    assert (checked[0] - checked[2]).item() == -2


def test_validate_checks_axes() -> None:
    grid = positions.grid(2, 3)
    assert torch.equal(positions.validate(grid, axes=2, batch=4, tokens=6), grid)
    assert positions.validate(grid.unsqueeze(1), axes=2, batch=4).shape == (2, 1, 6)


def test_values_of_fake_tensors_are_not_read() -> None:
    positions.validate(torch.empty(3, dtype=torch.int64, device="meta"))
    with FakeTensorMode():
        positions.validate(torch.empty(3, dtype=torch.int64))
        assert positions.from_mask(torch.empty(2, 3, dtype=torch.int64)).shape == (2, 3)


REJECTED = {
    "n: expected an integer, 0 or more, got -1": lambda: positions.arange(-1),
    "n: expected an integer, 0 or more, got True": lambda: positions.arange(True),
    "n: expected an integer, 0 or more, got 2.0": lambda: positions.arange(2.0),  # type: ignore[arg-type]
    "past: expected an integer, 0 or more, got -2": lambda: positions.offset(-2, 3),
    "past: expected an integer, or an integer tensor of shape [batch], got torch.float32 of shape [2]": (
        lambda: positions.offset(torch.zeros(2), 3)
    ),
    "past: expected integers, 0 or more, got -1": lambda: positions.offset(torch.tensor([2, -1]), 3),
    "mask: expected booleans or integers 0 and 1, got list": lambda: positions.from_mask([[1, 1]]),  # type: ignore[arg-type]
    "cu_seqlens: expected integers of shape [number of documents + 1], got list": lambda: positions.packed([0, 3]),  # type: ignore[arg-type]
    "document_ids: expected integers of shape [token] or [batch, token], got list": (
        lambda: positions.from_document_ids([0, 0])  # type: ignore[arg-type]
    ),
    "positions: expected a tensor of integers, got int; use positions.arange": lambda: positions.validate(5),  # type: ignore[arg-type]
    "past: expected device meta, got cpu; leave out device or move past": (
        lambda: positions.offset(torch.tensor([1]), 3, device="meta")
    ),
    "mask: expected booleans or integers 0 and 1, got torch.float32": lambda: positions.from_mask(torch.zeros(1, 2)),
    "mask: expected shape [token] or [batch, token], got [1, 1, 2]": (
        lambda: positions.from_mask(torch.ones(1, 1, 2, dtype=torch.bool))
    ),
    "mask: expected only 0 and 1, got 0 to 2": lambda: positions.from_mask(torch.tensor([0, 2])),
    "cu_seqlens: expected integers of shape [number of documents + 1], got torch.float32 of shape [2]": (
        lambda: positions.packed(torch.zeros(2))
    ),
    "cu_seqlens: expected boundaries that start at 0 and never fall, got [0, 3, 2]": (
        lambda: positions.packed(torch.tensor([0, 3, 2]))
    ),
    "cu_seqlens: expected boundaries that start at 0 and never fall, got [1, 2, 3, 4, 5, 6, 7, 8] and more": (
        lambda: positions.packed(torch.arange(1, 12))
    ),
    "document_ids: expected integers of shape [token] or [batch, token], got torch.float32 of shape [3]": (
        lambda: positions.from_document_ids(torch.zeros(3))
    ),
    "n: expected at most 4 different positions up to 3, got 5": lambda: positions.randomized(5, 3),
    "largest: expected an integer, 0 or more, got -1": lambda: positions.randomized(0, -1),
    "batch: expected an integer, 0 or more, got -1": lambda: positions.randomized(1, 3, batch=-1),
    "generator: expected device meta, got cpu": (
        lambda: positions.randomized(1, 3, generator=torch.Generator(), device="meta")
    ),
    "group: expected an integer, 1 or more, got 0": lambda: positions.self_extend(torch.arange(3), group=0, window=2),
    "window: expected an integer, 0 or more, got 2.5": (
        lambda: positions.self_extend(torch.arange(3), group=2, window=2.5)  # type: ignore[arg-type]
    ),
    "positions: expected no negative position, got -1": (
        lambda: positions.self_extend(torch.arange(3) - 1, group=2, window=2)
    ),
    "h: expected an integer, 0 or more, got -1": lambda: positions.grid(-1, 2),
    "t: expected an integer, 0 or more, got -1": lambda: positions.mrope(-1, 2, 2),
    "p: expected an integer dtype, got torch.bool; convert with .long()": (
        lambda: positions.validate(torch.ones(2, dtype=torch.bool), name="p")
    ),
    "p: expected an integer dtype, got torch.float32; convert with .long()": (
        lambda: positions.validate(torch.arange(3.0), name="p")
    ),
    "p: expected an integer dtype, got torch.float32; fractions would be lost: multiply by their denominator, "
    "and slow a rotary encoding by LinearScaling": lambda: positions.validate(torch.arange(3.0) / 2, name="p"),
    "p: expected an integer dtype, got torch.float32; convert whole numbers with .long()": (
        lambda: positions.validate(torch.arange(3.0, device="meta"), name="p")
    ),
    "positions: expected shape [token] or [batch, token], got []": lambda: positions.validate(torch.tensor(1)),
    "positions: expected shape [2, token] or [2, batch, token], got [3, 4]": (
        lambda: positions.validate(torch.zeros(3, 4, dtype=torch.int64), axes=2)
    ),
    "positions: expected 5 tokens, shape [token] or [batch, token], got [4]": (
        lambda: positions.validate(torch.arange(4), tokens=5)
    ),
    "positions: expected a batch of 3 (or 1), shape [token] or [batch, token], got [2, 4]": (
        lambda: positions.validate(torch.zeros(2, 4, dtype=torch.int64), batch=3)
    ),
    "positions: expected device meta, got cpu; move with .to('meta')": (
        lambda: positions.validate(torch.arange(4), device=torch.device("meta"))
    ),
    "positions: expected no negative position, got -3": lambda: positions.validate(torch.arange(4) - 3),
}


@pytest.mark.parametrize("message", REJECTED)
def test_errors_name_the_expected_and_the_actual_value(message: str) -> None:
    with pytest.raises(PositionError, match=re.escape(message)) as caught:
        REJECTED[message]()
    assert "\n" not in str(caught.value)
