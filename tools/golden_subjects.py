"""Small modules that `golden.py` audits: honest ones, faulty ones, and some that cannot be decided or called."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orderproof.blocks import fingerprint_model

WIDTH = 8


Subject = tuple[nn.Module, tuple[Tensor, ...]]


def seeded(make: Callable[..., nn.Module], *arguments: object, width: int = WIDTH, **options: object) -> Subject:
    """A module with the same random weights every time, and vectors for it to read."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make(*arguments, **options).eval(), (torch.randn(2, 7, width),)


class Attention(nn.Module):
    """Self-attention whose mask is chosen by the diagonal from which later tokens are hidden."""

    def __init__(self, diagonal: int | None = None) -> None:
        super().__init__()
        self.qkv, self.diagonal = nn.Linear(WIDTH, 3 * WIDTH), diagonal

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        scores = query @ key.transpose(1, 2)
        if self.diagonal is not None:
            hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(self.diagonal)
            scores = scores.masked_fill(hidden, float("-inf"))
        return torch.softmax(scores, -1) @ value


class ZeroTable(Attention):
    """A learned position table that is all zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(16, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + self.table[: x.shape[1]])


class DeepSet(nn.Module):
    """A sum over tokens between two networks."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(torch.relu(self.inner(x)).sum(1))


class Masked(nn.Module):
    """Attention with a padding mask; `leak` ignores it."""

    leak = False

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        scores = query @ key.transpose(1, 2)
        if attention_mask is not None and not self.leak:
            scores = scores.masked_fill(~attention_mask.bool()[:, None, :], float("-inf"))
        return torch.softmax(scores, -1) @ value


class Leaking(Masked):
    """The same without the mask."""

    leak = True


class LeakyBatch(nn.Module):
    """Each row minus the mean of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0, keepdim=True)


class RandomNoise(nn.Module):
    """Noise added in evaluation too."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.randn_like(x)


class Stateful(nn.Module):
    """Adds what the last call ended with."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.last
        self.last = x[0, -1].detach().clone()
        return y


class Undecidable(nn.Module):
    """Sorts by a learned score, which no lemma covers."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        order = self.score(x).squeeze(-1).argsort(1)
        return x + 0 * x.gather(1, order[..., None].expand_as(x)).cumprod(1)


class Failing(nn.Module):
    """Raises in every call."""

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("this model cannot be called")


class TwoOutputs(Attention):
    """An output for each token and a pooled one."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = super().forward(x)
        return {"tokens": y, "pooled": y.mean(1)}


def encoder_layer() -> Subject:
    return seeded(nn.TransformerEncoderLayer, 16, 2, 32, batch_first=True, width=16)


class DecoderStack(nn.Module):
    """PyTorch's encoder layers with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.layers(x, mask=mask, is_causal=True)


class Convolution(nn.Module):
    """A causal convolution of width 3."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2)


def decoder_stack() -> Subject:
    return seeded(DecoderStack, width=16)


def attention() -> Subject:
    return seeded(Attention)


def lstm() -> Subject:
    return seeded(nn.LSTM, WIDTH, 2 * WIDTH, batch_first=True)


def gru() -> Subject:
    return seeded(nn.GRU, WIDTH, WIDTH, batch_first=True)


def convolution() -> Subject:
    return seeded(Convolution)


def deep_set() -> Subject:
    return seeded(DeepSet)


def pooled() -> Subject:
    return seeded(lambda: nn.Sequential(Attention(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)))


def off_by_one() -> Subject:
    return seeded(Attention, 2)


def padded() -> Subject:
    return seeded(Masked)


def unmasked_pads() -> Subject:
    return seeded(Leaking)


def leaky_batch() -> Subject:
    return seeded(LeakyBatch)


def random_noise() -> Subject:
    return seeded(RandomNoise)


def stateful() -> Subject:
    return seeded(Stateful)


def undecidable() -> Subject:
    return seeded(Undecidable)


def fails() -> Subject:
    return Failing()


def two_outputs() -> Subject:
    return seeded(TwoOutputs)


def zero_table() -> Subject:
    return seeded(ZeroTable)


def sinusoidal_encoder() -> Subject:
    return seeded(fingerprint_model, "sinusoidal", causal=False, width=32)


def alibi_encoder() -> Subject:
    return seeded(fingerprint_model, "alibi", causal=False, width=32)


def t5_encoder() -> Subject:
    return seeded(fingerprint_model, "t5", causal=False, width=32)


def rope_decoder() -> Subject:
    return seeded(fingerprint_model, "rotary", causal=True, width=32)


def alibi_decoder() -> Subject:
    return seeded(fingerprint_model, "alibi", causal=True, width=32)


def learned_decoder() -> Subject:
    return seeded(fingerprint_model, "learned", causal=True, width=32)


def none_decoder() -> Subject:
    return seeded(fingerprint_model, "none", causal=True, width=32)
