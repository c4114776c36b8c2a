"""Modules with a cache of transformers, a library's recurrence, and caches next to other inputs; with faults."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.caches.cached_modules import Decoder


class OwnDynamicCache(Decoder):
    """Makes a cache of transformers itself, and returns it in a data class."""

    def forward(self, input_ids: Tensor, past_key_values=None, use_cache: bool | None = None):
        from transformers import DynamicCache
        from transformers.modeling_outputs import CausalLMOutputWithPast

        cache = DynamicCache() if past_key_values is None and use_cache else past_key_values
        x = self.words(input_ids)
        start = 0 if cache is None else cache.get_seq_length()
        for place, layer in enumerate(self.layers):
            q, k, v = layer.project(x, self.start(start, input_ids.shape[1]))
            if cache is not None:
                k, v = cache.update(k, v, place)
            if self.fault == "mask from length" and cache is not None:
                start = cache.get_seq_length() - 1  # the first layer has added the tokens of this call
            x = layer.attend(x, (q, k, v), start)
        return CausalLMOutputWithPast(logits=self.head(x), past_key_values=cache if use_cache else None)


class GivenDynamicCache(Decoder):
    """Takes a cache of transformers, and changes it in place."""

    def forward(self, input_ids: Tensor, past_key_values=None) -> Tensor:
        start = 0 if past_key_values is None else past_key_values.get_seq_length()
        x = self.words(input_ids)
        for place, layer in enumerate(self.layers):
            q, k, v = layer.project(x, self.start(start, input_ids.shape[1]))
            if past_key_values is not None:
                k, v = past_key_values.update(k, v, place)
            x = layer.attend(x, (q, k, v), start)
        return self.head(x)


class LibraryRecurrence(nn.Module):
    """A recurrence of torch, whose state is [layer, row, width]."""

    def __init__(self, fault: str = "", kind: type[nn.RNNBase] = nn.LSTM) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.words = nn.Embedding(60, 8)
            self.rnn = kind(8, 8, num_layers=2, batch_first=True)
        self.fault = fault

    def forward(self, ids: Tensor, hx=None):
        if self.fault == "rows flipped" and hx is not None:
            hx = (hx[0].flip(1), hx[1].flip(1)) if isinstance(hx, tuple) else hx.flip(1)
        if self.fault == "zero state" and ids.shape[1] > 1 and hx is not None:
            hx = (torch.zeros_like(hx[0]), hx[1]) if isinstance(hx, tuple) else torch.zeros_like(hx)
        return self.rnn(self.words(ids), hx)


class Companions(Decoder):
    """Token types and required position ids next to the cache, and a dictionary changed in place."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(fault)
        with torch.random.fork_rng():
            torch.manual_seed(1)
            self.types = nn.Embedding(2, 16)

    def forward(self, ids: Tensor, types: Tensor, position_ids: Tensor, cache: dict | None = None) -> Tensor:
        start = (position_ids - torch.arange(ids.shape[1]))[:, None]
        x = self.words(ids) + (self.types(types) if self.fault != "types restart" or not cache else 0.0)
        for place, layer in enumerate(self.layers):
            old = (cache or {}).get(place)
            before = 0 if old is None else old[0].shape[2]
            q, k, v = layer.project(x, start)
            if old is not None:
                k, v = self.joined(old[0], k), self.joined(old[1], v)
            if cache is not None:
                cache[place] = (k, v)
            x = layer.attend(x, (q, k, v), before)
        return self.head(x)


class RequiredMask(Decoder):
    """A mask that is required, and covers the cached tokens."""

    def forward(self, ids: Tensor, mask: Tensor, past=None):
        x, present = self.words(ids), []
        for place, layer in enumerate(self.layers):
            before = 0 if past is None else past[place][0].shape[2]
            q, k, v = layer.project(x, self.start(before, ids.shape[1]))
            if past is not None:
                k, v = self.joined(past[place][0], k), self.joined(past[place][1], v)
            present.append((k, v))
            real = mask.bool() if self.fault != "all real on a cache" or past is None else torch.ones_like(mask).bool()
            x = layer.attend(x, (q, k, v), before, real)
        return self.head(x), present


class SequenceFirst(nn.Module):
    """Tokens along the first axis, and a state with the rows second."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.rnn = nn.GRU(8, 8)
        self.fault = fault

    def forward(self, x: Tensor, hidden: Tensor | None = None):
        return self.rnn(x, None if self.fault and len(x) > 1 else hidden)
