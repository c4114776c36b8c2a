"""TransformerLens: the bridge of a local checkpoint folder, with its own processing of the weights.

`enable_compatibility_mode` folds the norms into the weights and centres them, which moves the logits of a token by one
constant: log-probabilities are compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformer_lens import TransformerBridge
from transformer_lens.factories.architecture_adapter_factory import SUPPORTED_ARCHITECTURES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

DISTRIBUTIONS = ("transformer-lens", "transformers", "torch")


class _Model:
    normalised = True

    def __init__(self, bridge: Any) -> None:
        self.bridge = bridge

    @torch.no_grad()
    def prefill(self, row: list[int]) -> Any:
        return self.bridge(torch.tensor([row]), return_type="logits")[0].log_softmax(-1).numpy()

    @torch.no_grad()
    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        past, start, parts = None, 0, []
        for size in sizes:
            tokens = torch.tensor([row[start : start + size]])
            logits, past = self.bridge(tokens, return_type="logits_and_cache", past_key_values=past)
            parts.append(logits[0].log_softmax(-1).numpy())
            start += size
        return np.concatenate(parts)

    @torch.no_grad()
    def batch(self, rows: list[list[int]]) -> list[Any]:
        """The rows with pads on the left, as the library generates from them."""
        longest = max(map(len, rows))
        tokens = torch.tensor([[0] * (longest - len(row)) + list(row) for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        scores = self.bridge(tokens, return_type="logits", attention_mask=mask).log_softmax(-1).numpy()
        return [each[longest - len(row) :] for each, row in zip(scores, rows, strict=True)]


def knows(model_type: str) -> bool:
    """True for an architecture that the library has an adapter for."""
    return MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model_type) in SUPPORTED_ARCHITECTURES


def load(folder: Path) -> _Model:
    """Load a checkpoint in float32, and process its weights."""
    bridge = TransformerBridge.boot_transformers(str(folder), device="cpu", dtype=torch.float32)
    bridge.enable_compatibility_mode(disable_warnings=True)
    return _Model(bridge.eval())
