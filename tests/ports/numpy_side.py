"""An engine of the tests that needs numpy only: decoders of the kind of Llama, as a side of `serving` loads them.

A file named by DIFFERENCE_FILE states one difference of its reading of the configuration, or one way to fail.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import sys
import time
from pathlib import Path

import numpy as np

DISTRIBUTIONS = ("numpy",)
KINDS = ("llama", "mistral", "ministral3", "olmo", "gemma", "gemma2", "gemma3_text", "phi3", "qwen3")
FULL, LOCAL = "full_attention", "sliding_attention"
OTHER_VALUES = {  # of the configuration, as this engine reads it
    "no window": {"sliding_window": None},
    "no softcap of scores": {"attn_logit_softcapping": None},
    "no softcap of logits": {"final_logit_softcapping": None},
    "no clipping": {"clip_qkv": None},
    "exact activation": {"hidden_activation": "gelu", "hidden_act": "gelu"},
    "another epsilon": {"rms_norm_eps": 1e-5},
    "another epsilon of a sum": {"rms_norm_eps": 1e-3},
    "causal": {"use_bidirectional_attention": False},
}  # fmt: skip


def knows(model_type):
    return model_type in KINDS


def load(folder):
    difference = Path(os.environ["DIFFERENCE_FILE"]).read_text(encoding="utf-8")
    if difference == "refuses":
        raise ValueError("unknown key 'rope_parameters'")
    sys.stdout.write("an engine that prints\n")
    os.write(1, b"{}\n")
    return Model(folder, difference)


def read_weights(file):
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            start, end = (8 + size + place for place in entry["data_offsets"])
            found[name] = np.frombuffer(data[start:end], np.float32).reshape(entry["shape"])
    return found


class Model:
    def __init__(self, folder, difference):
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | OTHER_VALUES.get(
            difference, {}
        )
        self.weights = read_weights(folder / "model.safetensors")
        self.difference = difference
        if difference == "in float16":
            self.weights = {k: w.astype(np.float16).astype(np.float32) for k, w in self.weights.items()}
        if difference == "in bfloat16":
            self.weights = {k: bfloat16(w) for k, w in self.weights.items()}
        self.gemma = self.config["model_type"].startswith("gemma")

    def prefill(self, row):
        if self.difference == "crashes":
            os.write(2, b"/home/builder/model.cpp:7: ASSERT(n > 0) failed\n")
            os.abort()
        if self.difference == "hangs":
            time.sleep(60)
        if self.difference == "ends":
            os._exit(0)
        if self.difference == "the engine is killed":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        values = self.forward(row, range(len(row)))
        if self.difference == "not a number":
            values[2] = math.nan
        return values

    def chunks(self, row, sizes):
        positions = []
        for index, size in enumerate(sizes):
            first = 0 if self.difference == "positions restart" else len(positions)
            first += (index > 0) * (self.difference == "positions plus one")
            positions += range(first, first + size)
        return self.forward(row, positions)

    def prefix(self, earlier, row):
        shared = next(index for index, (a, b) in enumerate(zip(earlier, row, strict=True)) if a != b)
        positions = list(range(len(row)))
        if self.difference == "positions restart after a prefix":
            positions[shared:] = range(len(row) - shared)
        if self.difference == "blocks of another prompt":
            row = [*earlier[: shared + 4], *row[shared + 4 :]]
        hidden = np.arange(len(row))[:, None] < shared
        return np.ma.array(self.forward(row, positions), mask=np.tile(hidden, 99))

    def cached_prompt(self, earlier, row):
        values = self.forward(row, range(len(row)))
        if self.difference == "scores of the earlier prompt":
            values[:-8] = self.forward(earlier, range(len(row)))[:-8]
        return values

    def preemption(self, rows, prompt):
        hidden = np.arange(len(rows[0]))[:, None] < prompt - 1
        again = len(rows) - 1  # the row that is put off when two blocks are full, and computed again
        texts = [list(row) for row in rows]
        if self.difference == "forgets a token that it generated":
            texts[again][40] = texts[again][39]
        positions = [list(range(len(row))) for row in rows]
        if self.difference == "positions restart after it was put off":
            positions[again][40:] = range(len(rows[0]) - 40)
        outputs = [self.forward(*each) for each in zip(texts, positions, strict=True)]
        return [np.ma.array(each, mask=np.tile(hidden, 99)) for each in outputs]

    def batch(self, rows):
        longest = max(map(len, rows)) if self.difference == "pads counted" else 0
        starts = [max(0, longest - len(row)) for row in rows]
        return [self.forward(row, range(start, start + len(row))) for start, row in zip(starts, rows, strict=True)]

    def greedy(self, row, count):
        tokens = list(row)
        for _ in range(count):
            tokens.append(int(self.forward(tokens, range(len(tokens)))[-1].argmax()))
        return tokens[len(row) :]

    # ------------------------------------------------------------ the forward

    def forward(self, row, positions):
        config, positions = self.config, np.array(positions)
        embedding = self.weights["model.embed_tokens.weight"]
        scale = config["hidden_size"] ** 0.5 if self.gemma else 1.0
        scale = round(scale, 2) if self.difference == "scale of two decimals" else scale
        x = embedding[np.array(row)] * np.float32(scale)
        for layer in range(config["num_hidden_layers"]):
            x = self.layer(x, f"model.layers.{layer}.", self.kind(layer), positions)
        x = self.norm(x, "model.norm")
        return self.capped(x @ self.weights.get("lm_head.weight", embedding).T, "final_logit_softcapping")

    def kind(self, layer):
        types = self.config.get("layer_types") or [LOCAL if self.config.get("sliding_window") else FULL] * 99
        return {"all local": LOCAL, "all full": FULL}.get(self.difference, types[layer])

    def layer(self, x, name, kind, positions):
        after = "post_feedforward_layernorm" if f"{name}post_feedforward_layernorm.weight" in self.weights else ""
        y = self.attention(self.norm(x, f"{name}input_layernorm"), f"{name}self_attn.", kind, positions)
        if after:
            x = x + self.norm(y, f"{name}post_attention_layernorm")
            return x + self.norm(self.mlp(self.norm(x, f"{name}pre_feedforward_layernorm"), name), name + after)
        x = x + y
        return x + self.mlp(self.norm(x, f"{name}post_attention_layernorm"), name)

    def norm(self, x, name):
        weight = self.weights.get(f"{name}.weight")
        if weight is None and self.config["model_type"] == "olmo":
            x = x - x.mean(-1, keepdims=True) * (self.difference != "root mean square")
            return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
        own = self.difference == "epsilon of heads" and name.endswith(("q_norm", "k_norm"))
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + (1e-5 if own else self.config["rms_norm_eps"]))
        return x * (1 + weight if self.gemma else weight)

    def mlp(self, x, name):
        weights = self.weights
        if f"{name}mlp.gate_up_proj.weight" in weights:
            gate, up = np.split(x @ weights[f"{name}mlp.gate_up_proj.weight"].T, 2, -1)
        else:
            gate, up = (x @ weights[f"{name}mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        act = self.config.get("hidden_activation") or self.config["hidden_act"]
        return (ACTIVATIONS[act](gate) * up) @ weights[f"{name}mlp.down_proj.weight"].T

    def attention(self, x, name, kind, positions):
        config, count = self.config, len(x)
        heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
        width = config.get("head_dim") or config["hidden_size"] // heads
        if f"{name}qkv_proj.weight" in self.weights:
            parts = np.split(x @ self.weights[f"{name}qkv_proj.weight"].T, np.cumsum([heads, groups]) * width, -1)
        else:
            parts = [x @ self.weights[f"{name}{part}_proj.weight"].T for part in "qkv"]
        if (clip := config.get("clip_qkv")) is not None:
            parts = [part.clip(-clip, clip) for part in parts]
        q, k, v = (part.reshape(count, -1, width).transpose(1, 0, 2) for part in parts)
        if f"{name}q_norm.weight" in self.weights:
            q, k = self.norm(q, f"{name}q_norm"), self.norm(k, f"{name}k_norm")
        table = self.rotary(kind, width, positions)
        q, k = (self.rotate(part, *table) for part in (q, k))
        q = q * self.temperature(positions)[:, None]
        scale = (
            width if self.difference == "scale of the head" else config.get("query_pre_attn_scalar") or width
        ) ** -0.5
        half = self.difference == "attention in float16"
        q = half_precision(q) if half else q
        k, v = (half_precision(part) for part in (k, v)) if half or self.difference == "cache in float16" else (k, v)
        scores = self.capped(q @ np.repeat(k, heads // groups, 0).transpose(0, 2, 1) * scale, "attn_logit_softcapping")
        scores = np.where(self.visible(count, kind), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        y = weights / weights.sum(-1, keepdims=True) @ np.repeat(v, heads // groups, 0)
        y = half_precision(y) if half else y
        return y.transpose(1, 0, 2).reshape(count, -1) @ self.weights[f"{name}o_proj.weight"].T

    def visible(self, count, kind):
        query, key = np.arange(count)[:, None], np.arange(count)[None]
        window = self.config.get("sliding_window") if kind == LOCAL else None
        window = {None: count}.get(window, window) + (self.difference == "window plus one")
        if self.config.get("use_bidirectional_attention"):
            return abs(query - key) < window
        return (key <= query) & (query - key < window)

    def temperature(self, positions):
        rope = self.config.get("rope_parameters") or {}
        beta = rope.get("llama_4_scaling_beta")
        if beta is None or self.difference == "no temperature":
            return np.ones(len(positions), np.float32)
        steps = np.floor(positions / rope["original_max_position_embeddings"])
        return (1 + beta * np.log(1 + steps)).astype(np.float32)

    def capped(self, x, key):
        cap = self.config.get(key)
        return cap * np.tanh(x / cap) if cap else x

    def rotary(self, kind, width, positions):
        rope = self.config["rope_parameters"]
        rope = dict(rope.get(kind, rope))
        width, factor = int(width * rope.get("partial_rotary_factor", 1.0)), 1.0
        base = 1e6 if self.difference == "another base" else rope["rope_theta"]
        frequencies = base ** (-np.arange(0, width, 2) / width)
        scaling = "default" if self.difference == "no scaling" else rope.get("rope_type", "default")
        if scaling == "linear":
            frequencies = frequencies / rope["factor"]
        elif scaling == "llama3":
            frequencies = llama3(frequencies, rope)
        elif scaling == "longrope":
            original = rope.get("original_max_position_embeddings") or self.config["original_max_position_embeddings"]
            total = self.config["max_position_embeddings"] / original
            is_long = positions.max() + 1 > original or self.difference == "always the long factors"
            frequencies = frequencies / np.array(rope["long_factor" if is_long else "short_factor"])
            factor = rope.get("attention_factor") or math.sqrt(1 + math.log(total) / math.log(original))
        angles = positions[:, None] * frequencies[None]
        return np.float32(np.cos(angles) * factor), np.float32(np.sin(angles) * factor)

    def rotate(self, x, cos, sin):
        half = cos.shape[-1]
        turned, rest = x[..., : 2 * half], x[..., 2 * half :]
        if self.difference == "interleaved pairs":
            a, b = turned[..., 0::2], turned[..., 1::2]
            both = np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(turned.shape)
        else:
            a, b = turned[..., :half], turned[..., half:]
            both = np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
        return np.concatenate([both, rest], -1)


def llama3(frequencies, rope):
    low, high, original = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    turns = original * frequencies / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - smooth) * frequencies / rope["factor"] + smooth * frequencies


def bfloat16(values):
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def half_precision(values):
    return np.asarray(values).astype(np.float16).astype(np.float32)


def gelu(x):
    return (0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float32])(x / math.sqrt(2)))).astype(np.float32)


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"silu": lambda x: x / (1 + np.exp(-x)), "gelu": gelu, "gelu_pytorch_tanh": tanh_gelu}
