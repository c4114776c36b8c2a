"""Experts with a capacity, in the layouts of several libraries: pads and other rows use it up, or do not."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

WIDTH, EXPERTS, CAPACITY = 8, 3, 2


class Routed(nn.Module):
    """An embedding and a layer of experts that drops tokens; `faulty` is the module with the fault."""

    def __init__(self, faulty: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.faulty = faulty
        self.words = nn.Embedding(50, WIDTH)
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
        x = self.words(input_ids)
        return x + self.mix(x, real)

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        """The output of the experts."""
        raise NotImplementedError


class SwitchRouter(Routed):
    """Switch Transformers: priorities are counted along the tokens of a row, `[row, token, expert]`."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        gate, index = self.router(x).softmax(-1).max(-1)
        chosen = one_hot(index, EXPERTS)
        if not self.faulty:
            chosen = chosen * real[..., None]
        priority = torch.cumsum(chosen, dim=-2)  # here
        kept = chosen * (priority <= CAPACITY)
        return torch.einsum("bnd,edf,bne->bnf", x, self.experts, kept * gate[..., None])


class ExpertsFirst(Routed):
    """GShard: `[expert, row * token]`, with a place for each token in the buffer of its expert."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        b, n, d = x.shape
        gate, index = self.router(x).softmax(-1).max(-1)
        mask = one_hot(index, EXPERTS).permute(2, 0, 1)
        if self.faulty:
            flat = mask.flatten(1)
            place = (flat.cumsum(-1) - 1) * flat  # here
        else:
            mask = mask * real
            flat = mask.flatten(1)
            place = ((mask.cumsum(-1) - 1) * mask).flatten(1)
        kept = flat * (place < CAPACITY)
        y = torch.einsum("td,edf->etf", x.reshape(b * n, d), self.experts)
        return (y * (kept * gate.reshape(-1))[..., None]).sum(0).view(b, n, d)


class TopTwo(Routed):
    """Mixtral with a capacity: two experts a token, first choices before second ones."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        b, n, d = x.shape
        hidden = x.view(-1, d)
        weights, selected = torch.topk(self.router(hidden).softmax(-1), 2, dim=-1)
        chosen = one_hot(selected, EXPERTS)
        if not self.faulty:
            chosen = chosen * real.reshape(-1, 1, 1)
            queue = chosen.view(b, n, 2, EXPERTS).cumsum(1).view(-1, 2, EXPERTS)
        else:
            queue = chosen.cumsum(0)  # here
        kept = (chosen * (queue <= CAPACITY)).to(x.dtype)
        scale = (kept * weights[..., None]).sum(1)
        final = torch.zeros_like(hidden)
        for expert in range(EXPERTS):
            final = final + scale[:, expert, None] * (hidden @ self.experts[expert])
        return final.reshape(b, n, d)


class TokensFirst(Routed):
    """fairseq: `[token, row, width]`, flattened with tokens first."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        x, alive = x.transpose(0, 1), real.t()
        n, b, d = x.shape
        flat = x.reshape(-1, d)
        gate, index = self.router(flat).softmax(-1).max(-1)
        chosen = one_hot(index, EXPERTS)
        if self.faulty:
            count = chosen.cumsum(dim=0)  # here
        else:
            chosen = chosen * alive.reshape(-1, 1)
            count = chosen.view(n, b, EXPERTS).cumsum(0).view(-1, EXPERTS)
        kept = torch.where(count > CAPACITY, torch.zeros_like(chosen), chosen).float()
        y = torch.einsum("td,edf,te->tf", flat, self.experts, kept) * gate[:, None]
        return y.view(n, b, d).transpose(0, 1)


class ExpertChoice(Routed):
    """Each expert chooses its tokens by their scores."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        scores = self.router(x).transpose(1, 2)
        if not self.faulty:
            scores = scores.masked_fill(real[:, None] == 0, -torch.inf)
        _, chosen = torch.topk(scores, 1, dim=-1)  # here
        kept = torch.zeros_like(scores).scatter(-1, chosen, 1.0)
        return torch.einsum("bnd,edf,ben->bnf", x, self.experts, kept)


class SharedLoad(Routed):
    """Scores are divided by the load of each expert, a mean over all tokens of the batch."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        b, n, d = x.shape
        scores = self.router(x.view(b * n, d)).softmax(-1)
        load = torch.ones(EXPERTS)
        if self.faulty:
            load = scores.mean(0)  # here
        y = torch.einsum("td,edf,te->tf", x.view(b * n, d), self.experts, scores / load)
        return y.view(b, n, d)
