"""Small models shared by several claims, built from `orderproof.blocks` with fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from orderproof import positions as place
from orderproof.blocks import AttentionInputs, SelfAttention, Transformer
from orderproof.encodings import NoEncoding
from orderproof.seeded_random import seeded_random

if TYPE_CHECKING:
    from jaxtyping import Float, Int

WIDTH, TOKENS, BATCH = 16, 5, 2
WORDS = ("the", "cat", "chased", "dog")
FIRST, SECOND = (0, 1, 2, 0, 3), (0, 3, 2, 0, 1)  # the cat chased the dog; the dog chased the cat


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """A module with weights drawn with seed 0, without changing the global generator."""
    with seeded_random(0):
        return make().eval()


def random_vectors(tokens: int = TOKENS, *, width: int = WIDTH) -> Float[Tensor, "batch token width"]:
    """Random token vectors."""
    return torch.randn(BATCH, tokens, width, generator=torch.Generator().manual_seed(0))


class WithRowNumbers(nn.Module):
    """A module with the row number added to each input row, which makes it depend on positions."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Add the row numbers, then call the inner module."""
        numbers = 0.1 * torch.arange(x.shape[1], dtype=x.dtype)
        output: Tensor = self.inner(x + numbers[:, None])
        return output


class AttentionSteps(nn.Module):
    """One head of a `SelfAttention`, with a name for each intermediate result.

    Q = X Wq + bq    K = X Wk + bk    V = X Wv + bv    S = Q K^T / sqrt(width)    A = softmax(S) along rows    Z = A V
    """

    def __init__(self) -> None:
        super().__init__()
        self.attention = SelfAttention(WIDTH, 1, causal=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> dict[str, Tensor]:
        """The intermediate results and the output."""
        Q, K, V = self.attention.to_query(x), self.attention.to_key(x), self.attention.to_value(x)
        S = Q @ K.transpose(1, 2) / WIDTH**0.5
        A = torch.softmax(S, -1)
        return {"Q": Q, "K": K, "V": V, "S": S, "A": A, "Z": A @ V}


class AttentionBlock(nn.Module):
    """A `SelfAttention` without positions."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = SelfAttention(WIDTH, 2, causal=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        """Attend from every row to every row."""
        output: Tensor = self.attention(x, AttentionInputs(encoding=NoEncoding(), positions=place.arange(x.shape[1])))
        return output


class MeanPooledEncoder(nn.Module):
    """Word embeddings, two bidirectional layers, and the mean of the output."""

    def __init__(self, encoding: str = "none") -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS), WIDTH)
        self.transformer = Transformer(WIDTH, 2, 2, encoding=encoding, causal=False, length=16)
        for parameter in self.transformer.encoding.parameters():
            nn.init.normal_(
                parameter
            )  # with the scale of the word embeddings: at the default 0.02, positions have little effect

    def forward(self, tokens: Int[Tensor, "batch token"]) -> dict[str, Tensor]:
        """Encode the words."""
        x: Tensor = self.transformer(self.words(tokens))
        return {"words": x, "mean": x.mean(1)}


def mean_pooled_encoder() -> tuple[nn.Module, Tensor]:
    """Two bidirectional layers over words, without positions."""
    return seeded(MeanPooledEncoder), sentences()


def mean_pooled_encoder_with_positions() -> tuple[nn.Module, Tensor]:
    """Two bidirectional layers over words, with learned positions."""
    return seeded(lambda: MeanPooledEncoder("learned")), sentences()


def attention_steps() -> tuple[nn.Module, Tensor]:
    """One head of self-attention without positions."""
    return seeded(AttentionSteps), random_vectors()


def attention_steps_with_row_numbers() -> tuple[nn.Module, Tensor]:
    """One head of self-attention with row numbers added to its input."""
    return seeded(lambda: WithRowNumbers(AttentionSteps())), random_vectors()


def sentences() -> Int[Tensor, "batch token"]:
    """The two sentences, as token ids."""
    return torch.tensor([FIRST, SECOND])
