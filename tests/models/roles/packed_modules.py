"""Modules that take packed documents in each form, and a twin of each with one fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 16


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return build()


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary embedding of vectors [..., token, width]; positions [..., token]."""
    half = x.shape[-1] // 2
    angle = positions[..., None].float() * 1e4 ** (-torch.arange(half) / half)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class VariableLength(nn.Module):
    """Attention as flash attention calls it: heads [token, head, width], boundaries twice, the longest twice."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.key = nn.Linear(8, 8)

    def forward(
        self, q: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int
    ) -> Tensor:
        assert int(cu_seqlens_q.diff().max()) == max_seqlen_q == max_seqlen_k
        heads, keys = q.transpose(0, 1), self.key(q).transpose(0, 1)
        parts = []
        for a, b in zip(cu_seqlens_q.tolist(), cu_seqlens_q.tolist()[1:], strict=False):
            first = 0 if self.fault == "cumulative" else a
            scores = heads[:, a:b] @ keys[:, first:b].mT / 3
            parts.append(scores.softmax(-1) @ keys[:, first:b])
        return torch.cat(parts, 1).transpose(0, 1)


class BlockDiagonal(nn.Module):
    """Causal attention with a mask made of boundaries, ids [1, token], a learned table of positions."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.words, self.places, self.qkv = nn.Embedding(30, WIDTH), nn.Embedding(400, WIDTH), nn.Linear(WIDTH, 48)

    def forward(self, input_ids: Tensor, cu_seq_lens: Tensor) -> Tensor:
        place = torch.arange(input_ids.shape[1])
        document = torch.searchsorted(cu_seq_lens, place, right=True) - 1
        own = place if self.fault == "positions" else place - cu_seq_lens[document]
        x = self.words(input_ids) + self.places(own)
        q, k, v = self.qkv(x).chunk(3, -1)
        visible = (place[:, None] >= place) & ((document[:, None] == document) | (self.fault == "mask"))
        return x + functional.scaled_dot_product_attention(q, k, v, visible)


class IdsAttention(nn.Module):
    """Attention that compares document ids [row, token]."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.qkv, self.taps = nn.Linear(WIDTH, 48), nn.Conv1d(WIDTH, WIDTH, 3, groups=WIDTH)

    def forward(self, x: Tensor, document_ids: Tensor) -> Tensor:
        if self.fault == "convolution":
            x = x + self.taps(functional.pad(x.mT, (2, 0))).mT
        q, k, v = self.qkv(x).chunk(3, -1)
        same = document_ids[:, :, None] == document_ids[:, None, :]
        if self.fault == "causal or same":
            same = same | torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        place = torch.arange(x.shape[1])
        return (rotated(q, place) @ rotated(k, place).mT / 4).masked_fill(~same, -1e9).softmax(-1) @ v


class IdsPositions(nn.Module):
    """Document ids under another name, with position ids of its own that restart, or go on."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.qkv = nn.Linear(WIDTH, 48)
        self.places = nn.Embedding(400, WIDTH)

    def forward(self, x: Tensor, part_of: Tensor) -> Tensor:
        place = torch.arange(x.shape[1]).expand(part_of.shape)
        if self.fault != "positions":
            begins = functional.pad(part_of[:, 1:] != part_of[:, :-1], (1, 0), value=True)
            place = place - torch.where(begins, place, 0).cummax(1).values
        x = x + self.places(place)
        q, k, v = self.qkv(x).chunk(3, -1)
        same = part_of[:, :, None] == part_of[:, None, :]
        return (q @ k.mT / 4).masked_fill(~same, -1e9).softmax(-1) @ v


class StateSpace(nn.Module):
    """A short convolution and a scan, which `seq_idx` resets, as in Mamba."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.taps, self.decay = nn.Parameter(torch.randn(2, WIDTH)), nn.Linear(WIDTH, WIDTH)

    def forward(self, u: Tensor, seq_idx: Tensor) -> Tensor:
        goes_on = functional.pad(seq_idx[:, 1:] == seq_idx[:, :-1], (1, 0)).to(u.dtype)[..., None]
        before = functional.pad(u[:, :-1], (0, 0, 1, 0)) * (1.0 if self.fault == "convolution" else goes_on)
        h = u * self.taps[0] + before * self.taps[1]
        keep = self.decay(h).sigmoid() * (1.0 if self.fault == "state" else goes_on)
        state, states = torch.zeros_like(u[:, 0]), []
        for t in range(u.shape[1]):
            state = keep[:, t] * state + h[:, t]
            states.append(state)
        return torch.stack(states, 1)


class Restarting(nn.Module):
    """A decoder that finds documents where its position ids restart, with rotary embedding."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.words, self.qkv = nn.Embedding(30, WIDTH), nn.Linear(WIDTH, 48)

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        x = self.words(input_ids)
        document = (position_ids.diff(dim=-1, prepend=position_ids[:, :1] - 1) != 1).cumsum(-1)
        own = torch.arange(x.shape[1]).expand(position_ids.shape) ** 2 if self.fault == "positions" else position_ids
        q, k, v = self.qkv(x).chunk(3, -1)
        visible = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        if self.fault != "mask":
            visible = visible & (document[:, :, None] == document[:, None, :])
        return x + (rotated(q, own) @ rotated(k, own).mT / 4).masked_fill(~visible, -1e9).softmax(-1) @ v


