"""Small decoders with caches of all forms, each with faults: keyword arguments choose the form and the fault."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH, HEADS = 16, 2


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary embedding of [..., token, width] at positions [..., token]."""
    rate = 50.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    angle = positions.double()[..., None] * rate
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Layer(nn.Module):
    """Causal attention with heads; keys and values come from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def project(self, x: Tensor, start: int | Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [row, head, token, width] from a position on."""
        q, k, v = (p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        places = start + torch.arange(x.shape[1])
        return rotated(q, places), rotated(k, places), v

    def attend(self, x: Tensor, qkv: tuple[Tensor, Tensor, Tensor], before: int, real: Tensor | None = None) -> Tensor:
        """The output, where keys from `before` + query on are hidden, and those that are not real."""
        q, k, v = qkv
        hidden = ~torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(before)
        if real is not None:
            hidden = hidden | ~real[:, None, None, :]
        scores = (q @ k.mT / 3).masked_fill(hidden, -1e9)
        return x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    """Two layers over token ids."""

    def __init__(self, fault: str = "", layers: int = 2) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.words = nn.Embedding(60, WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.head = nn.Linear(WIDTH, 60)
        self.fault = fault

    def start(self, before: int, new: int) -> int:
        """The first position of a call."""
        return 0 if self.fault == "positions restart" and new > 1 else before

    def joined(self, old: Tensor, new: Tensor) -> Tensor:
        """Old and new keys or values [row, head, token, width]."""
        return torch.cat([new, old] if self.fault == "wrong order" else [old, new], 2)


class LayerPast(Decoder):
    """As GPT-2: a tuple (keys, values) [row, head, token, width] for each layer, `layer_past`."""

    def forward(self, ids: Tensor, layer_past: tuple[tuple[Tensor, Tensor], ...] | None = None):
        x, present = self.words(ids), []
        for place, layer in enumerate(self.layers):
            before = 0 if layer_past is None else layer_past[place][0].shape[2]
            q, k, v = layer.project(x, self.start(before, ids.shape[1]))
            if layer_past is not None:
                old = layer_past[place][0]
                if self.fault == "rotated twice":
                    old = rotated(old, torch.arange(before))
                k, v = self.joined(old, k), self.joined(layer_past[place][1], v)
            present.append((k, v))
            x = layer.attend(x, (q, k, v), before)
        return self.head(x), tuple(present)


class ListInDict(Decoder):
    """A list of dictionaries for each layer, among keyword outputs, asked for by a flag."""

    def forward(self, ids: Tensor, past_key_values: list | None = None, *, use_cache: bool = False) -> dict:
        x, present = self.words(ids), []
        for place, layer in enumerate(self.layers):
            old = None if past_key_values is None else past_key_values[place]
            before = 0 if old is None else old["k"].shape[2]
            q, k, v = layer.project(x, self.start(before, ids.shape[1]))
            if old is not None:
                k, v = self.joined(old["k"], k), self.joined(old["v"], v)
            present.append({"k": k, "v": v})
            x = layer.attend(x, (q, k, v), before)
        return {"logits": self.head(x), **({"past_key_values": present} if use_cache else {})}


class FlatTuple(Decoder):
    """One layer; keys and values are outputs of their own, and `kv` takes both."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(fault, layers=1)

    def forward(self, ids: Tensor, kv: tuple[Tensor, Tensor] | None = None):
        x = self.words(ids)
        before = 0 if kv is None else kv[0].shape[2]
        q, k, v = self.layers[0].project(x, self.start(before, ids.shape[1]))
        if kv is not None:
            k, v = self.joined(kv[0], k), self.joined(kv[1], v)
        return self.head(self.layers[0].attend(x, (q, k, v), before)), k, v


class TwoArguments(FlatTuple):
    """Keys and values are two arguments."""

    def forward(self, ids: Tensor, past_k: Tensor | None = None, past_v: Tensor | None = None):
        return super().forward(ids, None if past_k is None else (past_k, past_v))


class Masked(Decoder):
    """A cache with a mask of all tokens."""

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None, past: list | None = None):
        x, present = self.words(ids), []
        for place, layer in enumerate(self.layers):
            before = 0 if past is None else past[place][0].shape[2]
            q, k, v = layer.project(x, self.start(before, ids.shape[1]))
            if past is not None:
                k, v = self.joined(past[place][0], k), self.joined(past[place][1], v)
            present.append((k, v))
            real = attention_mask
            if real is not None and self.fault == "mask not extended":
                real = torch.cat([torch.ones(len(ids), before), real[:, -ids.shape[1] :]], 1)
            x = layer.attend(x, (q, k, v), before, None if real is None else real > 0)
        return self.head(x), present


class KVCache:
    """As in mlx: keys and values of one layer, with an offset."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.offset = 0

    def update_and_fetch(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append, and return all."""
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 2)
        self.values = values if self.values is None else torch.cat([self.values, values], 2)
        self.offset += keys.shape[2]
        return self.keys, self.values

    def trim(self, count: int) -> int:
        """Drop the last tokens."""
        self.offset -= count
        assert self.keys is not None
        assert self.values is not None
        self.keys, self.values = self.keys[:, :, : self.offset], self.values[:, :, : self.offset]
        return count


class RotatesTwice(KVCache):
    """Keys are rotated when they are read."""

    def update_and_fetch(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        before = self.offset
        keys, values = super().update_and_fetch(keys, values)
        old = rotated(keys[:, :, :before], torch.arange(before))
        return torch.cat([old, keys[:, :, before:]], 2), values


class CacheObjects(Decoder):
    """As in mlx: a list of cache objects that are changed in place."""

    def forward(self, ids: Tensor, cache: list[KVCache] | None = None) -> Tensor:
        x = self.words(ids)
        for place, layer in enumerate(self.layers):
            before = 0 if cache is None else cache[place].offset
            q, k, v = layer.project(x, self.start(before, ids.shape[1]))
            if cache is not None:
                k, v = cache[place].update_and_fetch(k, v)
            x = layer.attend(x, (q, k, v), before)
        return self.head(x)


class OneObject(Decoder):
    """One cache object without an annotation."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(fault, layers=1)

    def forward(self, ids: Tensor, state=None) -> Tensor:
        x = self.words(ids)
        before = 0 if state is None else state.offset
        q, k, v = self.layers[0].project(x, self.start(before, ids.shape[1]))
        if state is not None:
            k, v = state.update_and_fetch(k, v)
        return self.head(self.layers[0].attend(x, (q, k, v), before))


class SharedCache(CacheObjects):
    """The default value of the argument is one cache for all calls."""

    def forward(self, ids: Tensor, cache: list[KVCache] = [KVCache(), KVCache()]) -> Tensor:  # noqa: B006, B008
        return super().forward(ids, cache)


class StaticCache(Decoder):
    """A preallocated cache [layer, 2, row, head, slot, width], required, with the number of cached tokens."""

    def forward(self, ids: Tensor, kv_cache: Tensor, start_pos: int) -> Tensor:
        x, new = self.words(ids), ids.shape[1]
        for place, layer in enumerate(self.layers):
            q, k, v = layer.project(x, self.start(start_pos, new))
            kv_cache[place, 0, :, :, start_pos : start_pos + new] = k
            kv_cache[place, 1, :, :, start_pos : start_pos + new] = v
            end = start_pos + new - (self.fault == "last token left out" and start_pos > 0)
            x = layer.attend(x, (q, kv_cache[place, 0, :, :, :end], kv_cache[place, 1, :, :, :end]), start_pos)
        return self.head(x)


class StaticDict(Decoder):
    """A preallocated cache in a dictionary with its position, returned."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(fault, layers=1)

    def init_cache(self, batch_size: int, max_len: int) -> dict:
        """An empty cache."""
        size = (batch_size, HEADS, max_len, WIDTH // HEADS)
        return {"k": torch.zeros(size), "v": torch.zeros(size), "index": 0}

    def forward(self, ids: Tensor, cache: dict | None = None):
        x, layer, new = self.words(ids), self.layers[0], ids.shape[1]
        if cache is None:
            return self.head(layer.attend(x, layer.project(x, 0), 0)), None
        index = cache["index"]
        q, k, v = layer.project(x, self.start(index, new))
        keys, values = cache["k"].clone(), cache["v"].clone()
        keys[:, :, index : index + new], values[:, :, index : index + new] = k, v
        x = layer.attend(x, (q, keys[:, :, : index + new], values[:, :, : index + new]), index)
        later = index + (1 if self.fault == "counts calls" else new)
        return self.head(x), {"k": keys, "v": values, "index": later}


class Recurrence(nn.Module):
    """As Mamba: a convolution of two tokens and a decaying state, both given back."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.words = nn.Embedding(60, WIDTH)
            self.mix = nn.Linear(WIDTH, WIDTH)
            self.head = nn.Linear(WIDTH, 60)
        self.fault = fault

    def forward(self, ids: Tensor, conv_state: Tensor | None = None, ssm_state: Tensor | None = None):
        x = self.words(ids)
        last = torch.zeros_like(x[:, :1]) if conv_state is None else conv_state
        if self.fault == "convolution restarts" and ids.shape[1] > 1:
            last = torch.zeros_like(last)
        y = x + torch.cat([last, x], 1)[:, :-1]
        state = torch.zeros_like(x[:, 0]) if ssm_state is None else ssm_state
        if self.fault == "state restarts" and ids.shape[1] > 1:
            state = torch.zeros_like(state)
        out = []
        for token in self.mix(y).unbind(1):
            state = 0.8 * state + token
            out.append(state)
        return self.head(torch.stack(out, 1)), x[:, -1:], state
