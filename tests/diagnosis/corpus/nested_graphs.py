"""Programs with operators that run graphs of their own, each with the laws that hold and those that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops.map import map as map_over
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


class Nested(nn.Module):
    """A function of one tensor [batch, token, width], with a square linear layer to use."""

    def __init__(self, function: Callable[[Nested, Tensor], Tensor]) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.three = nn.Linear(4, 12)
        self.register_buffer("flag", torch.tensor(True))
        self.register_buffer("slope", torch.tensor([0.5, 0.25]))
        self.register_buffer("document", torch.tensor([0, 0, 1, 1, 1]))
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def future(x: Tensor) -> Tensor:
    """Each token becomes the sum of those after it and itself."""
    return x.flip(1).cumsum(1).flip(1)


def cond_of_a_buffer(m: Nested, x: Tensor) -> Tensor:
    made: Any = torch.cond(m.flag, lambda x: m.linear(x) * 1.0, lambda x: x.sin(), (x,))
    return made  # type: ignore[no-any-return]


def cond_one_branch_leaks(m: Nested, x: Tensor) -> Tensor:
    made: Any = torch.cond(m.flag.logical_not(), lambda x: m.linear(x) * 1.0, lambda x: future(x) * 1.0, (x,))
    return made  # type: ignore[no-any-return]


def cond_of_the_data(m: Nested, x: Tensor) -> Tensor:
    made: Any = torch.cond(x.sum() > 0, lambda x: m.linear(x) * 1.0, lambda x: x.sin(), (x,))
    return made  # type: ignore[no-any-return]


def cond_of_the_first_token(m: Nested, x: Tensor) -> Tensor:
    made: Any = torch.cond(x[:, 0].sum() > 0, lambda x: m.linear(x) * 1.0, lambda x: x.sin(), (x,))
    return made  # type: ignore[no-any-return]


def _step(m: Nested) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    def step(carry: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        made = torch.tanh(m.linear(carry) + x)
        return made, made * 2

    return step


def scan_over_tokens(m: Nested, x: Tensor) -> Tensor:
    _, made = scan(_step(m), torch.zeros(x.shape[0], 4), x.transpose(0, 1))
    return made.transpose(0, 1)


def scan_backwards(m: Nested, x: Tensor) -> Tensor:
    _, made = scan(_step(m), torch.zeros(x.shape[0], 4), x.transpose(0, 1), reverse=True)
    return made.transpose(0, 1)


def scan_over_rows(m: Nested, x: Tensor) -> Tensor:
    _, made = scan(_step(m), torch.zeros(x.shape[1], 4), x)
    return made


def scan_adds_its_end(m: Nested, x: Tensor) -> Tensor:
    end, made = scan(_step(m), torch.zeros(x.shape[0], 4), x.transpose(0, 1))
    return made.transpose(0, 1) + end[:, None]


def running_sum(m: Nested, x: Tensor) -> Tensor:
    made: Tensor = associative_scan(torch.add, x, dim=1, combine_mode="generic")
    return made


def map_over_tokens(m: Nested, x: Tensor) -> Tensor:
    made: Tensor = map_over(lambda t: m.linear(t).sin(), x.transpose(0, 1))
    return made.transpose(0, 1)


def map_over_rows(m: Nested, x: Tensor) -> Tensor:
    made: Tensor = map_over(lambda t: t + m.linear(t).mean(0), x)
    return made


def while_a_count(m: Nested, x: Tensor) -> Tensor:
    def going(count: Tensor, x: Tensor) -> Tensor:
        return count < 3

    def turn(count: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return count + 1, m.linear(x).cumsum(1)

    made: Any = while_loop(going, turn, (torch.tensor(0), x))
    return made[1]  # type: ignore[no-any-return]


def while_the_data(m: Nested, x: Tensor) -> Tensor:
    def going(x: Tensor) -> Tensor:
        return x.abs().sum() > 1

    def turn(x: Tensor) -> tuple[Tensor]:
        return (x * 0.5,)

    made: Any = while_loop(going, turn, (x,))
    return made[0]  # type: ignore[no-any-return]


def cond_in_a_scan(m: Nested, x: Tensor) -> Tensor:
    def step(carry: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        made: Any = torch.cond(carry.sum() > 0, lambda c, x: c + x, lambda c, x: c - m.linear(x), (carry, x))
        return made, made * 2

    _, made = scan(step, torch.zeros(x.shape[0], 4), x.transpose(0, 1))
    return made.transpose(0, 1)


def _flex(m: Nested, x: Tensor, **options: Any) -> Tensor:
    batch, tokens, _ = x.shape
    q, k, v = (t.view(batch, tokens, 2, 2).transpose(1, 2) for t in m.three(x).chunk(3, -1))
    made: Any = flex_attention(q, k, v, **options)
    return made.transpose(1, 2).reshape(batch, tokens, 4)  # type: ignore[no-any-return]


def flex_plain(m: Nested, x: Tensor) -> Tensor:
    return _flex(m, x)


def flex_causal(m: Nested, x: Tensor) -> Tensor:
    n = x.shape[1]
    block = create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cpu")
    return _flex(m, x, score_mod=lambda s, b, h, i, j: s + m.slope[h] * (j - i), block_mask=block)


def flex_causal_by_score(m: Nested, x: Tensor) -> Tensor:
    return _flex(m, x, score_mod=lambda s, b, h, i, j: torch.where(j <= i, torch.tanh(s / 5) * 5, -float("inf")))


def flex_mirrored(m: Nested, x: Tensor) -> Tensor:
    return _flex(m, x, score_mod=lambda s, b, h, i, j: s - m.slope[h] * (j - i).abs())


def flex_documents(m: Nested, x: Tensor) -> Tensor:
    n = x.shape[1]

    def seen(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (m.document[i] == m.document[j]) & (i >= j)

    return _flex(m, x, block_mask=create_block_mask(seen, None, None, n, n, device="cpu"))


def flex_sees_one_ahead(m: Nested, x: Tensor) -> Tensor:
    n = x.shape[1]
    return _flex(m, x, block_mask=create_block_mask(lambda b, h, i, j: i + 1 >= j, None, None, n, n, device="cpu"))


def flex_score_of_the_data(m: Nested, x: Tensor) -> Tensor:
    n, rows = x.shape[1], x.mean((1, 2))
    block = create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cpu")
    return _flex(m, x, score_mod=lambda s, b, h, i, j: s + rows[b], block_mask=block)


def flex_key_bias_of_the_data(m: Nested, x: Tensor) -> Tensor:
    n, bias = x.shape[1], x.mean(2)
    block = create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cpu")
    return _flex(m, x, score_mod=lambda s, b, h, i, j: s + bias[b, j], block_mask=block)


def without_gradients(m: Nested, x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x.sin()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = m.linear(y)
    made: Tensor = torch.utils.checkpoint.checkpoint(lambda t: t.float().cos(), z, use_reentrant=False)
    return made


# function -> laws proved, of causal, permutation and reversal; every other one of these is false or not decided.
PROVED: dict[Callable[[Nested, Tensor], Tensor], set[str]] = {
    cond_of_a_buffer: {"causal", "permutation", "reversal", "batch"},
    cond_one_branch_leaks: {"batch"},
    cond_of_the_data: {"permutation", "reversal"},
    cond_of_the_first_token: {"causal"},
    scan_over_tokens: {"causal", "batch"},
    scan_backwards: {"batch"},
    scan_over_rows: {"causal"},
    scan_adds_its_end: {"batch"},
    running_sum: {"causal", "batch"},
    map_over_tokens: {"causal", "permutation", "reversal", "batch"},
    map_over_rows: {"permutation", "reversal", "batch"},
    while_a_count: {"causal", "batch"},
    while_the_data: set(),
    cond_in_a_scan: {"causal"},
    flex_plain: {"permutation", "reversal", "batch"},
    flex_causal: {"causal", "batch"},
    flex_causal_by_score: {"causal", "batch"},
    flex_mirrored: {"reversal", "batch"},
    flex_documents: {"causal", "batch"},
    flex_sees_one_ahead: {"batch"},
    flex_score_of_the_data: {"batch"},
    flex_key_bias_of_the_data: {"causal", "batch"},
    without_gradients: {"causal", "permutation", "reversal", "batch"},
}
