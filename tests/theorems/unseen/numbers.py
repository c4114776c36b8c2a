"""Quantization and rounding."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()


@UNSEEN.add(causal=True, permutation=True, batch=True)
def scale_of_each_token(m: Parts, x: Tensor) -> Tensor:
    scale = x.abs().max(-1, keepdim=True).values.clamp(min=1e-5) / 127
    return m.o((x / scale).round().clamp(-128, 127).to(torch.int8).to(x.dtype) * scale)


@UNSEEN.add(causal=False, permutation=True, batch=False)
def scale_of_the_tensor(m: Parts, x: Tensor) -> Tensor:
    scale = x.abs().max() / 7
    return m.o((x / scale).round() * scale)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def scale_of_groups_of_features(m: Parts, x: Tensor) -> Tensor:
    y = x.reshape(*x.shape[:-1], 2, WIDTH // 2)
    low, high = y.amin(-1, keepdim=True), y.amax(-1, keepdim=True)
    scale = (high - low).clamp(min=1e-6) / 15
    code = torch.round((y - low) / scale).clamp(0, 15)
    return m.o((code * scale + low).reshape_as(x))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def scale_of_each_feature(m: Parts, x: Tensor) -> Tensor:
    scale = x.abs().amax(1, keepdim=True) / 7
    return m.o((x / scale).round() * scale)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def rounded_with_gradient(m: Parts, x: Tensor) -> Tensor:
    y = m.v(x).sigmoid() * 15
    return (y + (y.round() - y).detach()) / 15


@UNSEEN.add(causal=True, permutation=True, batch=True)
def fixed_scale(m: Parts, x: Tensor) -> Tensor:
    return torch.fake_quantize_per_tensor_affine(m.v(x).float(), 0.05, 0, -128, 127)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def through_half_precision(m: Parts, x: Tensor) -> Tensor:
    return m.o(x.to(torch.bfloat16).to(x.dtype))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def three_valued_weights(m: Parts, x: Tensor) -> Tensor:
    w = m.o.weight
    s = w.abs().mean().clamp(min=1e-5)
    w = (w / s).round().clamp(-1, 1) * s
    a = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
    return F.linear((x * a).round().clamp(-128, 127) / a, w)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def powers_of_two(m: Parts, x: Tensor) -> Tensor:
    scale = torch.exp2(torch.ceil(torch.log2(x.abs().amax(-1, keepdim=True).clamp(min=1e-6))) - 6)
    return (x / scale).round() * scale


@UNSEEN.add(causal=False, batch=True)
def keys_by_blocks_of_tokens(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    k = F.pad(m.k(x), (0, 0, 0, -t % 4)).unflatten(1, (-1, 4))
    scale = k.abs().amax(2, keepdim=True).clamp(min=1e-6) / 7
    k = ((k / scale).round() * scale).flatten(1, 2)[:, :t]
    s = (m.q(x) @ k.mT).masked_fill(later(t), float("-inf"))
    return s.softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def keys_by_the_scale_so_far(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    scale = k.abs().cummax(1).values / 7 + 1e-6
    k = (k / scale).round() * scale
    s = (m.q(x) @ k.mT).masked_fill(later(x.shape[1]), float("-inf"))
    return s.softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def smoothed_by_stored_scales(m: Parts, x: Tensor) -> Tensor:
    y = x / m.scale
    return F.linear((y / 0.5).round() * 0.5, m.o.weight * m.scale)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def outliers_apart(m: Parts, x: Tensor) -> Tensor:
    large = x.abs() > 1.5
    rest = x.masked_fill(large, 0)
    scale = rest.abs().amax(-1, keepdim=True) / 127 + 1e-8
    return m.o((rest / scale).round() * scale) + m.o(x * large)


@UNSEEN.add(causal=False, batch=False)
def features_with_outliers(m: Parts, x: Tensor) -> Tensor:
    large = (x.abs() > 2.5).flatten(0, 1).any(0)
    return m.o(x.masked_fill(~large, 0)) + m.o((x * 8).round() / 8).masked_fill(large, 0)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def codes_of_a_finite_grid(m: Parts, x: Tensor) -> Tensor:
    levels = torch.tensor([7, 5, 5])
    z = torch.tanh(m.v(x)[..., :3]) * (levels - 1) / 2
    code = (z + (z.round() - z).detach() + (levels - 1) / 2).round().long()
    return m.table((code * torch.tensor([1, 1, 1])).sum(-1))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def residual_codes(m: Parts, x: Tensor) -> Tensor:
    rest, total = x, torch.zeros_like(x)
    for _ in range(2):
        code = (rest.unsqueeze(-2) - m.latents).norm(dim=-1).argmin(-1)
        total = total + F.embedding(code, m.latents)
        rest = x - total
    return total
