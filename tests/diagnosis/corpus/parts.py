"""Functions and masks that several programs of the corpus use."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.walking import TOKENS

FUTURE = torch.ones(TOKENS, TOKENS).triu(1).bool()
LOWEST = torch.finfo(torch.float32).min


def attending(change: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Self-attention with something done to its scores."""
    return lambda x: change(x @ x.transpose(1, 2)) @ x


def same(x: Tensor) -> Tensor:
    """Every token replaced by the mean token: constant along the tokens."""
    return x.mean(1, keepdim=True).expand_as(x)


def big(sign: float = -1e9) -> Tensor:
    """A finite mask."""
    return torch.zeros(TOKENS, TOKENS).masked_fill(FUTURE, sign)


def scores(x: Tensor) -> Tensor:
    """Scores of every token against every token."""
    return x @ x.transpose(1, 2)


def rare(x: Tensor) -> Tensor:
    """Zero on every input drawn at random: the runs that accompany a proof do not show it."""
    return (x - 30).relu()


def hidden_attention(a: Tensor, v: Tensor, x: Tensor) -> Tensor:
    """Attention to one visible entry and to tokens that are all hidden.

    The weights of the tokens are zero only if the entry is ordinary.
    """
    hidden = scores(x) + torch.full((TOKENS, TOKENS), -1e9)
    made: Tensor = x + torch.cat([a, hidden], -1).softmax(-1)[..., 1:] @ v
    return made


def past(x: Tensor, diagonal: int = 1) -> Tensor:
    """[token, token]: True where a key is hidden."""
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(diagonal)


def attend(x: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Self-attention without weights; `hidden` is True where a token does not see a key."""
    s = scores(x) if hidden is None else scores(x).masked_fill(hidden, -torch.inf)
    return s.softmax(-1) @ x


def causal(x: Tensor) -> Tensor:
    """Self-attention under a causal mask."""
    return attend(x, past(x))


def conv(x: Tensor, kernel: Tensor, padding: tuple[int, int]) -> Tensor:
    return F.conv1d(F.pad(x.transpose(1, 2), padding), kernel).transpose(1, 2)


def counted(x: Tensor) -> Tensor:
    """Each token's place, from a running count of ones."""
    return torch.ones_like(x[..., :1]).cumsum(1)


def shifted(x: Tensor) -> Tensor:
    return x + F.pad(x, (0, 0, 1, 0))[:, :-1]


def added(x: Tensor, bias: Tensor) -> Tensor:
    """Self-attention with something added to its scores."""
    return (scores(x) + bias).softmax(-1) @ x
