"""Attention and rotations of timm."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

if torch.version.cuda is None:  # the usual build of torchvision, which timm imports, then has no operators to describe
    for _name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{_name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from timm import layers

PACKAGE = "timm"
REQUIREMENTS = ("timm==1.0.31", "torch==2.13.0", "numpy==2.4.6")
ARRAYS = "torch"


def _attend(query: Tensor, key: Tensor, value: Tensor, *, fused: bool, **options: Any) -> Tensor:
    """Its Attention of one input, whose projection takes queries, keys and values from it as they are."""
    rows, heads, tokens, width = query.shape
    if key.shape[2] != tokens or key.shape[1] != heads:
        raise TypeError("queries, keys and values are of the same tokens")
    size = heads * width
    module: Any = layers.Attention(3 * size, heads, qkv_bias=False, proj_bias=False, attn_head_dim=width)
    module.fused_attn = fused
    with torch.no_grad():
        module.qkv.weight.copy_(torch.eye(3 * size))
        module.proj.weight.zero_()[:size].copy_(torch.eye(size))
    given = torch.cat([x.transpose(1, 2).flatten(2) for x in (query, key, value)], -1)
    more = {"is_causal": True} if options.get("causal") else {}
    found: Tensor = module.to(query.dtype).eval()(given, attn_mask=options.get("mask"), **more)[..., :size]
    return found.view(rows, tokens, heads, width).transpose(1, 2)


def _rotate(x: Tensor, positions: Tensor, *, half: bool) -> Tensor:
    """Its rotation of one axis, with angles of the usual base."""
    width = x.shape[-1]
    speeds = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = positions[..., None] * speeds
    angles = torch.cat([angles, angles], -1) if half else angles.repeat_interleave(2, -1)
    found: Tensor = layers.apply_rot_embed(x, angles.sin().to(x.dtype), angles.cos().to(x.dtype), half=half)
    return found


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    joined = "[row, token, head and width]"
    return {
        "attention": ("attention", "mask causal", joined, partial(_attend, fused=False)),
        "attention_fused": ("attention", "mask causal", joined, partial(_attend, fused=True)),
        "rotary": ("rotation", "", "[row, head, token, width]", partial(_rotate, half=False)),
        "rotary_half": ("rotation", "", "[row, head, token, width]", partial(_rotate, half=True)),
    }
