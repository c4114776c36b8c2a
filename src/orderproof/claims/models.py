"""The small models that several claims are about, made of `orderproof.blocks`; the same every time they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from orderproof import positions as place
from orderproof.blocks import SelfAttention, Transformer
from orderproof.encodings import NoEncoding

if TYPE_CHECKING:
    from jaxtyping import Float, Int

WIDTH, TOKENS, BATCH = 16, 5, 2
WORDS = ("the", "cat", "chased", "dog")
FIRST, SECOND = (0, 1, 2, 0, 3), (0, 3, 2, 0, 1)  # the cat chased the dog; the dog chased the cat


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """A module with weights drawn with seed 0; the generator of the caller stays where it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


def vectors(tokens: int = TOKENS, *, width: int = WIDTH) -> Float[Tensor, "batch token width"]:
    """Rows of random numbers, in the place of token vectors."""
    return torch.randn(BATCH, tokens, width, generator=torch.Generator().manual_seed(0))


class Numbered(nn.Module):
    """A module to whose input rows their numbers are added first, which gives every row its place."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Number the rows and go on."""
        numbers = 0.1 * torch.arange(x.shape[1], dtype=x.dtype)
        found: Tensor = self.inner(x + numbers[:, None])
        return found


class AttentionSteps(nn.Module):
    """One head of a `SelfAttention`, step by step: what it makes on the way has a name.

    Q = X Wq + bq    K = X Wk + bk    V = X Wv + bv    S = Q K^T / sqrt(width)    A = softmax(S) along rows    Z = A V
    """

    def __init__(self) -> None:
        super().__init__()
        self.attention = SelfAttention(WIDTH, 1, causal=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> dict[str, Tensor]:
        """Every step of it."""
        Q, K, V = self.attention.to_query(x), self.attention.to_key(x), self.attention.to_value(x)
        S = Q @ K.transpose(1, 2) / WIDTH**0.5
        A = torch.softmax(S, -1)
        return {"Q": Q, "K": K, "V": V, "S": S, "A": A, "Z": A @ V}


class Mixing(nn.Module):
    """A `SelfAttention` without positions, from rows to rows."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = SelfAttention(WIDTH, 2, causal=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        """Let every row attend to every row."""
        mixed: Tensor = self.attention(x, place.arange(x.shape[1]), encoding=NoEncoding())
        return mixed


class Reader(nn.Module):
    """Words to vectors, two layers in which all words see all, and the mean of what comes out."""

    def __init__(self, encoding: str = "none") -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS), WIDTH)
        self.transformer = Transformer(WIDTH, 2, 2, encoding=encoding, causal=False, length=16)
        for parameter in self.transformer.encoding.parameters():
            nn.init.normal_(parameter)  # as wide as the words: a table drawn with deviation 0.02 would hide itself

    def forward(self, tokens: Int[Tensor, "batch token"]) -> dict[str, Tensor]:
        """Read the words."""
        x: Tensor = self.transformer(self.words(tokens))
        return {"words": x, "mean": x.mean(1)}


def reader() -> tuple[nn.Module, Tensor]:
    """Two layers over words, without positions, in which every word sees every word."""
    return seeded(Reader), sentences()


def reader_with_positions() -> tuple[nn.Module, Tensor]:
    """Two layers over words, with a learned vector for each position."""
    return seeded(lambda: Reader("learned")), sentences()


def steps() -> tuple[nn.Module, Tensor]:
    """One head of self-attention without positions, step by step."""
    return seeded(AttentionSteps), vectors()


def numbered_steps() -> tuple[nn.Module, Tensor]:
    """One head of self-attention of rows to which their numbers were added, step by step."""
    return seeded(lambda: Numbered(AttentionSteps())), vectors()


def sentences() -> Int[Tensor, "batch token"]:
    """The two sentences, as numbers of words."""
    return torch.tensor([FIRST, SECOND])
