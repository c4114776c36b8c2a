"""Errors of attention: one line with the argument, the expected and the actual value."""

from __future__ import annotations

import math
import re

import pytest
import torch

from orderproof import positions
from orderproof.encodings import FIRE, KERPLE, ALiBi, CoPE, NoEncoding, Sinusoidal, T5Bias, attention
from orderproof.errors import EncodingError, PositionError, UsageError
from tests.encodings.examples import HEAD_WIDTH, HEADS, normal


def qkv() -> list[torch.Tensor]:
    return [normal(2, HEADS, 4, HEAD_WIDTH, seed=seed) for seed in range(3)]


def rejects(message: str, error: type[Exception] = UsageError, **changes: object) -> None:
    q, k, v = qkv()
    arguments = {"q": q, "k": k, "v": v, "encoding": NoEncoding(), "q_positions": positions.arange(4), "causal": False}
    with pytest.raises(error, match=re.escape(message)) as caught:
        attention(**(arguments | changes))
    assert "\n" not in str(caught.value)


def test_arguments_that_do_not_fit_are_rejected() -> None:
    q, k, v = qkv()
    rejects("backend: expected 'sdpa', 'eager' or 'flex', got 'flash'", backend="flash")
    rejects("q: expected floating [batch, head, token, head_width], got torch.float64 [4, 4, 8]", q=q[0])
    rejects("v: expected floating [batch, head, token, head_width], got torch.int64", v=v.long())
    rejects("k: expected the dtype of q, torch.float64, got torch.float32", k=k.float())
    rejects("q, k, v: expected one batch, one head_width, and as many values as keys, got", v=v[:, :, :3])
    rejects("k: expected a number of heads that divides q's 4, got 3", k=k[:, :3], v=v[:, :3])
    rejects(
        "padding_mask: expected booleans [2, 4], True at real tokens, got torch.int64",
        padding_mask=torch.ones(2, 4).long(),
    )
    rejects("padding_mask: expected booleans [2, 4]", padding_mask=torch.ones(1, 4).bool())
    rejects("mask: expected booleans [4, 4], [2, 4, 4] or [2, 4, 4, 4]", mask=torch.ones(4, 4))
    rejects("True where a query may attend, got torch.bool [3, 4]", mask=torch.ones(3, 4).bool())
    rejects("True where a query may attend, got torch.bool [4]", mask=torch.ones(4).bool())
    rejects("True where a query may attend, got torch.bool [1, 1, 1, 4, 4]", mask=torch.ones(1, 1, 1, 4, 4).bool())
    rejects("q_positions: expected 4 tokens", PositionError, q_positions=positions.arange(3))
    rejects("k_positions: expected 4 tokens", PositionError, k_positions=positions.arange(3))
    rejects(
        "k_positions: expected positions of 3 keys, got none for 4 queries", PositionError, k=k[:, :, :3], v=v[:, :, :3]
    )
    rejects("k: expected a number of heads that divides q's 4, got 0", k=k[:, :0], v=v[:, :0])
    rejects("k: expected the device of q, cpu, got meta", k=k.to("meta"))
    rejects("padding_mask: expected a tensor on cpu, got list", padding_mask=[[True] * 4] * 2)
    rejects("mask: expected a tensor on cpu, got meta", mask=torch.ones(4, 4, device="meta").bool())
    rejects("causal: expected True or False, got None", causal=None)
    rejects("encoding: expected an encoding, such as Rotary(64), got str", EncodingError, encoding="rotary")
    rejects("q: expected floating [batch, head, token, head_width], got list", q=[1.0])


@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, "1"])
def test_a_scale_must_be_a_positive_number(scale: object) -> None:
    rejects(f"scale: expected a number above 0, got {scale!r}", scale=scale)


@pytest.mark.parametrize("window", [2, (2,), (-1, 0), (1.5, 0), (True, 0), (1, 1, 1), ("a", 0)])
@pytest.mark.parametrize("padded", [True, False])
def test_a_window_must_be_a_pair_of_distances(window: object, padded: bool) -> None:
    real = torch.ones(2, 4).bool() if padded else None
    rejects(
        f"window: expected (back, ahead), two integers of 0 or more, got {window!r}", window=window, padding_mask=real
    )


@pytest.mark.parametrize("backend", ["sdpa", "eager", "flex"])
@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("make", [ALiBi, KERPLE, FIRE])
def test_a_bias_for_another_number_of_heads_is_rejected(make: type, heads: int, backend: str) -> None:
    """One head would be spread over all, and FlexAttention would take the first of too many."""
    message = f"{make.__name__}: expected an encoding of 4 heads, as in q, got one of {heads}"
    rejects(message, EncodingError, encoding=make(heads), backend=backend)


def test_an_encoding_of_the_wrong_site_is_rejected() -> None:
    rejects("Sinusoidal acts on embeddings, not in attention", EncodingError, encoding=Sinusoidal(32))
    rejects(
        "T5Bias is defined for causal attention only; pass causal=True in a decoder; "
        "for an encoder or cross-attention, build it with bidirectional=True",
        EncodingError,
        encoding=T5Bias(4, bidirectional=False),
    )
    rejects("for an encoder or cross-attention, choose another encoding", EncodingError, encoding=CoPE(8))
    message = "encoding: expected an encoding, such as Rotary(64), got Sequential"  # in one line
    rejects(message, EncodingError, encoding=torch.nn.Sequential(torch.nn.Linear(2, 2)))
