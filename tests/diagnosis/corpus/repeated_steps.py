"""Programs whose steps repeat, and programs whose steps only look the same."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orderproof import laws
from tests.diagnosis.corpus.parts import FUTURE, attend, big, scores
from tests.diagnosis.walking import TOKENS, WIDTH, Function, Program, examine, walk


def layers(x: Tensor, layer: Function) -> Tensor:
    """The same layer three times."""
    for _ in range(3):
        x = layer(x)
    return x


def written(x: Tensor, row: Tensor) -> Tensor:
    """The same step before and after a write to a view of its operand."""
    held = x.clone()
    before = held.cumsum(1)
    held.view(-1, WIDTH)[:2].add_(row)
    return before + held.cumsum(1)


class Weighted(nn.Module):
    """Layers with weights of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(WIDTH, 2, 8, batch_first=True) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, src_mask=torch.zeros(TOKENS, TOKENS).masked_fill(FUTURE, -torch.inf))
        return x


GRAPHS: dict[str, nn.Module | Function] = {
    "weighted": Weighted(),
    "causal": lambda x: layers(x, lambda y: attend(y, FUTURE)),
    "finite_mask": lambda x: layers(x, lambda y: (scores(y) + big()).softmax(-1) @ y),
    "masks_of_one_shape": lambda x: attend(attend(attend(x, FUTURE), FUTURE.roll(1, 1)), FUTURE.T),
    "literals_of_three_types": lambda x: (x + 1) * (x + 1.0) - (x + True) * (x + 2) + (x + 0) * (x + False),
    "literals_filled_in": lambda x: torch.cat(
        [scores(x).masked_fill(FUTURE, v).softmax(-1) for v in (0.0, -1e9, 1e9)], 1
    ),
    "constants_of_one_shape": lambda x: x * torch.zeros(TOKENS, 1) + x * torch.ones(TOKENS, 1) + x * FUTURE[:, :1],
    "constants_of_two_types": lambda x: x * torch.ones(TOKENS, 1).long() + x * torch.ones(TOKENS, 1).double(),
    "dtypes": lambda x: x.double().exp() + x.float().exp() + x.half().exp() + (x > 0).float().exp(),
    "directions": lambda x: x.cumsum(1) + x.flip(1).cumsum(1).flip(1) + x.cumsum(0) + x.cumsum(2),
    "order": lambda x: (x - x.flip(1)) + (x.flip(1) - x) + x.flip(1).flip(1),
    "slices": lambda x: x[:, :2].sum(1, keepdim=True) + x[:, 2:4].sum(1, keepdim=True) + x[:, 1:3].sum(1, keepdim=True),
    "masks_of_data": lambda x: layers(x, lambda y: attend(y, (y[..., :1] > 0).mT & ~FUTURE)),
    "attention": lambda x: layers(x, lambda y: F.scaled_dot_product_attention(y, y, y, is_causal=True))
    + layers(x, lambda y: F.scaled_dot_product_attention(y, y, y)),
    "several_results": lambda x: x.max(1).values[:, None] + x.max(1).indices[:, None] + x.sort(1).values,
    "written": lambda x: written(x, x[:, -1]) + written(x, x[:, 0]),
    "views": lambda x: layers(x, lambda y: y.view(2, -1).relu_().view(y.shape).transpose(1, 2).transpose(1, 2)),
}  # fmt: skip

HALF = torch.zeros(TOKENS, 1, dtype=torch.bool).index_fill(0, torch.tensor([1, 3]), True)
DIFFERENT: dict[str, tuple[str, Function]] = {  # name -> law, and a program in which no step repeats another
    "whole_and_real_literals": ("causal", lambda x, w: (x + 1) * (x + 1.0)),
    "whole_and_boolean_literals": ("causal", lambda x, w: (x + 1) * (x + True)),
    "signed_zeros": ("causal", lambda x, w: (x + 0.0) * (x + -0.0)),
    "values_of_constants": (
        "causal",
        lambda x, w: (x * torch.zeros(TOKENS, 1)).sum(2) + x.mul(torch.ones(TOKENS, 1))[..., 0],
    ),
    "dtypes_of_operands": ("causal", lambda x, w: x.half().exp().double() + x.double().exp()),
    "dimensions": ("causal", lambda x, w: x.sum(1) + x.sum(2)[:, :WIDTH]),
    "operators": ("causal", lambda x, w: x.exp() + x.expm1()),
    "options": ("causal", lambda x, w: x.add(x, alpha=2) * x.add(x, alpha=3)),
    "shapes": ("causal", lambda x, w: x[:, :1].exp() + x.exp()),
    "levels": ("causal", lambda x, w: x.exp() + x.flip(1).exp()),
    "known_values": ("causal", lambda x, w: x.masked_fill(HALF, 0.0).exp() + x.masked_fill(HALF, 1.0).exp()),
    "moves": (
        "permutation",
        lambda x, w: scores(x).exp() + scores(x.mean(1, keepdim=True).expand(-1, TOKENS, -1)).exp(),
    ),
    "weight_and_given": ("permutation", lambda x, w: torch.stack([x.sum(1)] * 2)[0] * w + x.amax(1) * x.mean(1)),
}


def shared(name: str) -> set[str]:
    """The steps of a program that share the facts of an earlier step."""
    law, function = DIFFERENT[name]
    done = walk(examine(Program(function, w=nn.Parameter(torch.ones(2, WIDTH)))), laws.find_proved_law(law))
    return {f"{n.target}{[str(a) for a in n.args]}" for n in done.walk.first_occurrence}