class GridImages(nn.Module):
    """Packed images with the sizes of their grids, as vision encoders take them."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.qkv = nn.Linear(WIDTH, 48)

    def forward(self, hidden_states: Tensor, grid_thw: Tensor) -> Tensor:
        sizes = grid_thw.tolist()
        places, image = [], []
        for number, (frames, rows, columns) in enumerate(sizes):
            width = sizes[0][2] if self.fault == "first grid" else columns
            index = torch.arange(frames * rows * columns) % (rows * columns)
            places.append(torch.stack([index // width, index % width], -1))
            image.append(torch.full((frames * rows * columns,), number))
        place, of = torch.cat(places), torch.cat(image)
        q, k, v = self.qkv(hidden_states).chunk(3, -1)
        q, k = (torch.cat([rotated(p, place[:, axis]) for axis, p in enumerate(x.chunk(2, -1))], -1) for x in (q, k))
        scores = q @ k.mT / 4
        if self.fault != "mask":
            scores = scores.masked_fill(of[:, None] != of, -torch.inf)
        return hidden_states + scores.softmax(-1) @ v


class GivenMask(nn.Module):
    """Attention with a mask [row, 1, token, token] of documents that the caller makes."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.qkv = nn.Linear(WIDTH, 48)

    def forward(self, x: Tensor, attn_mask: Tensor) -> Tensor:
        q, k, v = (part[:, None] for part in self.qkv(x).chunk(3, -1))
        q, k = (rotated(part, torch.arange(x.shape[1])) for part in (q, k))
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask)[:, 0]
        return y - y.mean(1, keepdim=True) if self.fault == "mean" else y


class Lengths(nn.Module):
    """A gated recurrence over packed tokens that is restarted by the lengths of documents."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.gates = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        state, states = torch.zeros(WIDTH), []
        for part in x.split(lengths.tolist()):
            if self.fault != "state":
                state = torch.zeros(WIDTH)
            for token in part:
                state = self.gates(token).sigmoid() * state + token
                states.append(state)
        return torch.stack(states)


class Flat(nn.Module):
    """Ids [token] with boundaries, position ids that restart, and the longest document as a tensor."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.words, self.places = nn.Embedding(30, WIDTH), nn.Embedding(400, WIDTH)

    def forward(self, input_ids: Tensor, position_ids: Tensor, cu_seqlens: Tensor, max_seqlen: Tensor) -> Tensor:
        assert int(max_seqlen) == int(cu_seqlens.diff().max())
        places = torch.arange(len(input_ids)) if self.fault == "positions" else position_ids
        x = self.words(input_ids) + self.places(places)
        if self.fault == "mean":
            x = x - x.mean(0)
        parts = x.split(cu_seqlens.diff().tolist())
        return torch.cat([(part @ part.mT / 4).softmax(-1) @ part for part in parts])


class FlatIds(nn.Module):
    """Vectors [token, width] with document ids [token] and no rows: a mean over each document."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.values = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, segment_ids: Tensor) -> Tensor:
        place = torch.arange(len(x))
        same = (segment_ids[:, None] == segment_ids) & (place[:, None] >= place)
        first = place if self.fault == "positions" else same.long().cumsum(1).diagonal()
        y = self.values(x) / (1 + first[:, None])
        if self.fault == "shift":
            y = y + functional.pad(y[:-1], (0, 0, 1, 0))
        return same.to(x.dtype) @ y


class FlatPositions(nn.Module):
    """Vectors [token, width] whose documents are where position ids [token] restart, with a decay by distance."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.values = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, pos: Tensor) -> Tensor:
        document = (pos == 0).cumsum(0)
        place = torch.arange(len(x))
        weight = 0.7 ** (place[:, None] - place).abs().to(x.dtype)
        seen = place[:, None] >= place
        if self.fault != "mask":
            seen = seen & (document[:, None] == document)
        return (
            torch.where(seen, weight, 0.0) @ self.values(x) / (1 + (place if self.fault == "scale" else pos)[:, None])
        )


