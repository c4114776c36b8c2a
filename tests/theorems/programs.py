"""Small modules, which of the open laws they fulfil for every length, and pairs of runs that try to show otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 6


class Program(nn.Module):
    """A module of tokens [batch, token, WIDTH] and, if it takes one, an attention mask [batch, token]."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.first, self.second, self.third = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, 3, groups=WIDTH)
        self.dilated = nn.Conv1d(WIDTH, WIDTH, 3, padding=8, dilation=8)
        self.sink = nn.Parameter(torch.randn(1))
        self.table = nn.Embedding(64, WIDTH)
        self.register_buffer("triangle", torch.ones(64, 64, dtype=torch.bool).tril())

    def forward(self, x: Tensor, *mask: Tensor) -> Tensor:
        """The function's result."""
        return self.function(self, x, *mask)


def attend(m: Program, x: Tensor, visible: Tensor | None, *, fill: float = float("-inf")) -> Tensor:
    """Attention with a mask of booleans."""
    scores = m.first(x) @ m.second(x).transpose(-1, -2) / WIDTH**0.5
    if visible is not None:
        scores = scores.masked_fill(~visible, fill)
    return scores.softmax(-1) @ m.third(x)


def index(x: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys as indices that broadcast."""
    i = torch.arange(x.shape[1])
    return i[:, None], i[None, :]


def lower(x: Tensor) -> Tensor:
    """The causal mask."""
    i, j = index(x)
    return j <= i


def late(x: Tensor, filled: Tensor, number: Tensor) -> Tensor:
    """Tokens see later ones if a tensor that is filled with one number equals another number."""
    equal = filled.expand(x.shape[1], x.shape[1]).clone() == number
    return x + equal.to(x.dtype).triu(1) @ x


def with_sink(m: Program, x: Tensor) -> Tensor:
    """Causal attention with a sink."""
    scores = (m.first(x) @ m.second(x).transpose(-1, -2)).masked_fill(~lower(x), -1e9)
    sink = m.sink.expand(*x.shape[:2], 1)
    return torch.cat([scores, sink], -1).softmax(-1)[..., :-1] @ m.third(x)


def chunked(m: Program, x: Tensor) -> Tensor:
    """Causal attention within chunks of four tokens."""
    i, j = index(x)
    return attend(m, x, (j <= i) & (i // 4 == j // 4), fill=torch.finfo(x.dtype).min)


def in_chunks(x: Tensor) -> Tensor:
    """Tokens in chunks of four [batch, chunk, place, WIDTH], the last one filled with zeros."""
    b, n, width = x.shape
    return F.pad(x, (0, 0, 0, (4 - n % 4) % 4)).reshape(b, -1, 4, width)


def from_chunks(x: Tensor, n: int) -> Tensor:
    """The first n tokens of chunks."""
    return x.reshape(x.shape[0], -1, x.shape[-1])[:, :n]


def chunked_scan(m: Program, x: Tensor) -> Tensor:
    """A running sum in chunks: within each, plus the totals of the chunks before it."""
    chunks = in_chunks(m.first(x))
    within = chunks.cumsum(2)
    totals = within[:, :, -1]
    before = torch.cat([torch.zeros_like(totals[:, :1]), totals.cumsum(1)], 1)[:, :-1]
    return from_chunks(within + before[:, :, None], x.shape[1])


def inclusive_chunk_totals(m: Program, x: Tensor) -> Tensor:
    """The faulty scan: each token gets the total of its own chunk too."""
    within = in_chunks(m.first(x)).cumsum(2)
    return from_chunks(within + within[:, :, -1].cumsum(1)[:, :, None], x.shape[1])


def decayed_chunks(m: Program, x: Tensor, diagonal: int = 0) -> Tensor:
    """Products of decays within chunks, as exponentials of sums that are masked above a diagonal."""
    sums = in_chunks(m.first(x)).cumsum(2)[..., 0]
    segments = sums[..., :, None] - sums[..., None, :]
    decay = segments.masked_fill(~torch.ones(4, 4, dtype=torch.bool).tril(diagonal), float("-inf")).exp()
    return from_chunks(decay @ in_chunks(x), x.shape[1])


def heads(m: Program, x: Tensor) -> Tensor:
    """Two heads by torch's fused attention."""
    b, n, _ = x.shape
    q, k, v = (f(x).view(b, n, 2, WIDTH // 2).transpose(1, 2) for f in (m.first, m.second, m.third))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, WIDTH)


def merged(m: Program, x: Tensor) -> Tensor:
    """A map of merged rows and tokens, as mixtures of experts compute it."""
    flat = x.view(-1, WIDTH)
    chosen = m.first(flat).topk(2, dim=-1).indices
    return (m.second(flat) * m.table(chosen).sum(1)).view(x.shape)


def branch_on_length(m: Program, x: Tensor) -> Tensor:
    """Another program from 17 tokens on."""
    return attend(m, x, lower(x)) if x.shape[1] <= 16 else x.flip(1)


def padded(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Causal attention that hides pads, by a finite number."""
    visible = lower(x) & mask[:, None, :].bool()
    return attend(m, x, visible, fill=torch.finfo(x.dtype).min)


def additive(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Attention of an encoder with the mask (1 - mask) * min."""
    bias = (1.0 - mask[:, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
    return (m.first(x) @ m.second(x).transpose(-1, -2) + bias).softmax(-1) @ m.third(x)


def skips_full_mask(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """No mask where every token is real, as transformers does."""
    return attend(m, x, None) if bool(mask.all()) else additive(m, x, mask)


def forgets_full_mask(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """The causal mask too is dropped where every token is real."""
    return attend(m, x, None) if bool(mask.all()) else padded(m, x, mask)


def masked_mean(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """The mean of the real tokens, added to each."""
    weights = mask.to(x.dtype)[..., None]
    return x + (x * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True).clamp(min=1)


def positions_of_mask(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Learned positions counted by the mask."""
    places = (mask.cumsum(1) - 1).clamp(min=0)
    return padded(m, x + m.table(places), mask)


@dataclass(frozen=True)
class Case:
    """A program, and the laws that it fulfils for every length."""

    name: str
    function: Callable[..., Tensor]
    laws: frozenset[str]
    masked: bool = False
    greatest: int | None = None
    least: int = 2
    lengths: tuple[int, ...] = ()  # at which a violation shows, if at none of the usual ones
    pooled: bool = False  # its output has rows and no tokens


def _case(
    name: str, function: Callable[..., Tensor], *laws: str, masked: bool = False, greatest: int | None = None,
    least: int = 2,
) -> Case:  # fmt: skip
    return Case(name, function, frozenset(laws), masked, greatest, least)


def less_largest(m: Program, x: Tensor) -> Tensor:
    """Causal attention whose softmax is taken of scores less the largest of their row."""
    scores = (m.first(x) @ m.second(x).mT).masked_fill(~lower(x), torch.finfo(x.dtype).min)
    return (scores - scores.max(-1, keepdim=True).values).softmax(-1) @ m.third(x)


CASES = [
    _case("token by token", lambda m, x: F.gelu(m.first(F.layer_norm(x, (WIDTH,)))) + x, "causal", "batch"),
    _case("causal attention", lambda m, x: attend(m, x, lower(x)), "causal", "batch"),
    _case(
        "an empty tensor in front",
        lambda m, x: attend(m, torch.cat([torch.zeros(0), x], 1), lower(x)),
        "causal",
        "batch",
    ),
    _case("greater than zero", lambda m, x: torch.where(x > 0, m.first(x), x / 3), "causal", "batch"),
    _case(
        "causal by tril of ones",
        lambda m, x: attend(m, x, torch.ones(x.shape[1], x.shape[1]).tril() == 1),
        "causal",
        "batch",
    ),
    _case(
        "causal by a stored triangle",
        lambda m, x: attend(m, x, m.triangle[: x.shape[1], : x.shape[1]]),
        "causal",
        "batch",
        greatest=64,
    ),
    _case("window of five", lambda m, x: attend(m, x, lower(x) & (index(x)[1] > index(x)[0] - 5)), "causal", "batch"),
    _case(
        "window in reverse", lambda m, x: attend(m, x, lower(x) & (index(x)[1] <= index(x)[0] - 5), fill=-1e9), "batch"
    ),
    _case("scores less their largest", less_largest, "causal", "batch"),
    _case("scan in chunks", chunked_scan, "causal", "batch", least=5),
    _case("scan with the totals of the own chunk", inclusive_chunk_totals, "batch", least=5),
    _case("decays in chunks", decayed_chunks, "causal", "batch", least=5),
    _case("decays in chunks with the next token", lambda m, x: decayed_chunks(m, x, 1), "batch", least=5),
    _case(
        "clamped by tensors",
        lambda m, x: x.clamp(m.sink - 1, m.sink.exp() + (m.sink * 0 + 4).sqrt()),
        "causal",
        "batch",
    ),
    _case("frequencies of features", lambda m, x: torch.fft.rfft(m.first(x)).abs(), "causal", "batch"),
    _case(
        "frequencies of complex features",
        lambda m, x: torch.fft.fft(torch.complex(m.first(x), m.second(x)), dim=-1).imag,
        "causal",
        "batch",
    ),
    _case(
        "frequencies of complex tokens",
        lambda m, x: torch.fft.fft(torch.complex(m.first(x), torch.zeros_like(x)), dim=1).real,
        "batch",
    ),
    _case("frequencies of tokens", lambda m, x: torch.fft.fftn(x, dim=(1, 2)).real, "batch"),
    _case(
        "frequencies of tokens and back",
        lambda m, x: torch.fft.irfft(torch.fft.rfft(x, dim=1).square(), n=x.shape[1], dim=1),
        "batch",
    ),
    _case("chunks", chunked, "causal", "batch"),
    _case("sink", with_sink, "causal", "batch"),
    _case("fused heads", heads, "causal", "batch"),
    _case(
        "linear bias",
        lambda m, x: (
            (m.first(x) @ m.second(x).mT + 0.1 * (index(x)[1] - index(x)[0])).masked_fill(~lower(x), -1e9).softmax(-1)
            @ x
        ),
        "causal",
        "batch",
    ),
    _case(
        "scores scaled by the logarithm of the length so far",
        lambda m, x: attend(
            m, x * (((index(x)[0] + 1).float() / 128000).clamp(min=1.0).log() + 1) * F.logsigmoid(m.sink), lower(x)
        ),
        "causal",
        "batch",
    ),
    _case("two layers", lambda m, x: attend(m, attend(m, x, lower(x)) + x, lower(x)), "causal", "batch"),
    _case("cumulative sum", lambda m, x: x.cumsum(1), "causal", "batch"),
    _case("number in vmap", lambda m, x: torch.vmap(lambda y: y.cumsum(0) / (y[0].norm() + 2.5))(x), "causal", "batch"),
    _case("norm of a row in vmap", lambda m, x: torch.vmap(lambda y: y.cumsum(0) / (y.norm() + 2.5))(x), "batch"),
    _case("causal convolution", lambda m, x: m.depthwise(F.pad(x.mT, (2, 0))).mT, "causal", "batch"),
    _case(
        "cut convolution",
        lambda m, x: F.conv1d(x.mT, m.depthwise.weight, padding=2, groups=WIDTH)[..., : x.shape[1]].mT,
        "causal",
        "batch",
    ),
    _case("shifted tokens", lambda m, x: F.pad(x, (0, 0, 1, 0))[:, :-1], "causal", "batch"),
    _case("positions", lambda m, x: attend(m, x + m.table(torch.arange(x.shape[1])), lower(x)), "causal", "batch"),
    _case("experts", merged, "causal", "batch"),
    _case("another program for long inputs", branch_on_length, "causal", "batch", greatest=16),
    # No law, although most of these look so at seven tokens.
    _case("dilated convolution", lambda m, x: x.cumsum(1) + m.dilated(x.mT).mT, "batch"),
    _case("roll", lambda m, x: x.roll(7, 1), "batch"),
    _case("mask off by one", lambda m, x: attend(m, x, index(x)[1] <= index(x)[0] + 1), "batch"),
    _case("mask that ends at nine", lambda m, x: attend(m, x, lower(x) | (index(x)[0] >= 9)), "batch"),
    _case("mask that ends at thirty", lambda m, x: attend(m, x, lower(x) | (index(x)[1] >= 30)), "batch"),
    _case("diagonal of one", lambda m, x: attend(m, x, torch.ones(x.shape[1], x.shape[1]).tril(1) == 1), "batch"),
    _case("strict mask", lambda m, x: attend(m, x, index(x)[1] < index(x)[0], fill=-1e9), "batch"),
    # A tensor without dimensions takes the dtype of the other operand, in which both are equal from token 100 on.
    _case(
        "number of float64", lambda m, x: late(x, torch.full((), 0.1), torch.tensor(0.1, dtype=torch.float64)), "batch"
    ),
    _case("number that wraps", lambda m, x: late(x, torch.tensor(44, dtype=torch.int8), torch.tensor(300)), "batch"),
    _case("number of float32", lambda m, x: late(x, torch.tensor(0.1).bfloat16(), torch.tensor(0.1)), "batch"),
    _case("mean of all tokens", lambda m, x: x - x.mean(1, keepdim=True), "batch"),
    _case("flip", lambda m, x: x.flip(1).cumsum(1), "batch"),
    _case("window centred", lambda m, x: attend(m, x, (index(x)[1] - index(x)[0]).abs() < 3), "batch"),
    _case("mean of all rows", lambda m, x: x - x.mean(0, keepdim=True), "causal"),
    _case("largest of all", lambda m, x: x / x.abs().amax()),
    _case("last token", lambda m, x: x + x[:, -1:], "batch"),
    _case("last row", lambda m, x: x + x[-1:], "causal"),
    _case("sorted", lambda m, x: x.sort(1).values, "batch"),
    _case("weak mask", lambda m, x: attend(m, x, lower(x), fill=-5.0), "batch"),
    # With an attention mask.
    _case("pads hidden", padded, "causal", "padding", "batch", masked=True),
    _case("pads hidden by a sum", additive, "padding", "batch", masked=True),
    _case("full mask skipped", skips_full_mask, "padding", "batch", masked=True),
    _case("causal mask dropped with a full mask", forgets_full_mask, "padding", "batch", masked=True),
    _case("masked mean", masked_mean, "padding", "batch", masked=True),
    _case("positions counted by the mask", positions_of_mask, "causal", "padding", "batch", masked=True),
    _case(
        "pads as queries only",
        lambda m, x, mask: attend(m, x, lower(x)) * mask[..., None],
        "causal",
        "batch",
        masked=True,
    ),
    _case(
        "mask of another row",
        lambda m, x, mask: attend(m, x, lower(x) & mask.flip(0)[:, None, :].bool(), fill=-1e9),
        "batch",
        masked=True,
    ),
    _case(
        "pads by their number",
        lambda m, x, mask: attend(m, x, lower(x) & (index(x)[1] >= 2), fill=-1e9),
        "batch",
        masked=True,
    ),
]
