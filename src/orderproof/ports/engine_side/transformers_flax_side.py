"""The models of Flax that transformers had before version 5: a causal language model from a local checkpoint folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from transformers import FlaxAutoModelForCausalLM
from transformers.models.auto import modeling_flax_auto

DISTRIBUTIONS = ("transformers", "flax", "jax", "numpy")


class _Model:
    def __init__(self, model: Any) -> None:
        self.model = model
        self.call = jax.jit(self._call)

    def _call(self, params: Any, tokens: Any, mask: Any) -> Any:
        return self.model(tokens, attention_mask=mask, params=params).logits

    def batch(self, rows: list[list[int]]) -> list[Any]:
        """The rows with pads on the right, where its calls without position ids count from the first token."""
        longest = max(map(len, rows))
        tokens = np.array([list(row) + [0] * (longest - len(row)) for row in rows], dtype=np.int32)
        mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows], dtype=np.int32)
        logits = np.asarray(self.call(self.model.params, tokens, mask))
        return [each[: len(row)] for each, row in zip(logits, rows, strict=True)]

    def prefill(self, row: list[int]) -> Any:
        return self.batch([row])[0]

    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        tokens, mask = jnp.array([row], dtype=jnp.int32), jnp.ones((1, len(row)), dtype=jnp.int32)
        given, start, parts = self.model.prepare_inputs_for_generation(tokens, len(row), mask), 0, []
        for size in sizes:
            more = {"position_ids": jnp.arange(start, start + size)[None]} if "position_ids" in given else {}
            chunk = tokens[:, start : start + size]
            found = self.model(chunk, attention_mask=mask, past_key_values=given["past_key_values"], **more)
            given["past_key_values"], start = found.past_key_values, start + size
            parts.append(np.asarray(found.logits)[0])
        return np.concatenate(parts)

    def greedy(self, row: list[int], count: int) -> list[int]:
        found = self.model.generate(
            jnp.array([row], dtype=jnp.int32), max_new_tokens=count, do_sample=False, pad_token_id=0,
            eos_token_id=self.model.config.vocab_size,
        )  # fmt: skip
        return [int(token) for token in np.asarray(found.sequences)[0, len(row) :]]


def knows(model_type: str) -> bool:
    """True for an architecture of which the library has a causal language model."""
    return model_type in modeling_flax_auto.FLAX_MODEL_FOR_CAUSAL_LM_MAPPING_NAMES


def load(folder: Path) -> _Model:
    """Load a checkpoint; the library converts the weights of torch."""
    return _Model(FlaxAutoModelForCausalLM.from_pretrained(str(folder), local_files_only=True))  # float32
