"""Models whose control flow reads constants only: the graph is the model."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.corpus.recording import ROWS, TOKENS, WIDTH, Model, doubled_if, recorded


# The twins: the same ways, of a constant.
@recorded
def branch_on_a_constant(model: Model, x: Tensor) -> Tensor:
    seen = torch.ones(TOKENS, TOKENS).tril()
    return doubled_if(x, (seen == 0).any())


@recorded
def branch_on_the_norm_of_a_constant(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.arange(4.0).norm().item() > 1)


@recorded
def float_of_a_constant(model: Model, x: Tensor) -> Tensor:
    return x * float(torch.arange(4.0).sum())


@recorded
def loop_over_the_list_of_a_constant(model: Model, x: Tensor) -> Tensor:
    for length in torch.tensor([2, 5]).cumsum(0).tolist():
        x = x + length
    return x


@recorded
def sizes_from_a_constant(model: Model, x: Tensor) -> Tensor:
    kept = torch.ones(TOKENS, dtype=torch.bool)
    kept[3] = False
    first, second = x.split((torch.arange(2) + 3).tolist(), dim=1)
    return x[:, kept] + torch.cat([second, first], 1)[:, kept.nonzero().flatten()]


@recorded
def write_into_the_masked_places(model: Model, x: Tensor) -> Tensor:
    hidden = torch.arange(TOKENS) > 4
    x = x.clone()
    x[:, hidden] = 0
    return x


@recorded
def repeat_as_a_constant_says(model: Model, x: Tensor) -> Tensor:
    rows = torch.repeat_interleave(torch.arange(3), torch.tensor([3, 0, 4]))
    return x + rows[:, None]


@recorded
def masked_select_of_a_constant_mask(model: Model, x: Tensor) -> Tensor:
    return torch.masked_select(x, torch.ones_like(x).tril() > 0)


@recorded
def branch_on_a_constant_written_through_a_view(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    seen.view(2, 2)[1, 0] = 5
    return doubled_if(x, seen[2] == 5)


@recorded
def branch_on_the_shape_of_a_token(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.ones_like(x[..., 0]).sum() == ROWS * TOKENS)


@recorded
def branch_on_a_view_that_no_token_reached(model: Model, x: Tensor) -> Tensor:
    seen, other = torch.zeros(WIDTH), torch.zeros(WIDTH)
    seen += x[0, 0]
    return doubled_if(x + seen, other.sum() == 0)
