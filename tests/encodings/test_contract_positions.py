"""The contract of every registered encoding: positions act independently at any size, and bad ones are rejected."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from orderproof import encodings, positions
from orderproof.encodings import ALiBi, AttentionContent, ForgetGate, PositionalEncoding, Rotary, Sinusoidal
from orderproof.encodings.visibility_mask import causal_mask
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


# Far positions are 2 or 3 modulo each power of two up to 2**20 and of ten up to 10**6, and two are float32's first
# equal integers. Near ones find every other period up to their number.
NEAR, FAR = torch.arange(4096), torch.tensor([10**6 + 3, 2**20 + 2, 2**20 + 3, 2**24, 2**24 + 1])
SHIFTS = [*(2**k - 3 for k in range(3, 25)), *(10**k - 3 for k in range(1, 7))]
SAME = 1e-9  # other effects of registered encodings differ by 1e-5 and more


def on_axis(encoding: PositionalEncoding, axis: int, p: Tensor) -> Tensor:
    """Positions that are ``p`` on one axis, and 0 on the others."""
    axes = encoding.claims.ndim
    return p if axes == 1 else torch.stack([p if each == axis else torch.zeros_like(p) for each in range(axes)])


@torch.no_grad()
def effects(encoding: PositionalEncoding, p: Tensor) -> Tensor:
    """The effects [position, feature] of positions on one token; of a bias, on the score of that query and key 0."""
    given, tokens = operands(encoding, 1), p.shape[-1]
    if encoding.claims.site == "embed":
        return encoding.embed(given[0][:1].expand(1, tokens, -1), p)[0]
    if encoding.claims.site == "rotate":
        q, k = (x[:1].expand(1, -1, tokens, -1) for x in given)
        return torch.cat(encoding.rotate(q, k, p), dim=-1)[0].movedim(1, 0).flatten(1)
    content = None
    if encoding.claims.content_dependent:
        _, q, k, x = (each[:1] for each in (given[0].view(1), *given[1:]))
        content = AttentionContent(
            q=q.expand(1, -1, tokens, -1),
            k=k,
            scale=encoding.default_scale(q.shape[-1]),
            visible=torch.ones(1, 1, tokens, 1, dtype=torch.bool),
            token_state=encoding.token_state(x),
        )
    return encoding.bias(p, torch.zeros_like(p[..., :1]), content=content, dtype=torch.float64)[0, ..., 0].mT


def confused_positions(encoding: PositionalEncoding) -> list[tuple[int, int]]:
    """Pairs of a far position and another one with the same effect.

    A relative bias may be constant from some distance on (clipped distances, buckets, the order alone): equal effects
    count only if a position between the two has another one.
    """
    found = []
    for axis in range(encoding.claims.ndim):
        try:
            far = effects(encoding, on_axis(encoding, axis, FAR))
        except EncodingError as error:
            if encoding.claims.site == "bias" and str(error).startswith(f"{type(encoding).__name__}: "):
                continue  # a distance beyond the window of an image, which is no claim about positions
            raise
        near = effects(encoding, on_axis(encoding, axis, NEAR))
        same = torch.cdist(far, torch.cat([near, far]), p=torch.inf) < SAME
        if encoding.claims.site == "bias" and encoding.claims.relative:
            # A run of equal effects that reaches the end of the near positions is a constant.
            constant = same[:, : len(NEAR)].flip(-1).cumprod(-1).flip(-1).bool()
            same = same[:, : len(NEAR)] & ~constant
        else:
            same[:, len(NEAR) :] &= ~torch.eye(len(FAR), dtype=torch.bool)
        where = torch.cat([NEAR, FAR])
        found += [(int(FAR[row]), int(where[column])) for row, column in same.nonzero().tolist()]
    return found


@torch.no_grad()
def scores(encoding: PositionalEncoding, p: Tensor) -> Tensor:
    """The scores [..., query, key] of six tokens, or their bias, where a query may attend."""
    found = call(encoding, operands(encoding, p.shape[-1]), p)
    if encoding.claims.site == "rotate":
        found = found[0] @ found[1].mT
    first = p if p.dim() == 1 else p[0]
    return torch.where(causal_mask(first, first), found, 0.0)


def shifts_that_change_scores(encoding: PositionalEncoding) -> list[int]:
    """Numbers whose addition to all positions of an axis changes a score, though the encoding claims to be relative."""
    claims, p = encoding.claims, torch.arange(6)
    limits = [each for each in (claims.max_position, claims.relative_up_to) if each is not None]
    allowed = [shift for shift in SHIFTS if shift + len(p) <= min(limits, default=2**63)]
    at_zero, found = placed(encoding, p, "text"), []
    own = scores(encoding, at_zero)
    for axis in range(claims.ndim):
        by_one = on_axis(encoding, axis, torch.ones_like(p))
        changes = {shift: (scores(encoding, at_zero + shift * by_one) - own).abs().max() for shift in allowed}
        found += [shift for shift, change in changes.items() if change > 1e-6]  # angles of 1e7 are rounded: 1e-8
    return found


@pytest.mark.parametrize(
    "name", [n for n in encodings.names() if build(n).claims.max_position is None and build(n).claims.site != "none"]
)
def test_far_positions_do_not_have_the_effect_of_others(name: str) -> None:
    assert confused_positions(build(name).double()) == []


@pytest.mark.parametrize("name", [n for n in encodings.names() if build(n).claims.relative and n != "none"])
def test_scores_of_far_positions_are_those_of_near_ones_if_claimed_relative(name: str) -> None:
    assert shifts_that_change_scores(build(name).double()) == []


class WrappingSinusoidal(Sinusoidal):
    """Position 1000 is 0."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return super().embed(x, positions % 1000)


class ClampingSinusoidal(Sinusoidal):
    """Position 5000 and all later ones are 5000."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return super().embed(x, positions.clamp(max=5000))


class WrappingRotary(Rotary):
    """Position 65536 is 0."""

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, *arguments: Any, **options: Any) -> Any:
        return super().rotate(q, k, q_positions % 2**16, *arguments, **options)


class WrappingALiBi(ALiBi):
    """Distance 1024 is 0."""

    def bias_at_distance(self, distance: Tensor) -> Tensor:
        return super().bias_at_distance(distance.sign() * (distance.abs() % 1024))


class WrappingForgetGate(ForgetGate):
    """Key position 1024 is 0."""

    def compute_bias(self, content: AttentionContent, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return super().compute_bias(content, q_positions, k_positions % 1024)


def test_an_encoding_that_wraps_or_clamps_positions_is_found() -> None:
    absolute = [WrappingSinusoidal(WIDTH), ClampingSinusoidal(WIDTH), WrappingRotary(8), WrappingALiBi(4)]
    confused = [confused_positions(encoding.double()) for encoding in absolute]
    assert confused[0][0] == (10**6 + 3, 3)
    assert (10**6 + 3, 2**20 + 2) in confused[1]
    assert (2**20 + 3, 3) in confused[2]
    assert (2**20 + 3, 3) in confused[3]
    # A wrapped relative encoding changes scores where the period ends between two tokens.
    assert 2**16 - 3 in shifts_that_change_scores(WrappingRotary(8).double())
    assert 2**10 - 3 in shifts_that_change_scores(WrappingForgetGate(WIDTH, 4).double())
