"""The contract of every registered encoding: positions act independently, and invalid ones are rejected."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orderproof import encodings, positions
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import (
    WIDTH,
    apply,
    build,
    call,
    every_encoding,
    operands,
    placed,
    tolerance,
)


@every_encoding
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_each_position_acts_independently(name: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(st.integers(0, 63), min_size=5, max_size=5), min_size=2, max_size=2))
    dtype = data.draw(st.sampled_from([torch.int64, torch.int32, torch.int16, torch.uint8]))
    encoding = build(name)
    p = torch.tensor(rows, dtype=dtype)
    both = apply(encoding, p)
    if encoding.claims.site == "none":
        assert torch.equal(both, torch.zeros(()))
        return
    for row in (0, 1):
        alone = apply(encoding, p[row])
        batch = 1 if both.dim() == 5 else 0
        mine, own = both.select(batch, row), alone.select(batch, min(row, alone.shape[batch] - 1))
        if (
            encoding.claims.content_dependent
        ):  # products of content, which torch may sum in another order for another batch
            allowed = tolerance(torch.float64, terms=WIDTH, scale=float(own.detach().abs().max()))
            assert (mine - own).abs().max() <= allowed
        else:
            assert torch.equal(mine, own)


@every_encoding
def test_positions_of_one_row_are_those_of_every_row(name: str) -> None:
    encoding, p = build(name), positions.offset(17, 5)
    once = apply(encoding, p)
    for rows in (p.unsqueeze(0), p.expand(2, 5)):
        found, own = torch.broadcast_tensors(apply(encoding, rows), once)
        if (
            encoding.claims.content_dependent
        ):  # products of content, which torch may sum in another order for another batch
            assert (found - own).abs().max() <= tolerance(torch.float64, terms=WIDTH, scale=float(own.detach().max()))
        else:
            assert torch.equal(found, own)


@every_encoding
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (torch.arange(5.0), "positions: expected an integer dtype, got torch.float32"),
        (torch.arange(5) - 1, "positions: expected no negative position, got -1"),
        (torch.zeros(2, 2, 2, 5, dtype=torch.int64), "positions: expected shape"),
    ],
    ids=["floating", "negative", "four dimensions"],
)
def test_bad_positions_are_rejected_in_one_line(name: str, bad: torch.Tensor, message: str) -> None:
    encoding = build(name)
    if encoding.claims.site == "none":
        with pytest.raises(PositionError, match=message):
            positions.validate(bad)
        return
    with pytest.raises(PositionError, match=message) as caught:
        apply(encoding, bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in encodings.names() if build(name).claims.max_position is not None])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_positions_above_the_claimed_maximum_are_rejected(name: str, compiled: bool) -> None:
    torch.compiler.reset()
    encoding = build(name)
    given, last = operands(encoding, 1, dtype=torch.float32), encoding.claims.max_position
    run = torch.compile(call, backend="eager", fullgraph=True) if compiled else call
    at_the_end, past = (placed(encoding, torch.tensor([p]), "text") for p in (last, last + 1))
    assert run(encoding, given, at_the_end).isfinite().all()
    with pytest.raises(RuntimeError if compiled else EncodingError, match=f"^{type(encoding).__name__}: "):
        run(encoding, given, past)
