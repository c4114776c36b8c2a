"""Self-attention and the rotation of CTranslate2, in models of one layer whose weights are made so that they show it.

A word's embedding holds its query, key and value as they are; projections pick them out, and put what attention gives
next to them. One more element gives each embedding the same length, so that the norm before attention changes nothing.
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import transformer_spec as specs

PACKAGE = "ctranslate2"
REQUIREMENTS = ("ctranslate2==4.8.5", "numpy==2.4.6")
ARRAYS = "numpy"
ENVIRONMENT = "ctranslate2-layers"  # an engine has its name
LONGEST = 64  # tokens of a prompt


def _attend(
    query: Any, key: Any, value: Any, *, causal: bool = False, lengths: Any = None, grouped: bool = False, **own: Any
) -> Any:
    """A decoder with a causal flag, else an encoder; queries, keys and values are of the same tokens."""
    del grouped  # fewer heads of keys need no word
    (rows, heads, tokens, width), heads_of_keys = query.shape, key.shape[1]
    if key.shape[2] != tokens:
        raise TypeError("queries and keys are of the same tokens")
    if query.dtype != np.float32:
        raise TypeError("it computes in float32 on every processor")
    parts = [x.transpose(0, 2, 1, 3).reshape(rows * tokens, -1) for x in (query, key, value)]
    model = _Model(heads, heads_of_keys, width, np.concatenate(parts, 1), **own)
    ids = np.arange(rows * tokens, dtype=np.int32).reshape(rows, tokens)
    found = model.run(ids, np.full(rows, tokens) if lengths is None else lengths, causal=causal)
    return found.reshape(rows, tokens, heads, width).transpose(0, 2, 1, 3)


class _Model:
    """Weights of one layer for words that are given by their queries, keys and values [word, part and width]."""

    def __init__(
        self, heads: int, heads_of_keys: int, width: int, words: Any, *,
        scale: float | None = None, window: int | None = None, rotary: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.heads, self.size, self.scale = heads, heads * width, scale
        self.options = {
            "num_heads_kv": heads_of_keys, "head_dim": width, "sliding_window": window, "rms_norm": True,
            "no_final_norm": True, **(rotary or {}),
        }  # fmt: skip
        count, given = words.shape
        self.depth = given + self.size + 1
        norm = self.gain = max(1.0, float(np.linalg.norm(words, axis=1).max()) / self.depth**0.5)
        rest = np.sqrt(np.maximum(self.depth - ((words / norm) ** 2).sum(1, keepdims=True), 0))
        self.words = np.concatenate([words / norm, np.zeros((count, self.size)), rest], 1)
        self.picked = np.eye(given, self.depth)
        self.placed = np.eye(self.depth, self.size, -given)

    def run(self, ids: Any, lengths: Any, *, causal: bool) -> Any:
        """The output of attention [row, token, head and width] for words [row, token]."""
        names = ["<unk>", "<s>", "</s>", *(f"w{k}" for k in range(max(len(self.words), self.size)))]
        table = np.zeros((len(names), self.depth))
        table[3 : 3 + len(self.words)] = self.words
        given = [ctranslate2.StorageView.from_array(x.astype(np.int32)) for x in (ids + 3, lengths)]
        one_thread = {"device": "cpu", "compute_type": "float32", "inter_threads": 1, "intra_threads": 1}
        with tempfile.TemporaryDirectory() as folder:
            spec = self._decoder(table) if causal else self._encoder(table)
            spec.register_vocabulary(names)
            spec.validate()
            spec.optimize()
            spec.save(folder)
            if causal:
                generator = ctranslate2.Generator(folder, **one_thread)
                return np.array(generator.forward_batch(*given))[..., 3 : 3 + self.size]
            found = ctranslate2.Encoder(folder, **one_thread).forward_batch(*given).last_hidden_state
        return np.array(found) @ self.placed.astype(np.float32)

    def _decoder(self, table: Any) -> Any:
        spec = specs.TransformerDecoderModelSpec.from_config(1, self.heads, **self.options)
        self._fill(spec.decoder, spec.decoder.embeddings, table)
        shown = np.zeros_like(table)
        shown[3 : 3 + self.size] = self.placed.T
        spec.decoder.projection.weight = shown.astype(np.float32)
        return spec

    def _encoder(self, table: Any) -> Any:
        layers = specs.TransformerEncoderSpec(1, self.heads, **self.options)
        self._fill(layers, layers.embeddings[0], table)
        return specs.TransformerEncoderModelSpec(layers)

    def _fill(self, part: Any, embeddings: Any, table: Any) -> None:
        part.scale_embeddings = False
        if hasattr(part, "position_encodings"):
            part.position_encodings.encodings = np.zeros((LONGEST, self.depth), np.float32)
        embeddings.weight = table.astype(np.float32)
        attention, feed = part.layer[0].self_attention, part.layer[0].ffn
        attention.layer_norm.gamma = np.full(self.depth, self.gain, np.float32)
        attention.linear[0].weight, attention.linear[1].weight = map(np.float32, (self.picked, self.placed))
        if self.scale is not None:
            attention.queries_scale = np.float32(self.scale)
        feed.layer_norm.gamma = np.ones(self.depth, np.float32)
        feed.linear_0.weight, feed.linear_1.weight = np.zeros((2, 1, self.depth), np.float32)
        feed.linear_1.weight = feed.linear_1.weight.T


def _rotate(x: Any, positions: Any, *, interleave: bool) -> Any:
    """Rotated vectors, by their products with unit vectors at position 0: keys, and a softmax of their scores."""
    (rows, heads, tokens, width), last = x.shape, int(positions[-1])
    if positions[0] < 0 or last >= LONGEST:
        raise TypeError("positions are those of a prompt")
    long = np.zeros((rows * heads, last + 1, width), x.dtype)
    long[:, positions] = x.reshape(-1, tokens, width)
    query = np.repeat(long[:, None], width, 1).reshape(-1, 1, last + 1, width)
    key, value = np.zeros_like(query), np.zeros_like(query)
    key[:, 0, 0], value[:, 0, 0, 0] = np.tile(np.eye(width), (rows * heads, 1)), 1.0
    rotary = {"rotary_dim": width, "rotary_interleave": interleave}
    share = _attend(query, key, value, scale=1.0, rotary=rotary)[:, 0, positions, 0]
    products = np.log(share * last / (1 - share)).reshape(rows, heads, width, tokens)
    return products.swapaxes(2, 3)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    joined = "[row, token, head and width]"
    return {
        "self_attention": ("attention", "causal scale window lengths grouped", joined, _attend),
        "rotary": ("rotation", "", joined, partial(_rotate, interleave=False)),
        "rotary_interleaved": ("rotation", "", joined, partial(_rotate, interleave=True)),
    }
