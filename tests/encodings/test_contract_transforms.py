"""The contract of every registered encoding: transforms of torch.func, batched gradients, and vmap over positions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import grad, hessian, jacrev, jvp, vjp, vmap

from orderproof import encodings, positions
from orderproof.encodings import LearnedAbsolute, Rotary, Sinusoidal, attention
from orderproof.errors import EncodingError, PositionError, UsageError
from tests.encodings.examples import (
    IN_ATTENTION,
    WIDTH,
    build,
    call,
    in_attention_with,
    normal,
    operands,
    placed,
    qkv,
)
from tests.encodings.functions import (
    TOKENS,
    AttentionName,
    attention_of,
    depends_on_positions_alone,
    every_hook,
    hook_of,
)

pytestmark = [
    # The first use of forward mode calls the deprecated torch.jit.script (torch 2.13).
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning"),
    # vmap runs the backward pass of torch's fused attention in a loop.
    pytest.mark.filterwarnings("ignore:There is a performance drop because:UserWarning"),
]


def check_transforms(function: Callable[..., Tensor], at: list[Tensor], *, rtol: float) -> int:
    """Compare the transforms of torch.func over each tensor with torch.autograd; return how many tensors matter."""
    matter = 0
    for i, x in enumerate(at):

        def value(x: Tensor, i: int = i) -> Tensor:
            return function(*at[:i], x, *at[i + 1 :]).sin()

        def total(x: Tensor) -> Tensor:
            return value(x).sum()

        def some(x: Tensor) -> Tensor:
            return value(x).flatten()[:: max(1, value(x).numel() // 3)]

        leaf = x.clone().requires_grad_()
        slope = torch.autograd.grad(total(leaf), leaf, allow_unused=True)[0] if total(leaf).requires_grad else None
        if slope is None:
            continue
        matter += 1

        def same(found: Tensor, expected: Tensor) -> None:
            scale = max(1.0, float(expected.abs().max()))
            assert (found - expected).abs().max() <= rtol * scale

        direction = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view(x.shape) + 0.5
        rows = torch.autograd.grad(some(leaf).sum(), leaf)[0]
        same(grad(total)(x), slope)
        same(vjp(total, x)[1](torch.ones((), dtype=x.dtype))[0], slope)
        same(jvp(total, (x,), (direction,))[1], (slope * direction).sum())
        same(jacrev(some)(x).sum(0), rows)
        same(torch.autograd.functional.jacobian(some, x, vectorize=True).sum(0), rows)
        same(vmap(grad(total))(torch.stack([x + direction, x]))[1], slope)
    return matter


@every_hook
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_transforms_of_the_hook_agree_with_autograd(name: str, dtype: torch.dtype) -> None:
    function, at = hook_of(name, dtype)
    matter = check_transforms(function, at, rtol=1e3 * torch.finfo(dtype).eps)
    assert matter or depends_on_positions_alone(name)


@in_attention_with("backend", "sdpa", "eager")
def test_transforms_of_attention_agree_with_autograd(name: str, causal: bool, backend: AttentionName) -> None:
    function, at = attention_of(name, causal=causal, backend=backend)
    assert check_transforms(function, at, rtol=1e-11) >= 3


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_a_hessian_through_attention_is_that_of_finite_differences(backend: AttentionName) -> None:
    for name in ("t5", "kerple", "rotary"):
        function, at = attention_of(name, causal=True, backend=backend)

        def loss(x: Tensor, function: Callable[..., Tensor] = function, at: list[Tensor] = at) -> Tensor:
            return function(x, *at[1:]).sin().sum()

        direction, step = normal(*at[0].shape, seed=4), 1e-6
        up, down = (grad(loss)(at[0] + sign * step * direction) for sign in (1, -1))
        found = (hessian(loss)(at[0]).flatten(4) @ direction.flatten()).view(at[0].shape)
        assert (found - (up - down) / (2 * step)).abs().max() < 1e-7


def test_flex_attention_refuses_transforms_in_one_line() -> None:
    function, at = attention_of("rotary", causal=True, backend="flex")
    with pytest.raises(
        UsageError, match="^backend: 'flex' cannot be transformed by torch.func; use 'sdpa' or 'eager'$"
    ):
        vmap(lambda q: function(q, *at[1:]))(torch.stack([at[0], at[0]]))


@every_hook
def test_it_maps_over_positions(name: str) -> None:
    encoding = build(name)
    each = [placed(encoding, positions.offset(past, TOKENS)) for past in (0, 5)]
    given = operands(encoding, TOKENS)
    found = vmap(lambda p: call(encoding, given, p))(torch.stack(each))
    for row, p in zip(found, each, strict=True):
        assert torch.allclose(row, call(encoding, given, p), rtol=1e-12, atol=1e-12)


def test_negative_and_too_large_positions_are_rejected_while_mapping() -> None:
    given, learned, sinusoidal = normal(1, 2, 8, dtype=torch.float32), LearnedAbsolute(4, 8), Sinusoidal(8)
    with pytest.raises(EncodingError, match="positions up to 3, got 9"):
        vmap(lambda p: learned.embed(given, p))(torch.tensor([[0, 1], [2, 9]]))
    with pytest.raises(PositionError, match="expected no negative position, got -1"):
        vmap(lambda p: sinusoidal.embed(given, p))(torch.tensor([[0, 1], [2, -1]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tables_work_inside_transforms(dtype: torch.dtype) -> None:
    spectrum, sinusoidal = Rotary(8).spectrum, Sinusoidal(8)
    expected = torch.cat(encodings.cos_sin_table(spectrum, 5, dtype=dtype)).sum() * 2.0
    found = grad(lambda x: x**2 * torch.cat(encodings.cos_sin_table(spectrum, 5, dtype=dtype)).sum())(torch.ones(()))
    assert torch.allclose(found, expected.to(found.dtype))
    rows = torch.tensor([[0, 4], [9, 2]])
    mapped = vmap(lambda p: sinusoidal.encoding_table(p, dtype=dtype))(rows)
    assert torch.equal(mapped, sinusoidal.encoding_table(rows, dtype=dtype))


@pytest.mark.parametrize(
    ("name", "causal"),
    [
        (name, causal) for name, causal in IN_ATTENTION
        if build(name).claims.site == "bias" and not depends_on_positions_alone(name)
    ],
)  # fmt: skip
def test_a_learned_bias_that_is_no_argument_of_the_transform_has_its_gradient(name: str, causal: bool) -> None:
    encoding = build(name, causal=causal).double()
    p, x = placed(encoding, positions.arange(TOKENS)), normal(2, TOKENS, WIDTH, seed=7)
    q, k, v = qkv(TOKENS, TOKENS)

    def attend(q: Tensor, backend: AttentionName = "sdpa") -> Tensor:
        return attention(
            q, k, v, encoding=encoding, q_positions=p, causal=causal, token_state=encoding.token_state(x),
            backend=backend,
        )  # fmt: skip

    def gradients(output: Tensor) -> list[Tensor]:
        found = torch.autograd.grad(output.sin().sum(), list(encoding.parameters()), allow_unused=True)
        return [each for each in found if each is not None]

    both = torch.stack([q, q + 1])
    one_by_one = torch.stack([attend(each, "eager") for each in both])
    mapped = vmap(attend)(both)
    torch.testing.assert_close(mapped, one_by_one, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(gradients(mapped), gradients(one_by_one), rtol=1e-9, atol=1e-11)
    slope = grad(lambda each: attend(each).sum())(q)
    leaf = q.clone().requires_grad_()
    torch.testing.assert_close(slope, torch.autograd.grad(attend(leaf, "eager").sum(), leaf)[0], rtol=1e-9, atol=1e-11)
