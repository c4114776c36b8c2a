"""KerasHub: a causal language model from a local checkpoint folder, on the backend that KERAS_BACKEND names."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import keras_hub
import numpy as np
from keras import ops
from keras_hub.src.utils.transformers import preset_loader

DISTRIBUTIONS = ("keras-hub", "keras", "torch", "jax", "numpy")


class _Model:
    def __init__(self, task: Any) -> None:
        self.task = task

    def batch(self, rows: list[list[int]]) -> list[Any]:
        """The rows with pads on the right, as this library has them."""
        longest = max(map(len, rows))
        tokens = np.array([list(row) + [0] * (longest - len(row)) for row in rows], dtype=np.int32)
        mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows], dtype=np.int32)
        logits = ops.convert_to_numpy(self.task({"token_ids": tokens, "padding_mask": mask}))
        return [each[: len(row)] for each, row in zip(logits, rows, strict=True)]

    def prefill(self, row: list[int]) -> Any:
        return self.batch([row])[0]

    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        tokens = np.array([row], dtype=np.int32)
        _, cache = self.task._build_cache(ops.convert_to_tensor(tokens))  # seeded with all tokens
        cache, start, parts = ops.zeros_like(cache), 0, []
        for size in sizes:
            chunk = ops.convert_to_tensor(tokens[:, start : start + size])
            logits, _, cache = self.task.call_with_cache(chunk, cache, start)
            parts.append(ops.convert_to_numpy(logits)[0])
            start += size
        return np.concatenate(parts)

    def greedy(self, row: list[int], count: int) -> list[int]:
        self.task.compile(sampler="greedy")
        tokens, mask = np.zeros((2, 1, len(row) + count), dtype=np.int32)
        tokens[0, : len(row)], mask[0, : len(row)] = row, 1
        output = self.task.generate({"token_ids": tokens, "padding_mask": mask}, stop_token_ids=None)
        return [int(token) for token in np.asarray(output["token_ids"])[0][len(row) :]]


def knows(model_type: str) -> bool:
    """True for an architecture for which the library has a converter; the loader names them."""
    return f'"{model_type}"' in re.findall(r'"\w+"', inspect.getsource(preset_loader))


def load(folder: Path) -> _Model:
    """Load a checkpoint in float32, without its tokenizer."""
    return _Model(keras_hub.models.CausalLM.from_preset(str(folder), preprocessor=None, dtype="float32"))
