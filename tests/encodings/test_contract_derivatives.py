"""The contract of every registered encoding: second derivatives are right, or refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof import encodings, positions
from orderproof.encodings import T5Bias, attention
from orderproof.errors import UsageError
from tests.encodings.examples import build, in_attention_with, qkv
from tests.encodings.functions import AttentionName, attention_of, depends_on_positions_alone, every_hook, hook_of

# Tracing FlexAttention looks at the bias's gradient.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")


def second_derivatives_are_right(function: Callable[..., Tensor], at: list[Tensor]) -> bool:
    """`gradgradcheck` of the sum of sines, so that the gradient from above depends on the result, too."""
    given = [x.clone().requires_grad_() for x in at]
    slopes = torch.autograd.grad(function(*given).sin().sum(), given, allow_unused=True)
    used = [i for i, slope in enumerate(slopes) if slope is not None]

    def of_used(*some: Tensor) -> Tensor:
        values = dict(zip(used, some, strict=True))
        return function(*(values.get(i, x) for i, x in enumerate(at))).sin().sum()

    return torch.autograd.gradgradcheck(of_used, [given[i] for i in used], fast_mode=True)


@every_hook
def test_second_derivatives_of_the_hook_are_right(name: str) -> None:
    function, at = hook_of(name, torch.float64)
    if not function(*(x.clone().requires_grad_() for x in at)).requires_grad:
        assert depends_on_positions_alone(name)
        return
    assert second_derivatives_are_right(function, at)


REFUSALS = {
    "sdpa": "^derivative for aten::_scaled_dot_product_.* is not implemented",  # by torch
    "flex": "^backend: 'flex' has no gradient on the CPU; use 'sdpa'",
}


def is_fused(name: str, backend: AttentionName) -> bool:
    """True if one of torch's fused kernels computes the attention: not for a bias with gradient or unequal widths."""
    encoding = build(name)
    if backend == "sdpa":
        return name != "pope" and not (encoding.claims.site == "bias" and list(encoding.parameters()))
    return backend == "flex" and not encoding.claims.adds_to_values


@in_attention_with("backend", "sdpa", "eager", "flex")
def test_second_derivatives_of_attention_are_right_or_refused(name: str, causal: bool, backend: AttentionName) -> None:
    function, at = attention_of(name, causal=causal, backend=backend)
    refusal = REFUSALS.get(backend) if is_fused(name, backend) else None
    if refusal is None:
        assert second_derivatives_are_right(function, at)
        return
    with pytest.raises(RuntimeError if backend == "sdpa" else UsageError, match=refusal):
        second_derivatives_are_right(function, at)


@pytest.mark.parametrize("name", [name for name in encodings.names() if build(name).claims.site == "bias"])
def test_second_derivatives_of_a_bias_in_flex_attention_are_refused(name: str) -> None:
    function, at = attention_of(name, causal=True, backend="flex")
    learned = [x.requires_grad_() for x in at[4:]]
    if not learned or name == "shaw":  # shaw adds to the values, so every backend is "eager"
        return
    with pytest.raises(UsageError, match="^backend: 'flex' has no second derivatives .*; use 'eager'$"):
        torch.autograd.grad(function(*at).square().sum(), learned, create_graph=True, allow_unused=True)
    assert any(x is not None for x in torch.autograd.grad(function(*at).sum(), learned, allow_unused=True))


def test_the_hessian_vector_product_of_a_bias_is_that_of_backend_eager() -> None:
    q, k, v = qkv(270, 270)
    t5 = T5Bias(4, bidirectional=False).double()
    products = []
    for backend in ("sdpa", "eager"):
        out = attention(
            q, k, v, encoding=t5, q_positions=positions.arange(270), causal=True, window=(40, 0), backend=backend
        )
        (slope,) = torch.autograd.grad(out.square().sum(), t5.weight, create_graph=True)
        products.append(torch.autograd.grad(slope.square().sum(), t5.weight)[0])
    assert (products[0] - products[1]).abs().max() < 1e-9 * products[1].abs().max()
