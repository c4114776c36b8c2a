"""Training and forecasting: convolutions, patches, shifted targets and loops that feed outputs back."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _chomped(m: Parts, h: Tensor, dilation: int) -> Tensor:
    pad = 2 * dilation
    y = F.conv1d(h, m.conv.weight, m.conv.bias, padding=pad, dilation=dilation)
    return F.relu(y[:, :, :-pad].contiguous())


@UNSEEN.add(causal=True, batch=True)
def chomped_convolutions(m: Parts, x: Tensor) -> Tensor:
    h = x.transpose(1, 2)
    for level in range(3):
        h = F.relu(_chomped(m, _chomped(m, h, 2**level), 2**level) + h)
    return h.transpose(1, 2)


@UNSEEN.add(causal=False, batch=True)
def convolutions_chomped_at_the_front(m: Parts, x: Tensor) -> Tensor:
    h = x.mT
    for dilation in (1, 2):
        y = F.conv1d(h, m.conv.weight, m.conv.bias, padding=2 * dilation, dilation=dilation)
        h = h + F.relu(y[:, :, 2 * dilation :])
    return h.mT


@UNSEEN.add(causal=False, batch=True)
def chomp_that_forgets_the_dilation(m: Parts, x: Tensor) -> Tensor:
    h = x.mT
    for dilation in (1, 2):
        y = F.conv1d(F.pad(h, (2, 2 * dilation - 2)), m.conv.weight, m.conv.bias, dilation=dilation)
        h = h + F.relu(y)
    return h.mT


@UNSEEN.add(causal=True, batch=True)
def gated_stack_with_skips(m: Parts, x: Tensor) -> Tensor:
    h, skips = x.mT, torch.zeros_like(x.mT)
    for dilation in (1, 2, 4):
        y = F.conv1d(F.pad(h, (2 * dilation, 0)), m.conv.weight, m.conv.bias, dilation=dilation)
        y = torch.tanh(y) * torch.sigmoid(F.pad(h, (dilation, 0))[..., : x.shape[1]])
        skips = skips + y
        h = h + m.o(y.mT).mT
    return m.v(F.relu(skips.mT))


@UNSEEN.add(causal=True, batch=True)
def halved_then_repeated(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    h = F.conv1d(F.pad(x.mT, (2, 0)), m.conv.weight, m.conv.bias, stride=2)
    return x + m.o(F.relu(h.repeat_interleave(2, -1)[..., :t]).mT)


@UNSEEN.add(causal=False, batch=True)
def halved_by_a_pool_then_repeated(m: Parts, x: Tensor) -> Tensor:
    h = F.avg_pool1d(x.mT, 2, ceil_mode=True)
    return x + m.o(F.interpolate(h, scale_factor=2, mode="nearest")[..., : x.shape[1]].mT)


@UNSEEN.add(causal=False, batch=True)
def halved_then_interpolated(m: Parts, x: Tensor) -> Tensor:
    h = F.relu(m.conv(F.pad(x.mT, (2, 0))))[..., ::2]
    return x + F.interpolate(h, size=x.shape[1], mode="linear", align_corners=False).mT


@UNSEEN.add(causal=False, batch=True)
def even_and_odd_steps_exchange(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    pairs = F.pad(x, (0, 0, 0, t % 2)).view(x.shape[0], -1, 2, WIDTH)
    even, odd = pairs[:, :, 0], pairs[:, :, 1]
    even, odd = even * torch.tanh(m.q(odd)), odd * torch.tanh(m.k(even))
    return torch.stack([even, odd], 2).flatten(1, 2)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def odd_steps_read_even_ones(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    pairs = F.pad(x, (0, 0, 0, t % 2)).unflatten(1, (-1, 2))
    even, odd = pairs.unbind(2)
    return torch.stack([even, odd + m.o(even)], 2).flatten(1, 2)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def own_patch_spread_over_its_steps(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    patches = F.pad(x, (0, 0, 0, -t % 4)).view(b, -1, 4 * d)
    h = F.linear(patches, m.square[:WIDTH, : 4 * WIDTH])
    return x + m.o(h).repeat_interleave(4, 1)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def patch_before_spread_over_the_next(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    patches = F.pad(x, (0, 0, 0, -t % 4)).view(b, -1, 4 * d)
    h = m.norm(F.linear(patches, m.square[:WIDTH, : 4 * WIDTH]))
    h = F.pad(h, (0, 0, 1, 0))[:, :-1]
    return x + h.repeat_interleave(4, 1)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def patches_attend_to_patches_before(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    patches = F.pad(x, (0, 0, 0, -t % 4)).reshape(b, -1, 4, d)
    h = m.o(patches.mean(2))
    h = h + F.scaled_dot_product_attention(m.q(h), m.k(h), m.v(h), is_causal=True)
    h = torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], 1)
    return x + h[:, torch.arange(t) // 4]


@UNSEEN.add(causal=False, batch=True)
def patches_by_unfold_overlap(m: Parts, x: Tensor) -> Tensor:
    padded = F.pad(x.mT, (0, 3), mode="replicate")
    patches = padded.unfold(-1, 4, 1).permute(0, 2, 1, 3).flatten(2)
    return F.linear(patches, m.square[:WIDTH, : 4 * WIDTH])


@UNSEEN.add(causal=True, batch=True)
def inputs_shifted_behind_a_start(m: Parts, x: Tensor) -> Tensor:
    start = m.latents[:1].expand(x.shape[0], -1, -1)
    h = torch.cat([start, x[:, :-1]], 1)
    return m.scores(h).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(h)


@UNSEEN.add(causal=True, batch=True)
def inputs_shifted_by_a_copy(m: Parts, x: Tensor) -> Tensor:
    h = x.new_zeros(x.shape)
    h[:, 1:] = x[:, :-1].clone()
    h[:, 0] = m.latents[0]
    return h + m.join(F.scaled_dot_product_attention(*m.heads(m.norm(h)), is_causal=True))


@UNSEEN.add(causal=False, batch=True)
def inputs_shifted_the_other_way(m: Parts, x: Tensor) -> Tensor:
    h = x.new_zeros(x.shape)
    h[:, :-1] = x[:, 1:]
    h[:, -1] = m.latents[0]
    return m.join(F.scaled_dot_product_attention(*m.heads(h), is_causal=True))


@UNSEEN.add(causal=False, batch=True)
def shifted_inputs_read_the_whole_memory(m: Parts, x: Tensor) -> Tensor:
    memory = m.norm(x)
    h = F.pad(x, (0, 0, 1, 0))[:, :-1]
    h = h + m.join(F.scaled_dot_product_attention(*m.heads(h), is_causal=True))
    return h + (m.q(h) @ m.k(memory).mT).softmax(-1) @ m.v(memory)


@UNSEEN.add(causal=True, batch=True)
def two_streams_of_targets_and_context(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    g = m.latents[:1].expand(x.shape[0], t, -1) + m.table(torch.arange(t))
    for _ in range(2):
        s = m.q(g) @ m.k(x).mT
        g = g + s.masked_fill(later(t, 0), -1e9).softmax(-1).tril(-1) @ m.v(x)
        x = x + m.scores(x).masked_fill(later(t), -1e9).softmax(-1) @ m.v(x)
    return g


@UNSEEN.add(causal=False, batch=True)
def error_of_the_next_step(m: Parts, x: Tensor) -> Tensor:
    forecast = x + m.join(F.scaled_dot_product_attention(*m.heads(x), is_causal=True))
    error = (forecast[:, :-1] - x[:, 1:]).abs()
    return F.pad(error, (0, 0, 0, 1))


@UNSEEN.add(causal=True, batch=True)
def error_of_the_forecast_before(m: Parts, x: Tensor) -> Tensor:
    forecast = x + m.join(F.scaled_dot_product_attention(*m.heads(x), is_causal=True))
    error = F.smooth_l1_loss(forecast[:, :-1], x[:, 1:], reduction="none")
    return F.pad(error, (0, 0, 1, 0))


@UNSEEN.add(causal=True, batch=True)
def outputs_fed_back(m: Parts, x: Tensor) -> Tensor:
    y, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        y = torch.tanh(m.o(torch.cat([y[:, :4], x[:, i, :4]], -1)) + x[:, i])
        out.append(y)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def outputs_fed_back_at_some_steps(m: Parts, x: Tensor) -> Tensor:
    out = [m.o(x[:, 0])]
    for i in range(1, x.shape[1]):
        token = out[-1] if i % 3 == 0 else x[:, i]
        out.append(m.o(F.silu(m.gate(token))))
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def last_three_outputs_fed_back(m: Parts, x: Tensor) -> Tensor:
    out: list[Tensor] = []
    for step in x.unbind(1):
        memory = torch.stack(out[-3:], 1).mean(1) if out else torch.zeros_like(step)
        out.append(m.cell(step, memory))
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def attention_over_outputs_so_far(m: Parts, x: Tensor) -> Tensor:
    out = m.o(x[:, :1])
    for i in range(1, x.shape[1]):
        q = m.q(x[:, i : i + 1])
        read = (q @ m.k(out).mT).softmax(-1) @ m.v(out)
        out = torch.cat([out, m.o(x[:, i : i + 1]) + read], 1)
    return out


@UNSEEN.add(causal=False, batch=True)
def attention_over_all_inputs_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    keys, h, out = m.k(x), torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        w = (keys @ h.unsqueeze(-1)).softmax(1)
        h = m.cell(x[:, i], (w * x).sum(1))
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=False, batch=True)
def linear_map_over_steps(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return x + F.relu(F.linear(m.norm(x).mT, m.square[:t, :t])).mT


@UNSEEN.add(causal=True, batch=True)
def linear_map_over_steps_of_a_triangle(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return x + F.relu(F.linear(m.norm(x).mT, m.square[:t, :t].tril())).mT


@UNSEEN.add(causal=False, batch=True)
def linear_map_over_steps_of_a_transposed_triangle(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return x + F.relu(m.norm(x).mT @ m.square[:t, :t].tril()).mT


@UNSEEN.add(causal=False, batch=True)
def low_frequencies_only(m: Parts, x: Tensor) -> Tensor:
    f = torch.fft.rfft(x, dim=1)
    return m.o(torch.fft.irfft(f[:, :2], n=x.shape[1], dim=1))


@UNSEEN.add(causal=False, batch=True)
def delays_by_autocorrelation(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    f = torch.fft.rfft(m.q(x), dim=1) * torch.conj(torch.fft.rfft(m.k(x), dim=1))
    correlation = torch.fft.irfft(f, n=t, dim=1).mean(-1)
    weight, delay = correlation.topk(2, -1)
    index = (torch.arange(t)[None, None] + delay[..., None]) % t
    moved = torch.gather(m.v(x)[:, None].expand(-1, 2, -1, -1), 2, index[..., None].expand(-1, -1, -1, WIDTH))
    return (moved * weight.softmax(-1)[..., None, None]).sum(1)


@UNSEEN.add(batch=False, permutation=True)
def rows_compared_with_each_other(m: Parts, x: Tensor) -> Tensor:
    z = F.normalize(m.o(x).mean(1), dim=-1)
    return F.log_softmax(z @ z.mT / 0.1, dim=-1)


@UNSEEN.add(batch=False, causal=True)
def rows_mixed_with_the_row_before(m: Parts, x: Tensor) -> Tensor:
    return m.o(0.7 * x + 0.3 * x.roll(1, 0))


@UNSEEN.add(causal=True, batch=True, permutation=True)
def gated_residual_of_each_step(m: Parts, x: Tensor) -> Tensor:
    h = m.o(F.elu(m.q(x)))
    return m.norm(x + F.glu(torch.cat([h, m.gate(h)], -1), -1))


@UNSEEN.add(causal=True, batch=True)
def backcasts_subtracted(m: Parts, x: Tensor) -> Tensor:
    rest, total = x, torch.zeros_like(x)
    for _ in range(3):
        h = F.relu(m.conv(F.pad(rest.mT, (2, 0)))).mT
        rest, total = rest - m.k(h), total + m.v(h)
    return total
