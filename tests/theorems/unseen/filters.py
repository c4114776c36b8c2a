"""Convolutions, filters and transforms along the tokens, and tokens shifted."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts

UNSEEN = Corpus()


def _filter(m: Parts, x: Tensor, front: int, end: int = 0, dilation: int = 1) -> Tensor:
    """A convolution of three tokens, with zeros before the first and after the last one."""
    return F.conv1d(F.pad(x.mT, (front, end)), m.conv.weight, m.conv.bias, dilation=dilation).mT


@UNSEEN.add(causal=True, batch=True)
def residual_block_of_two_convolutions(m: Parts, x: Tensor) -> Tensor:
    y = F.relu(_filter(m, x, 4, dilation=2))
    y = F.relu(_filter(m, y, 4, dilation=2))
    return F.relu(x + y)


@UNSEEN.add(causal=False, batch=True)
def padding_by_half_the_dilated_width(m: Parts, x: Tensor) -> Tensor:
    y = x
    for dilation in (1, 2):
        y = y + _filter(m, y, dilation, dilation, dilation).relu()
    return y


@UNSEEN.add(causal=True, batch=True)
def frames_of_a_stride_repeated(m: Parts, x: Tensor) -> Tensor:
    frames = F.conv1d(F.pad(x.mT, (2, 0)), m.conv.weight, m.conv.bias, stride=2)
    return frames.repeat_interleave(2, dim=-1)[..., : x.shape[1]].mT


@UNSEEN.add(causal=False, batch=True)
def frames_of_a_stride_padded_for_coverage(m: Parts, x: Tensor) -> Tensor:
    frames = F.conv1d(F.pad(x.mT, (1, x.shape[1] % 2)), m.conv.weight, m.conv.bias, stride=2)
    return frames.repeat_interleave(2, dim=-1)[..., : x.shape[1]].mT


@UNSEEN.add(causal=True, batch=True)
def frames_of_a_stride_spread_by_a_transposed_filter(m: Parts, x: Tensor) -> Tensor:
    frames = F.elu(F.conv1d(F.pad(x.mT, (2, 0)), m.conv.weight, m.conv.bias, stride=2))
    return F.conv_transpose1d(frames, m.conv.weight, stride=2)[..., : x.shape[1]].mT


@UNSEEN.add(causal=True, batch=True)
def transposed_filter_cut_at_the_end(m: Parts, x: Tensor) -> Tensor:
    return F.conv_transpose1d(x.mT, m.conv.weight, m.conv.bias)[..., :-2].mT


@UNSEEN.add(causal=False, batch=True)
def transposed_filter_cut_at_both_ends(m: Parts, x: Tensor) -> Tensor:
    return F.conv_transpose1d(x.mT, m.conv.weight, m.conv.bias, padding=1).mT


@UNSEEN.add(causal=True, batch=True)
def depthwise_then_pointwise(m: Parts, x: Tensor) -> Tensor:
    y = F.conv1d(F.pad(x.mT, (3, 0)), m.depthwise.weight, groups=WIDTH)
    return m.down(F.hardswish(m.up(y.mT)))


@UNSEEN.add(causal=True, batch=True)
def filter_of_softmax_weights(m: Parts, x: Tensor) -> Tensor:
    w = m.depthwise.weight.view(2, 4, 4).mean(1).softmax(-1).repeat_interleave(4, 0)[:, None]
    return m.o(F.conv1d(F.pad(F.glu(m.up(x), -1).mT, (3, 0)), w, groups=WIDTH).mT)


@UNSEEN.add(causal=True, batch=True)
def filter_made_by_each_token(m: Parts, x: Tensor) -> Tensor:
    w = m.router(x).softmax(-1)
    windows = F.pad(m.v(x), (0, 0, 3, 0)).unfold(1, 4, 1)
    return m.o((windows @ w.unsqueeze(-1)).squeeze(-1))


@UNSEEN.add(causal=False, batch=True)
def filter_made_by_the_mean_token(m: Parts, x: Tensor) -> Tensor:
    w = m.router(x.mean(1)).softmax(-1)
    windows = F.pad(m.v(x), (0, 0, 3, 0)).unfold(1, 4, 1)
    return torch.einsum("btdk,bk->btd", windows, w)


@UNSEEN.add(causal=False, batch=True)
def modes_of_a_fourier_layer(m: Parts, x: Tensor) -> Tensor:
    modes = torch.fft.rfft(x, dim=1)
    kept = modes[:, :3] @ torch.complex(m.q.weight, m.k.weight)
    y = torch.fft.irfft(F.pad(kept, (0, 0, 0, modes.shape[1] - 3)), n=x.shape[1], dim=1)
    return F.gelu(y + m.v(x))


@UNSEEN.add(causal=False, batch=True)
def gates_of_all_frequencies(m: Parts, x: Tensor) -> Tensor:
    y = torch.fft.rfft(m.norm(x), dim=1, norm="ortho")
    y = y * m.square[: y.shape[1], :WIDTH]
    return x + torch.fft.irfft(y, n=x.shape[1], dim=1, norm="ortho")


@UNSEEN.add(causal=False, batch=True, permutation=True)
def magnitude_of_the_mean_frequency_removed(m: Parts, x: Tensor) -> Tensor:
    return m.down(F.silu(m.up(x - torch.fft.rfft(x, dim=1).real[:, :1] / x.shape[1])))


@UNSEEN.add(causal=True, batch=True)
def spectra_of_windows_before(m: Parts, x: Tensor) -> Tensor:
    frames = F.pad(x, (0, 0, 3, 0)).unfold(1, 4, 1) * torch.hann_window(4, dtype=x.dtype)
    power = torch.fft.rfft(frames, dim=-1).abs()
    return m.o(torch.log1p(power).mean(-1))


@UNSEEN.add(causal=False, batch=True)
def spectra_of_centred_windows(m: Parts, x: Tensor) -> Tensor:
    frames = F.pad(x.mT, (2, 2), mode="reflect").unfold(-1, 5, 1)
    return m.o(torch.fft.rfft(frames, dim=-1).abs().sum(-1).mT)


@UNSEEN.add(causal=True, batch=True)
def moving_sum_by_a_filter_of_ones(m: Parts, x: Tensor) -> Tensor:
    ones = torch.ones(WIDTH, 1, 4, dtype=x.dtype)
    counts = torch.arange(1, x.shape[1] + 1).clamp(max=4)
    return m.o(x - F.conv1d(F.pad(x.mT, (3, 0)), ones, groups=WIDTH).mT / counts[:, None])


@UNSEEN.add(causal=True, batch=True)
def second_differences(m: Parts, x: Tensor) -> Tensor:
    one, two = F.pad(x, (0, 0, 1, 0))[:, :-1], F.pad(x, (0, 0, 2, 0))[:, :-2]
    return m.down(F.gelu(m.up(x - 2 * one + two)))


@UNSEEN.add(causal=True, batch=True)
def high_tones_emphasized(m: Parts, x: Tensor) -> Tensor:
    return m.norm(torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], dim=1))


@UNSEEN.add(causal=True, batch=True)
def filter_with_two_outputs_fed_back(m: Parts, x: Tensor) -> Tensor:
    x1 = x2 = y1 = y2 = torch.zeros_like(x[:, 0])
    out = []
    for u in x.unbind(1):
        y = 0.2 * u + 0.4 * x1 + 0.2 * x2 + 0.5 * y1 - 0.1 * y2
        x1, x2, y1, y2 = u, x1, y, y1
        out.append(y)
    return m.o(torch.stack(out, 1))


@UNSEEN.add(causal=False, batch=True)
def features_shifted_both_ways(m: Parts, x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[:, :-1, :2] = x[:, 1:, :2]
    y[:, 1:, 2:4] = x[:, :-1, 2:4]
    y[:, :, 4:] = x[:, :, 4:]
    return x + m.o(y)


@UNSEEN.add(causal=True, batch=True)
def features_shifted_online(m: Parts, x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 1:, :3] = x[:, :-1, :3]
    y[:, 0, :3] = 0
    return x + m.o(y)


@UNSEEN.add(causal=False, batch=True)
def filter_over_reflected_tokens(m: Parts, x: Tensor) -> Tensor:
    return m.conv(F.pad(x.transpose(1, 2), (2, 0), mode="reflect")).transpose(1, 2)


@UNSEEN.add(causal=True, batch=True)
def filter_over_the_first_token_repeated(m: Parts, x: Tensor) -> Tensor:
    return F.silu(m.conv(F.pad(x.transpose(1, 2), (2, 0), mode="replicate"))).transpose(1, 2)


@UNSEEN.add(causal=False, batch=True)
def filter_over_a_ring(m: Parts, x: Tensor) -> Tensor:
    return m.conv(F.pad(x.transpose(1, 2), (2, 0), mode="circular")).transpose(1, 2)


@UNSEEN.add(causal=True, batch=True)
def filter_of_time_and_features(m: Parts, x: Tensor) -> Tensor:
    image = F.pad(x.unsqueeze(1), (1, 1, 2, 0))
    return x + F.conv2d(image, m.square[:3, :3].reshape(1, 1, 3, 3)).squeeze(1).tanh()


@UNSEEN.add(causal=False, batch=True)
def filter_of_time_and_features_padded_alike(m: Parts, x: Tensor) -> Tensor:
    return x + F.conv2d(x.unsqueeze(1), m.square[:3, :3].view(1, 1, 3, 3), padding=1).squeeze(1)


@UNSEEN.add(causal=True, batch=True)
def grouped_filters_with_a_shuffle(m: Parts, x: Tensor) -> Tensor:
    y = F.conv1d(F.pad(x.mT, (2, 0)), m.conv.weight[:, :4], groups=2)
    b, c, t = y.shape
    return m.o(y.view(b, 2, c // 2, t).transpose(1, 2).reshape(b, c, t).mT)


@UNSEEN.add(masked=True, padding=True, batch=True)
def filter_divided_by_its_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[:, None].to(x.dtype)
    y = F.conv1d(x.mT * real, m.conv.weight, padding=1)
    n = F.conv1d(real, torch.ones(1, 1, 3, dtype=x.dtype), padding=1)
    return (y * 3 / n.clamp(min=1) + m.conv.bias[:, None]).mT


@UNSEEN.add(causal=False, batch=True)
def halves_of_haar_waves(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(x, (0, 0, 0, x.shape[1] % 2))
    mean, detail = (y[:, ::2] + y[:, 1::2]) / 2, (y[:, ::2] - y[:, 1::2]) / 2
    detail = F.softshrink(m.v(detail), 0.1)
    return torch.stack([mean + detail, mean - detail], dim=2).flatten(1, 2)[:, : x.shape[1]]


@UNSEEN.add(causal=True, batch=True)
def waves_with_holes(m: Parts, x: Tensor) -> Tensor:
    low, out = x, torch.zeros_like(x)
    for hole, layer in zip((1, 2, 4), (m.q, m.k, m.v), strict=True):
        smooth = (low + F.pad(low, (0, 0, hole, 0))[:, : x.shape[1]]) / 2
        out, low = out + layer(low - smooth), smooth
    return out + m.o(low)


@UNSEEN.add(causal=True, batch=True)
def filter_masked_after_its_centre(m: Parts, x: Tensor) -> Tensor:
    seen = torch.tensor([1.0, 1.0, 0.0], dtype=x.dtype)
    return F.conv1d(x.mT, m.conv.weight * seen, m.conv.bias, padding=1).mT


@UNSEEN.add(causal=False, batch=True)
def filter_masked_before_its_centre(m: Parts, x: Tensor) -> Tensor:
    seen = torch.tensor([1.0, 1.0, 0.0], dtype=x.dtype).flip(0)
    return F.conv1d(x.mT, m.conv.weight * seen, m.conv.bias, padding=1).mT


@UNSEEN.add(causal=True, batch=True, permutation=True)
def filter_along_the_features(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    return F.conv1d(x.reshape(b * t, 1, d), m.conv.weight[:1, :1], padding=1).view(b, t, d) + x


@UNSEEN.add(causal=False, batch=False)
def filter_over_rows_joined(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    return F.gelu(_filter(m, x.reshape(1, b * t, d), 2)).view(b, t, d)


@UNSEEN.add(causal=True, batch=True)
def polynomial_of_a_shift(m: Parts, x: Tensor) -> Tensor:
    y, total = x, torch.zeros_like(x)
    for layer in (m.q, m.k, m.v):
        total = total + layer(y)
        y = nn.functional.pad(y, (0, 0, 1, 0))[:, :-1]
    return m.norm(total)
