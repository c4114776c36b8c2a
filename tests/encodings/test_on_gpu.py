"""Each encoding gives the same outputs and gradients on a GPU as on the CPU."""

from __future__ import annotations

import copy
import os
from typing import Literal

import pytest
import torch
from torch import Tensor

from orderproof import encodings, positions
from orderproof.encodings import ModelSizes, PositionalEncoding, attention
from orderproof.errors import UsageError
from tests.encodings.examples import (
    HEADS,
    LENGTH,
    WIDTH,
    build,
    every_encoding_in_attention,
    normal,
    placed,
    qkv,
    tolerance,
)

DEVICE = os.environ.get("ORDERPROOF_TEST_DEVICE", "cuda")  # to run the test's own code without a GPU: cpu
if DEVICE == "cuda" and not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)


def assert_equal_up_to_rounding(found: Tensor, expected: Tensor) -> None:
    # the gradient of one parameter is a sum over rows, pairs of tokens, heads and features
    bound = tolerance(torch.float64, terms=2 * LENGTH**2 * WIDTH, scale=float(expected.detach().abs().amax()))
    torch.testing.assert_close(found.cpu(), expected, atol=bound, rtol=0)


def attend(
    encoding: PositionalEncoding, causal: bool, backend: Literal["sdpa", "eager", "flex"], device: str
) -> list[Tensor]:
    """The output of attention, then its gradients by the inputs and by the parameters of the encoding."""
    encoding = copy.deepcopy(encoding).to(device)
    given = [x.to(device).requires_grad_() for x in (*qkv(LENGTH, LENGTH), normal(2, LENGTH, WIDTH, seed=7))]
    p = placed(encoding, positions.arange(LENGTH)).to(device)
    q, k, v, x = given
    out = attention(
        q, k, v,
        encoding=encoding, q_positions=p, causal=causal, token_state=encoding.token_state(x), backend=backend,
    )  # fmt: skip
    weights = normal(*out.shape, seed=9).to(device)
    by = [*given, *encoding.parameters()]
    gradients = torch.autograd.grad((out * weights).sum(), by, allow_unused=True)
    return [out, *(torch.zeros_like(y) if g is None else g for g, y in zip(gradients, by, strict=True))]


@every_encoding_in_attention
@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_attention(name: str, causal: bool, backend: Literal["sdpa", "eager"]) -> None:
    encoding = build(name, causal=causal).double()
    expected, found = (attend(encoding, causal, backend, device) for device in ("cpu", DEVICE))
    for one, other in zip(found, expected, strict=True):
        assert_equal_up_to_rounding(one, other)


# torch 2.11 imports a part of its compiler that uses what it deprecates.
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", ["rotary", "alibi", "t5"])
def test_flex_attention(name: str) -> None:
    width, tokens, causal = 16, 128, True
    sizes = ModelSizes(width=HEADS * width, heads=HEADS, causal=causal, length=tokens)
    encoding = encodings.get(name).for_model(sizes).to(DEVICE)
    q, k, v = (normal(2, HEADS, tokens, width, seed=seed, dtype=torch.float32).to(DEVICE) for seed in (1, 2, 3))
    p = positions.arange(tokens).to(DEVICE)
    with torch.no_grad():
        found, expected = (
            attention(q, k, v, encoding=encoding, q_positions=p, causal=causal, backend=backend)
            for backend in ("flex", "eager")
        )
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.skipif(DEVICE == "cpu", reason="no GPU here")
def test_flex_attention_rejects_heads_that_its_kernel_does_not_take() -> None:
    q, k, v = (x.to(DEVICE) for x in qkv(LENGTH, LENGTH, dtype=torch.float32))
    p = positions.arange(LENGTH).to(DEVICE)
    with torch.no_grad(), pytest.raises(UsageError, match="on a GPU takes heads of at least 16 features, got 8"):
        attention(q, k, v, encoding=build("alibi").float().to(DEVICE), q_positions=p, causal=True, backend="flex")
