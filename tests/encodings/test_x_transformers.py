"""The encodings compared with those of x-transformers: equal, or with a documented difference.

Where x-transformers rounds earlier (frequencies and angles in float32), the comparison stays at positions where that
costs little. It has no KERPLE. It comes with the extra `bench`.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from orderproof import positions
from orderproof.encodings import ALiBi, AttentionContent, CoPE, ForgetGate, PoPE, Rotary, Sinusoidal, T5Bias, XPos
from orderproof.encodings.visibility_mask import visibility_mask
from tests.encodings.examples import normal

peer = pytest.importorskip("x_transformers.x_transformers", reason="the extra bench (x-transformers) is not installed")
TOKENS = 24


def near(found: Tensor, expected: Tensor, tolerance: float) -> None:
    """No further apart than ``tolerance`` times the largest number expected."""
    assert found.shape == expected.shape
    apart = float((found.detach().double() - expected.detach().double()).abs().max())
    assert apart <= tolerance * max(1.0, float(expected.detach().abs().max()))


def below() -> Tensor:
    """True at the keys that do not come after a query."""
    return torch.ones(TOKENS, TOKENS).tril().bool()


@pytest.mark.parametrize(("width", "rotary_width", "base"), [(32, None, 10_000.0), (20, 12, 500_000.0)])
def test_rotary_is_interleaved_there(width: int, rotary_width: int | None, base: float) -> None:
    q, k, p = normal(2, 3, TOKENS, width, seed=1), normal(2, 3, TOKENS, width, seed=2), positions.arange(TOKENS)
    angles, scale = peer.RotaryEmbedding(rotary_width or width, base=base)(p)
    theirs = [peer.apply_rotary_pos_emb(x, angles, scale) for x in (q, k)]
    ours = Rotary(width, layout="interleaved", rotary_width=rotary_width, base=base).rotate(q, k, p)
    for a, b in zip(ours, theirs, strict=True):
        near(a, b, 1e-6 * TOKENS)  # their angles are float32
    half = Rotary(width, layout="half", rotary_width=rotary_width, base=base).rotate(q, k, p)
    assert float((half[0] - theirs[0]).abs().max()) > 0.1


def test_rotary_in_float64_is_theirs_with_exact_angles() -> None:
    q, p = normal(1, 2, TOKENS, 16), positions.offset(100_000, TOKENS)
    ours, _ = Rotary(16, layout="interleaved").rotate(q, q, p)
    embedding = peer.RotaryEmbedding(16)
    rough, _ = embedding(p)
    embedding.inv_freq = 10_000.0 ** (-torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    exact, _ = embedding(p)
    near(ours, peer.apply_rotary_pos_emb(q, exact), 1e-9)
    assert float((ours - peer.apply_rotary_pos_emb(q, rough)).abs().max()) > 1e-3  # what float32 angles cost


def test_xpos_differs_by_one_factor_of_each_pair_that_no_score_sees() -> None:
    # They count from the middle of the row, we from 0; in a score zeta^(m - n) is left of both.
    q, k, p = normal(1, 2, TOKENS, 16, seed=1), normal(1, 2, TOKENS, 16, seed=2), positions.arange(TOKENS)
    angles, scale = peer.RotaryEmbedding(16, use_xpos=True, scale_base=512)(p)
    a = peer.apply_rotary_pos_emb(q, angles, scale)
    b = peer.apply_rotary_pos_emb(k, angles, scale**-1)
    ours = XPos(16, layout="interleaved").rotate(q, k, p)
    assert float((ours[0] - a).abs().max()) > 1e-2
    near(ours[0] @ ours[1].mT, a @ b.mT, 1e-5)


def test_sinusoidal_is_concatenated_and_scaled_there() -> None:
    theirs, p = peer.ScaledSinusoidalEmbedding(16), positions.arange(TOKENS)
    ours = Sinusoidal(16, layout="concatenated").encoding_table(p)
    near(ours / math.sqrt(16), theirs(torch.zeros(1, TOKENS, 16), p.float()), 1e-6 * TOKENS)


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12, 20])
def test_alibi(heads: int) -> None:
    theirs, p = peer.AlibiPositionalBias(heads), positions.arange(TOKENS)
    near(ALiBi(heads).bias(p, p), theirs(TOKENS, TOKENS).unsqueeze(0), 1e-6)
    near(ALiBi(heads).bias(p[-3:], p), peer.AlibiPositionalBias(heads)(3, TOKENS).unsqueeze(0), 1e-6)
    q, k = torch.tensor([[5, 900], [7, 3]]), torch.tensor([[0, 901], [7, 12]])
    near(ALiBi(heads).bias(q, k), theirs.forward_custom_pos(q, k), 1e-6)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_t5_is_multiplied_by_the_square_root_of_the_width_there(bidirectional: bool) -> None:
    # T5 adds b to q k, which it does not divide; x-transformers adds 8 b to q k / 8. That is no multiple of the other,
    # so weights from T5 do not carry over to it; ours takes them with scale=1.
    heads, tokens = 4, 300
    scale = 64**0.5
    theirs = peer.RelativePositionBias(scale, causal=not bidirectional, heads=heads)
    ours = T5Bias(heads, bidirectional=bidirectional)
    with torch.no_grad():
        ours.weight.copy_(theirs.relative_attention_bias.weight)
    p = positions.arange(tokens)
    distance = p - p.unsqueeze(-1)
    bucket = peer.RelativePositionBias._relative_position_bucket(distance, causal=not bidirectional)
    assert torch.equal(ours.bucket(distance), bucket)
    near(scale * ours.bias(p, p), theirs(tokens, tokens).unsqueeze(0), 1e-7)
    near(scale * ours.bias(p[-5:], p), theirs(5, tokens).unsqueeze(0), 1e-7)


@pytest.mark.parametrize("limit", [64, 5])
def test_cope_with_later_keys_masked_first(limit: int) -> None:
    # Theirs is handed the scaled scores, later keys hidden, and queries that are not scaled: so its gates are ours.
    q, k, p = normal(2, 3, TOKENS, 8, seed=1), normal(2, 3, TOKENS, 8, seed=2), positions.arange(TOKENS)
    theirs, ours = peer.CoPE(8, 3, limit).double(), CoPE(8, limit=limit).double()
    with torch.no_grad():
        ours.weight.copy_(theirs.pos_emb.normal_())
    scores = 0.4 * (q @ k.mT)
    visible = visibility_mask(p, p, causal=True)
    found = ours.bias(p, p, content=AttentionContent(q=q, k=k, scale=0.4, visible=visible), dtype=torch.float64)
    hidden = scores.masked_fill(~below(), -torch.finfo(scores.dtype).max)
    near(found, theirs(q, hidden), 1e-12)
    # Scores that are not hidden would count keys of the future too: another bias where a query may look.
    assert float((found - theirs(q, scores)).detach().masked_fill(~below(), 0.0).abs().max()) > 0.1


def test_forgetting_is_their_data_dependent_alibi() -> None:
    width, heads, p = 16, 3, positions.arange(TOKENS)
    theirs, ours = peer.DataDependentAlibi(width, heads).double(), ForgetGate(width, heads).double()
    linear = theirs.to_forget_gates[0]
    with torch.no_grad():
        ours.gate.weight.copy_(linear.weight)
        ours.gate.bias.copy_(linear.bias)
    x, q = normal(2, TOKENS, width), normal(2, heads, TOKENS, 8)
    content = AttentionContent(
        q=q, k=q, scale=1.0, visible=visibility_mask(p, p, causal=True), token_state=ours.token_state(x)
    )
    found = ours.bias(p, p, content=content, dtype=torch.float64)
    near(found.masked_fill(~below(), 0.0), theirs(x).masked_fill(~below(), 0.0), 1e-12)


def test_forgetting_from_the_last_token_alone_forgets_nothing_there() -> None:
    # With a cache they see the newest token only: one number for all keys, which softmax drops. Ours keeps token_state.
    width, heads, p = 16, 3, positions.arange(TOKENS)
    theirs, ours = peer.DataDependentAlibi(width, heads).double(), ForgetGate(width, heads).double()
    x, q = normal(1, TOKENS, width), normal(1, heads, TOKENS, 8)
    assert theirs(x[:, -1:]).shape == (1, heads, 1, 1)
    content = AttentionContent(
        q=q[:, :, -1:], k=q, scale=1.0, visible=visibility_mask(p[-1:], p, causal=True), token_state=ours.token_state(x)
    )
    assert float(ours.bias(p[-1:], p, content=content, dtype=torch.float64).detach().diff(dim=-1).min()) > 0.0


def test_pope_adds_delta_to_keys_there_too_and_cuts_it_off_at_its_bounds() -> None:
    # Their apply calculates in float32, and their attention adds the bias to the angles of keys.
    width, heads, p = 12, 3, positions.arange(TOKENS)
    theirs, ours = peer.PolarEmbedding(width, heads), PoPE(width, heads)
    with torch.no_grad():
        ours.delta.copy_(theirs.learned_bias.uniform_(-2 * math.pi, 0.0).squeeze(1))
    q, k = (normal(2, heads, TOKENS, width, seed=seed, dtype=torch.float32) for seed in (1, 2))
    angles, bias = theirs(p)
    a, b = peer.apply_polar_pos_emb(q, angles), peer.apply_polar_pos_emb(k, angles + bias)
    found = ours.rotate(q, k, p)
    near(found[0], a, 1e-6 * TOKENS)
    near(found[1], b, 1e-6 * TOKENS)
    # Past the bounds [-2 pi, 0] theirs is held at 0 and learns no more; ours is the angle 1, which is 1 - 2 pi.
    with torch.no_grad():
        theirs.learned_bias.fill_(1.0)
        ours.delta.fill_(1.0)
    assert float(theirs(p)[1].detach().abs().max()) == 0.0
    again = ours.rotate(q, k, p)[1]
    with torch.no_grad():
        ours.delta.fill_(1.0 - 2 * math.pi)
    near(again, ours.rotate(q, k, p)[1], 1e-6)


def test_pope_lengths_are_softplus_in_both() -> None:
    x, p = normal(1, 1, TOKENS, 4, dtype=torch.float32), positions.arange(TOKENS)
    theirs = peer.apply_polar_pos_emb(x, peer.PolarEmbedding(4, 1)(p)[0])
    real, imaginary = theirs.chunk(2, dim=-1)
    near(torch.hypot(real, imaginary), functional.softplus(x), 1e-6)
