"""curated-transformers: a causal language model from a local checkpoint folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from curated_transformers import registry
from curated_transformers.layers.attention import AttentionMask
from curated_transformers.models import AutoCausalLM
from fsspec.implementations.local import LocalFileSystem

DISTRIBUTIONS = ("curated-transformers", "torch", "numpy")


class _Model:
    def __init__(self, model: Any) -> None:
        self.model = model

    @torch.no_grad()
    def batch(self, rows: list[list[int]]) -> list[Any]:
        """The rows with pads on the right, where its calls without positions count from the first token."""
        longest = max(map(len, rows))
        tokens = torch.tensor([list(row) + [0] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[True] * len(row) + [False] * (longest - len(row)) for row in rows])
        logits = self.model(tokens, AttentionMask(mask)).logits.numpy()
        return [each[: len(row)] for each, row in zip(logits, rows, strict=True)]

    def prefill(self, row: list[int]) -> Any:
        return self.batch([row])[0]

    @torch.no_grad()
    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        cache, start, parts = None, 0, []
        for size in sizes:
            mask = AttentionMask(torch.ones(1, start + size, dtype=torch.bool))
            tokens = torch.tensor([row[start : start + size]])
            output = self.model(tokens, mask, cache=cache, store_cache=True)
            cache, start = output.cache, start + size
            parts.append(output.logits[0].numpy())
        return np.concatenate(parts)


def knows(model_type: str) -> bool:
    """True for an architecture of which the library has a causal language model."""
    return any(
        each.is_supported({"model_type": model_type}) for each in registry.causal_lms.get_entry_points().values()
    )


def load(folder: Path) -> _Model:
    """Load a checkpoint in float32: the type that config.json states."""
    return _Model(AutoCausalLM.from_fsspec(fs=LocalFileSystem(), model_path=str(folder)).float().eval())
