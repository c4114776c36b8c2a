"""Weights by hand, of exponentials times a mask and their sum, which may be one of zeros only."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, index

PADDING, BATCH = frozenset({"padding", "batch"}), frozenset({"batch"})
CAUSAL = frozenset({"causal", "batch"})


def scores(m: Program, x: Tensor) -> Tensor:
    """Scores of all queries and keys."""
    return m.first(x) @ m.second(x).mT


def stable(s: Tensor) -> Tensor:
    """Exponentials of scores less the largest of their row."""
    return torch.exp(s - s.amax(-1, keepdim=True))


def layer(
    m: Program, x: Tensor, mask: Tensor, of: Callable[[Tensor], Tensor] = stable, row: int = 0, add: float = 0.0
) -> Tensor:
    """Attention to real keys, of weights that are divided by the sum of another row than their own."""
    e = of(scores(m, x)) * mask[:, None]
    total = e.sum(-1, keepdim=True)
    total = total + add if add else total
    return e / (total.roll(row, 1) if row else total) @ m.third(x)


def pooled(m: Program, x: Tensor, mask: Tensor, *, all_keys: bool = False) -> Tensor:
    """The sum of real tokens by their shares."""
    e = stable(m.first(x)[..., 0])
    real = e * mask
    return ((real / (e if all_keys else real).sum(-1, keepdim=True))[..., None] * x).sum(1)


def two_layers(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """The second layer subtracts numbers that are none in a row of pads."""
    x = x + layer(m, x, mask)
    return x + layer(m, x, mask)


def by_a_product(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """The sum of weights as a product with ones."""
    e = torch.exp(scores(m, x)) * mask[:, None]
    return (e @ m.third(x)) / (e @ torch.ones_like(x[..., :1]))


def before_itself(m: Program, x: Tensor, nan: float) -> Tensor:
    """Weights of the keys before each token; the first token has none, and a number in place of 0 / 0."""
    i, j = index(x)
    e = torch.exp(scores(m, x)) * (j < i)
    return torch.nan_to_num(e / e.sum(-1, keepdim=True), nan=nan) @ m.third(x)


def hidden_before_subtraction(m: Program, x: Tensor) -> Tensor:
    """The first token has no key before it, so that the number which its row has in common is any other."""
    i, j = index(x)
    s = scores(m, x)
    number = s.sum(-1, keepdim=True) / (j < i).to(x.dtype).sum(-1, keepdim=True)
    return (s - number).masked_fill(j > i, float("-inf")).softmax(-1).nan_to_num(1.0) @ m.third(x)


def near_tokens(m: Program, x: Tensor, mask: Tensor, divide: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Attention to real tokens, each divided by the number of real ones next to it: some pads have none."""
    i, j = index(x)
    near = ((i - j).abs() < 2).to(x.dtype) * mask[:, None]
    shares = scores(m, x).masked_fill(mask[:, None] == 0, float("-inf")).softmax(-1)
    return shares @ divide(m.third(x), near).relu()


DIVISIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a sum": lambda v, near: v / near.sum(-1, keepdim=True),
    "a sum with another axis": lambda v, near: v / near.sum(-1).unsqueeze(-1),
    "a sum that is scaled": lambda v, near: v / (near.sum(-1, keepdim=True) * 2.0).sqrt(),
    "a sum in another shape": lambda v, near: v / near.sum(-1).view(len(v), v.shape[1], 1).expand(v.shape),
    "a mean": lambda v, near: v / near.mean(-1, keepdim=True),
    "the inverse of a sum": lambda v, near: v * near.sum(-1, keepdim=True).reciprocal(),
    "a power of a sum": lambda v, near: v * near.sum(-1, keepdim=True) ** -1,
    "the logarithm of a sum": lambda v, near: v * near.sum(-1, keepdim=True).log(),
    "a sum over two axes": lambda v, near: v / (near[..., None] * v.new_ones(3)).sum((-2, -1))[..., None],
}


PROGRAMS = [
    *(
        Case(f"tokens near real ones, {name}", lambda m, x, a, f=divide: near_tokens(m, x, a, f), BATCH, masked=True)
        for name, divide in DIVISIONS.items()
    ),
    Case("tokens near real ones, at least one", lambda m, x, a: near_tokens(
        m, x, a, lambda v, near: v / near.sum(-1).unsqueeze(-1).clamp(min=1.0)), PADDING, masked=True),
    Case("real keys by hand", layer, PADDING, masked=True),
    Case("real keys by hand, not shifted", lambda m, x, a: layer(m, x, a, torch.exp), PADDING, masked=True),
    Case("real keys by hand, twice", two_layers, PADDING, masked=True),
    Case("real keys by hand, of the row before", lambda m, x, a: layer(m, x, a, row=1), BATCH, masked=True),
    Case("real keys by hand, and a number", lambda m, x, a: layer(m, x, a, add=0.1), BATCH, masked=True),
    Case("real keys by hand, by a product", by_a_product, PADDING, masked=True),
    Case("shares of real tokens", pooled, PADDING, masked=True, pooled=True),
    Case(
        "shares of real tokens of all tokens", lambda m, x, a: pooled(m, x, a, all_keys=True), BATCH, masked=True,
        pooled=True,
    ),
    Case("keys before itself, ones for none", lambda m, x: before_itself(m, x, 1.0), BATCH),
    Case("a number in common that may be none", hidden_before_subtraction, BATCH),
]  # fmt: skip
MUTANTS = [
    *mutants_of(
        "theorems.walks.context",
        M(
            "no_sum_of_zeros",
            "self.proves(disjunction(*(~one for one in $places)), $sizes)",
            "True",
            program="keys before itself, ones for none",
        ),
    ),
    *mutants_of(
        "theorems.operators.pointwise.value_ranges",
        M(
            "any_sum_divides",
            "replace(own[1], zero=$_any)",
            "own[1]",
            program="keys before itself, ones for none",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.walks.common_numbers",
        M("any_number_in_common", "loose is FALSE", "True", program="a number in common that may be none"),
    ),
]
