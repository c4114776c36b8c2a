"""Numbers less a number, places next to a half, a few stored integers or hashes; and near misses."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, index, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def masked(m: Program, x: Tensor) -> Tensor:
    """Causal scores."""
    return (m.first(x) @ m.second(x).mT).masked_fill(~lower(x), -math.inf)


def above(m: Program, x: Tensor, bound: Callable[[Tensor], Tensor]) -> Tensor:
    """Attention to keys whose scores are not below a bound; all keys get the same weight if there are none."""
    s = masked(m, x)
    return s.masked_fill(s < bound(s), -1e9).softmax(-1) @ m.third(x)


def largest(s: Tensor) -> Tensor:
    """The largest score of each row."""
    return s.amax(-1, keepdim=True)


def second(s: Tensor) -> Tensor:
    """The second largest score of each row, less one."""
    return s.topk(2, -1).values[..., 1:] - 1


def bounded(m: Program, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Weights after a function, over their sum and one."""
    w = function(masked(m, x).softmax(-1))
    return w @ m.third(x) / (1 + w.sum(-1, keepdim=True))


def compared(m: Program, x: Tensor, seen: Tensor) -> Tensor:
    """Attention where a comparison of places says so."""
    return (m.first(x) @ m.second(x).mT).masked_fill(~seen, -math.inf).softmax(-1) @ m.third(x)


def floats(x: Tensor) -> Tensor:
    """The place of each query less that of each key, as floats."""
    i = torch.arange(x.shape[1], dtype=torch.float32)
    return i[:, None] - i


def gathered(m: Program, x: Tensor, offsets: list[int]) -> Tensor:
    """Attention to keys at some distances."""
    place = torch.arange(x.shape[1])[:, None] - torch.tensor(offsets)
    k, v = (F.pad(f(x), (0, 0, 0, 1))[:, place.clamp(min=0)] for f in (m.second, m.third))
    s = torch.einsum("btd,btnd->btn", m.first(x), k).masked_fill(place < 0, -math.inf)
    return torch.einsum("btn,btnd->btd", s.softmax(-1), v)


def hashes(x: Tensor, *, reverse: bool = False) -> tuple[Tensor, Tensor]:
    """Two hashes of each token, and those with which they are compared."""
    h = (3 * x[..., :2]).long()
    return h[:, :, None], (h.flip(1) if reverse else h)[:, None]


def same_hash(m: Program, x: Tensor, seen: Tensor) -> Tensor:
    """Attention to earlier keys where a mask says so, all of them with the same weight if it never does."""
    return masked(m, x).masked_fill(~(seen & lower(x)), -1e9).softmax(-1) @ m.third(x)


def is_exceeded(x: Tensor) -> Tensor:
    """If some token is greater than a token: by a row of open length."""
    number = x[..., 0]
    return (number[:, None] > number[:, :, None] + 1).any(-1, keepdim=True)