BOUNDARIES = torch.tensor([0, 3, 7], dtype=torch.int32)
IDS = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
BLOCKS = (IDS[0][:, None] == IDS[0])[None, None]


def vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def words(*shape: int) -> Tensor:
    return torch.randint(30, shape, generator=torch.Generator().manual_seed(1))


@dataclass(frozen=True)
class PackedCase:
    """A module, its inputs, and the law that each of its faults breaks, with the text of the line."""

    build: Callable[[str], nn.Module]
    inputs: Callable[[], dict[str, Any]]
    faults: dict[str, tuple[str, str]]
    kind: str = "encoder"


CASES = {
    "variable_length": PackedCase(
        VariableLength,
        lambda: {
            "q": vectors(7, 2, 8),
            "cu_seqlens_q": BOUNDARIES,
            "cu_seqlens_k": BOUNDARIES.clone(),
            "max_seqlen_q": 4,
            "max_seqlen_k": 4,
        },
        {"cumulative": ("packing", "scores.softmax(-1)")},
    ),
    "block_diagonal": PackedCase(
        BlockDiagonal,
        lambda: {"input_ids": words(1, 7), "cu_seq_lens": BOUNDARIES},
        {"mask": ("packing", "scaled_dot_product_attention"), "positions": ("packed_alone", "torch.arange")},
        "causal_lm",
    ),
    "ids_attention": PackedCase(
        IdsAttention,
        lambda: {"x": vectors(2, 7, WIDTH), "document_ids": IDS.repeat(2, 1)},
        {"convolution": ("packing", "self.taps"), "causal or same": ("packing", "softmax")},
    ),
    "ids_positions": PackedCase(
        IdsPositions,
        lambda: {"x": vectors(2, 7, WIDTH), "part_of": IDS.repeat(2, 1) + 1},
        {"positions": ("packed_alone", "torch.arange")},
    ),
    "state_space": PackedCase(
        StateSpace,
        lambda: {"u": vectors(1, 7, WIDTH), "seq_idx": IDS.int()},
        {"convolution": ("packing", "before ="), "state": ("packing", "state =")},
        "causal_lm",
    ),
    "restarting": PackedCase(
        Restarting,
        lambda: {"input_ids": words(1, 7), "position_ids": torch.tensor([[0, 1, 2, 0, 1, 2, 3]])},
        {"mask": ("packing", "softmax"), "positions": ("packed_alone", "torch.arange")},
        "causal_lm",
    ),
    "grid_images": PackedCase(
        GridImages,
        lambda: {"hidden_states": vectors(10, WIDTH), "grid_thw": torch.tensor([[1, 2, 2], [1, 2, 3]])},
        {"mask": ("packing", "q @ k.mT"), "first grid": ("packed_alone", "index // width")},
    ),
    "given_mask": PackedCase(
        GivenMask, lambda: {"x": vectors(1, 7, WIDTH), "attn_mask": BLOCKS}, {"mean": ("packing", "mean")}
    ),
    "flat": PackedCase(
        Flat,
        lambda: {
            "input_ids": words(7),
            "position_ids": torch.tensor([0, 1, 2, 0, 1, 2, 3]),
            "cu_seqlens": BOUNDARIES,
            "max_seqlen": torch.tensor(4),
        },
        {"positions": ("packed_alone", "torch.arange"), "mean": ("packing", "mean")},
    ),
    "flat_ids": PackedCase(
        FlatIds,
        lambda: {"x": vectors(7, WIDTH), "segment_ids": IDS[0]},
        {"positions": ("packed_alone", "torch.arange"), "shift": ("packing", "functional.pad")},
        "causal_lm",
    ),
    "flat_positions": PackedCase(
        FlatPositions,
        lambda: {"x": vectors(7, WIDTH), "pos": torch.tensor([0, 1, 2, 0, 1, 2, 3])},
        {"mask": ("packing", "torch.where"), "scale": ("packed_alone", "torch.arange")},
        "causal_lm",
    ),
    "lengths": PackedCase(
        Lengths,
        lambda: {"x": vectors(7, WIDTH), "lengths": torch.tensor([3, 4])},
        {"state": ("packing", "state =")},
        "causal_lm",
    ),
}
