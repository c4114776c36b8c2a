"""Programs with convolutions, pooling and other resolutions, and which of the open laws they fulfil."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import WIDTH, Case, Program, attend, lower


def _case(name: str, function: object, *laws: str) -> Case:
    return Case(name, function, frozenset(laws))  # type: ignore[arg-type]


def spread(m: Program, x: Tensor, *, front: int = 0, padding: int = 0, dilation: int = 1) -> Tensor:
    """A transposed convolution, from one of its places on."""
    y = F.conv_transpose1d(x.mT, m.depthwise.weight, m.first.bias, padding=padding, dilation=dilation, groups=WIDTH)
    return F.pad(y, (0, max(0, front)))[..., front : front + x.shape[1]].mT


def spread_frames(m: Program, x: Tensor, *, front: int) -> Tensor:
    """Every second frame, spread over the places that it has read with `front` zeros before them."""
    frames = F.conv1d(F.pad(x.mT, (front, 2)), m.depthwise.weight, stride=2, groups=WIDTH)
    return F.conv_transpose1d(frames, m.depthwise.weight, stride=2, groups=WIDTH)[..., : x.shape[1]].mT


def images(x: Tensor) -> Tensor:
    """Each token as an image of one channel [batch * token, 1, 2, 3]."""
    return x.reshape(-1, 1, 2, WIDTH // 2)


def largest_of_three(m: Program, x: Tensor) -> Tensor:
    """The largest of three features with its place, for each token."""
    values, places = F.max_pool1d(x, 3, return_indices=True)
    return torch.cat([values, places.to(x.dtype)], -1)


def pooled(x: Tensor, padding: tuple[int, int] = (0, 0)) -> Tensor:
    """The largest of three tokens."""
    return F.max_pool2d(x[:, None], (3, 1), (1, 1), padding)[:, 0]


def largest_in_an_image(m: Program, x: Tensor) -> Tensor:
    """The largest features of each token as an image, with their places."""
    values, places = F.adaptive_max_pool2d(images(x), (1, 2), return_indices=True)
    return torch.cat([values.reshape(*x.shape[:2], -1), places.reshape(*x.shape[:2], -1).to(x.dtype)], -1)


def rows_as_channels(m: Program, x: Tensor) -> Tensor:
    """A convolution with one group for each feature of each row."""
    b, n, _ = x.shape
    merged = x.mT.reshape(1, b * WIDTH, n)
    weight = m.depthwise.weight.repeat(b, 1, 1)
    return F.conv1d(F.pad(merged, (2, 0)), weight, groups=b * WIDTH).view(b, WIDTH, n).mT


def rows_in_one_group(m: Program, x: Tensor) -> Tensor:
    """A convolution whose channels are the rows, all of which each result reads."""
    weight = m.first.weight[:1, :1].expand(x.shape[0], x.shape[0])[..., None]
    return x + F.conv1d(x[..., 0][None], weight)[0, ..., None]


def without_rows(m: Program, x: Tensor) -> Tensor:
    """A convolution of one row, which all rows see."""
    return x + F.conv1d(F.pad(x[0].mT, (2, 0)), m.depthwise.weight, groups=WIDTH).mT


def weak_mask(m: Program, x: Tensor) -> Tensor:
    """Attention in which a pooled mask hides later tokens only in part."""
    mask = torch.zeros(x.shape[1], x.shape[1]).masked_fill(~lower(x), -1e9)
    return (m.first(x) @ m.second(x).mT + F.adaptive_avg_pool1d(mask, 1)).softmax(-1) @ m.third(x)


def masked_taps(m: Program, x: Tensor, seen: list[float], *, groups: int = WIDTH) -> Tensor:
    """A convolution around each token, whose weights are multiplied by a mask of taps."""
    weight = m.depthwise.weight if groups == WIDTH else m.first.weight[..., None].expand(-1, -1, 3)
    return F.conv1d(x.mT, weight * torch.tensor(seen), padding=1, groups=groups).mT


def masked_by_channel(m: Program, x: Tensor) -> Tensor:
    """Only the weights of the first channel are masked."""
    mask = torch.ones(WIDTH, 1, 3)
    mask[0, :, 2] = 0
    return F.conv1d(x.mT, m.depthwise.weight * mask, padding=1, groups=WIDTH).mT


def masked_taps_of_large_numbers(m: Program, x: Tensor) -> Tensor:
    """Zero times a number that may be infinite is none."""
    large = torch.where(x > 1, float("inf"), x)
    weight = m.depthwise.weight * torch.tensor([1.0, 1.0, 0.0])
    return F.conv1d(large.mT, weight, padding=1, groups=WIDTH).mT.isnan().to(x.dtype)


def long_filter(m: Program, x: Tensor, *, ahead: int = 0, flipped: bool = True) -> Tensor:
    """A convolution with as many taps as there are tokens."""
    n = x.shape[1]
    lags = torch.arange(n).flip(0) if flipped else torch.arange(n)
    kernel = torch.exp(-m.sink.abs() * lags)[None, None].expand(WIDTH, 1, n)
    return F.conv1d(F.pad(x.mT, (n - 1, ahead)), kernel, groups=WIDTH)[..., ahead:].mT


PROGRAMS = [
    _case("taps up to the own token", lambda m, x: masked_taps(m, x, [1.0, 1.0, 0.0]), "causal", "batch"),
    _case("taps of all channels", lambda m, x: masked_taps(m, x, [1.0, 1.0, 0.0], groups=1), "causal", "batch"),
    _case("taps from the own token on", lambda m, x: masked_taps(m, x, [0.0, 1.0, 1.0]), "batch"),
    _case("small taps", lambda m, x: masked_taps(m, x, [1.0, 1.0, 1e-3]), "batch"),
    _case("taps of one channel", masked_by_channel, "batch"),
    _case("taps of large numbers", masked_taps_of_large_numbers, "batch"),
    _case("filter as long as the tokens", long_filter, "causal", "batch"),
    _case("filter that begins with the next token", lambda m, x: long_filter(m, x, ahead=1), "batch"),
    _case("filter of lags that grow", lambda m, x: long_filter(m, x, flipped=False), "causal", "batch"),
    _case("means of windows of features", lambda m, x: F.avg_pool1d(x, 2, 1), "causal", "batch"),
    _case("largest of three with places", largest_of_three, "causal", "batch"),
    _case("largest token of a window before", lambda m, x: pooled(F.pad(x, (0, 0, 2, 0))), "causal", "batch"),
    _case("largest token of a window around", lambda m, x: pooled(x, padding=(1, 0)), "batch"),
    _case("means of few features", lambda m, x: F.adaptive_avg_pool1d(x, 4), "causal", "batch"),
    _case("mean of all tokens by pooling", lambda m, x: x + F.adaptive_avg_pool1d(x.mT, 1).mT, "batch"),
    _case(
        "mean of all rows by pooling",
        lambda m, x: x + F.adaptive_avg_pool1d(x.permute(1, 2, 0), 1)[..., 0],
        "causal",
    ),
    _case("largest in an image", largest_in_an_image, "causal", "batch"),
    _case("pooled over rows", lambda m, x: x + F.adaptive_max_pool1d(x.permute(1, 2, 0), 1)[..., 0], "causal"),
    _case("nearest features", lambda m, x: F.interpolate(x, size=9), "causal", "batch"),
    _case(
        "interpolated images",
        lambda m, x: F.interpolate(images(x), size=(3, 4), mode="bilinear").reshape(*x.shape[:2], -1),
        "causal",
        "batch",
    ),
    _case(
        "cubic images",
        lambda m, x: F.interpolate(images(x), size=(3, 4), mode="bicubic").reshape(*x.shape[:2], -1),
        "causal",
        "batch",
    ),
    _case(
        "smooth images",
        lambda m, x: F.interpolate(images(x), size=(1, 2), mode="bilinear", antialias=True).reshape(*x.shape[:2], -1),
        "causal",
        "batch",
    ),
    _case(
        "rows interpolated",
        lambda m, x: x + F.interpolate(x.permute(1, 2, 0)[None], size=(WIDTH, 2), mode="bilinear")[0].mean(-1),
        "causal",
    ),
    _case(
        "transposed convolution of features",
        lambda m, x: F.conv_transpose1d(x.reshape(-1, 1, WIDTH), m.depthwise.weight[:1]).reshape(*x.shape[:2], -1),
        "causal",
        "batch",
    ),
    _case(
        "transposed convolution of tokens",
        lambda m, x: F.conv_transpose1d(x.mT, m.depthwise.weight, groups=WIDTH)[..., 2:].mT,
        "batch",
    ),
    _case("transposed convolution cut at the end", spread, "causal", "batch"),
    _case("transposed convolution cut one late", lambda m, x: spread(m, x, front=1), "batch"),
    _case("transposed convolution from the end", lambda m, x: spread(m, x.flip(1)).flip(1), "batch"),
    _case("dilated transposed convolution", lambda m, x: spread(m, x, dilation=3), "causal", "batch"),
    _case("transposed convolution with a cut start", lambda m, x: spread(m, x, padding=1, dilation=3), "batch"),
    _case("transposed convolution of padded frames", lambda m, x: spread_frames(m, x, front=2), "causal", "batch"),
    _case("transposed convolution of frames ahead", lambda m, x: spread_frames(m, x, front=1), "batch"),
    _case(
        "padding to the same length",
        lambda m, x: F.conv1d(x.mT, m.depthwise.weight, padding="same", groups=WIDTH).mT,
        "batch",
    ),
    _case(
        "no padding",
        lambda m, x: F.conv1d(F.pad(x.mT, (2, 0)), m.depthwise.weight, padding="valid", groups=WIDTH).mT,
        "causal",
        "batch",
    ),
    _case("rows as channels in groups", rows_as_channels, "causal", "batch"),
    _case("rows as channels in one group", rows_in_one_group, "causal"),
    _case("convolution without rows", without_rows, "causal"),
    _case("mean of a mask", weak_mask, "batch"),
    _case(
        "attention to pooled features",
        lambda m, x: attend(m, F.adaptive_avg_pool1d(x, WIDTH), lower(x)),
        "causal",
        "batch",
    ),
]  # fmt: skip