PROGRAMS = [
    Case("scores within a margin", lambda m, x: above(m, x, lambda s: largest(s) - 2.0), CAUSAL),
    Case("scores within a margin by a sum", lambda m, x: above(m, x, lambda s: largest(s) + -0.5), CAUSAL),
    Case("scores within a margin of the second", lambda m, x: above(m, x, second), CAUSAL),
    Case("scores above the largest", lambda m, x: above(m, x, lambda s: largest(s) + 2.0), NOT_CAUSAL),
    Case("scores less a negative number", lambda m, x: above(m, x, lambda s: largest(s) - -2.0), NOT_CAUSAL),
    Case("scores less a number of the row", lambda m, x: above(m, x, lambda s: largest(s) - x[..., :1]), NOT_CAUSAL),
    Case("scores within a margin of columns", lambda m, x: above(m, x, lambda s: largest(s.mT).mT - 2), NOT_CAUSAL),
    Case(
        "a bound in place of the largest",
        lambda m, x: masked(m, x).masked_fill(~(largest(masked(m, x)) - 1 > 0), -1e9).softmax(-1) @ m.third(x),
        NOT_CAUSAL,
    ),
    Case("weights less a tenth", lambda m, x: bounded(m, x, lambda w: F.relu(w - 0.1)), CAUSAL),
    Case("weights and a negative number", lambda m, x: bounded(m, x, lambda w: (w + -0.1).clamp(min=0)), CAUSAL),
    Case("weights less a tenth between two", lambda m, x: bounded(m, x, lambda w: (w - 0.1).clamp(0, 0.5)), CAUSAL),
    Case("weights and a tenth", lambda m, x: bounded(m, x, lambda w: F.relu(w + 0.1)), NOT_CAUSAL),
    Case("weights less a negative number", lambda m, x: bounded(m, x, lambda w: F.relu(w - -0.1)), NOT_CAUSAL),
    Case("weights less a tenth, leaky", lambda m, x: bounded(m, x, lambda w: F.leaky_relu(w - 0.1)), NOT_CAUSAL),
    Case("weights less a tenth from below", lambda m, x: bounded(m, x, lambda w: (w - 0.1).clamp(-0.05)), NOT_CAUSAL),
    Case("weights less a tenth from above", lambda m, x: bounded(m, x, lambda w: (w - 0.1).clamp(max=0)), NOT_CAUSAL),
    Case("a tenth less weights", lambda m, x: bounded(m, x, lambda w: F.relu(0.1 - w)), NOT_CAUSAL),
    Case("distances above minus a half", lambda m, x: compared(m, x, floats(x) > -0.5), CAUSAL),
    Case("distances not below minus a half", lambda m, x: compared(m, x, floats(x) >= -0.5), CAUSAL),
    Case("distances below a half", lambda m, x: compared(m, x, -floats(x) < 0.5), CAUSAL),
    Case("distances not above a half", lambda m, x: compared(m, x, -floats(x) <= 0.5), CAUSAL),
    Case("integers above minus a half", lambda m, x: compared(m, x, index(x)[0] - index(x)[1] > -0.5), CAUSAL),
    Case("a half above distances", lambda m, x: compared(m, x, torch.tensor(0.5) > -floats(x)), CAUSAL),
    Case("distances above minus one and a half", lambda m, x: compared(m, x, floats(x) > -1.5), NOT_CAUSAL),
    Case("distances not below minus one and a half", lambda m, x: compared(m, x, floats(x) >= -1.5), NOT_CAUSAL),
    Case("distances below one and a half", lambda m, x: compared(m, x, -floats(x) < 1.5), NOT_CAUSAL),
    Case("distances not above one and a half", lambda m, x: compared(m, x, -floats(x) <= 1.5), NOT_CAUSAL),
    Case("keys at some distances", lambda m, x: gathered(m, x, [0, 1, 2, 4, 8]), CAUSAL),
    Case("keys at distances in another order", lambda m, x: gathered(m, x, [5, 0, 3]), CAUSAL),
    Case("keys at distances, one ahead", lambda m, x: gathered(m, x, [0, 1, 4, -1, 2]), NOT_CAUSAL),
    Case("same hash of two", lambda m, x: same_hash(m, x, torch.eq(*hashes(x)).any(-1)), CAUSAL),
    Case("same hashes, both", lambda m, x: same_hash(m, x, torch.eq(*hashes(x)).all(-1)), CAUSAL),
    Case("other hash of two", lambda m, x: same_hash(m, x, torch.ne(*hashes(x)).any(-1)), NOT_CAUSAL),
    Case("hash of the other end", lambda m, x: same_hash(m, x, torch.eq(*hashes(x, reverse=True)).all(-1)), NOT_CAUSAL),
    Case("sign of all tokens", lambda m, x: torch.where((x[..., 0] < 3).all(), x, -x), frozenset()),
    Case("a greater token", lambda m, x: same_hash(m, x, is_exceeded(x) | ~is_exceeded(x).mT), NOT_CAUSAL),
]  # fmt: skip
MUTANTS = [
    *mutants_of(
        "theorems.operators.pointwise.operands",
        M("any_number_less", '0 <= (number if operator_of(node) == "sub" else -number) < math.inf', "True",
          program="scores less a negative number", quick=True),
    ),
    *mutants_of(
        "theorems.operators.pointwise.pointwise",
        M("any_least_number", 'call.argument(1, "min") == 0', "True", program="weights less a tenth from below"),
    ),
    *mutants_of(
        "theorems.facts.integer_values",
        M("half_above", '(name in ("lt", "ge")) == (place == 1)', "True",
          program="distances above minus one and a half"),
    ),
    *mutants_of(
        "theorems.walks.values_of_a_run",
        M("rows_of_a_run", "not _functions(found) <= own", "False", program="sign of all tokens"),
    ),
]  # fmt: skip
