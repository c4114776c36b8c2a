"""mlx-embeddings: the embeddings of tokens and of texts, of an encoder in a local checkpoint folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_embeddings.utils import load_model

DISTRIBUTIONS = ("mlx-embeddings", "mlx", "mlx-vlm", "transformers")


class _Encoder:
    def __init__(self, model: Any) -> None:
        self.model = model

    def _ask(self, model: Any, rows: list[list[int]], **options: Any) -> Any:
        """The rows with pads on the right, and the mask of numbers, as tokenizers of encoders write them."""
        longest, lengths = max(map(len, rows)), list(map(len, rows))
        tokens = [list(row) + [0] * (longest - len(row)) for row in rows]
        mask = [[1] * length + [0] * (longest - length) for length in lengths]
        return model(mx.array(np.array(tokens)), attention_mask=mx.array(np.array(mask)), **options)

    def batch(self, rows: list[list[int]]) -> list[Any]:
        if hasattr(self.model, "model"):  # that of ModernBERT returns the embeddings of texts only
            states = self._ask(self.model.model, rows, return_dict=True)["last_hidden_state"]
        else:
            states = self._ask(self.model, rows).last_hidden_state
        return [each[: len(row)] for each, row in zip(np.array(states), rows, strict=True)]

    def prefill(self, row: list[int]) -> Any:
        return self.batch([row])[0]

    def pooled(self, rows: list[list[int]]) -> list[Any]:
        return [each[None] for each in np.array(self._ask(self.model, rows).text_embeds)]


def knows(model_type: str) -> bool:
    """No causal language model is compared: it returns embeddings."""
    del model_type
    return False


def knows_encoder(model_type: str) -> bool:
    """True for an architecture that the library has a module for."""
    return importlib.util.find_spec(f"mlx_embeddings.models.{model_type.replace('-', '_')}") is not None


def load(folder: Path) -> Any:
    """It is not asked for one."""
    raise NotImplementedError(folder)


def load_encoder(folder: Path) -> _Encoder:
    """Load a checkpoint on the CPU, where the reference runs too."""
    mx.set_default_device(mx.cpu)
    return _Encoder(load_model(folder, path_to_repo=str(folder)))
