"""Random tokens of a transformers model: embeddings or token ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from orderproof.models.sample import BATCH_SIZE, Sample, seeded_generator, token_labels


def input_embeddings(model: Any) -> Any:
    """The embedding table of a model; None if it has no plain one."""
    try:
        embeddings = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):  # FSMT's encoder is a plain module
        return None
    return embeddings if hasattr(embeddings, "weight") else None


def embedding_sampler(width: int, dtype: torch.dtype, device: str) -> Callable[[int, int], Sample]:
    """Draws random token embeddings [batch, token, width]."""

    def draw(length: int, seed: int) -> Sample:
        shape = (BATCH_SIZE, length, width)
        if device == "meta":
            return Sample((torch.empty(shape, dtype=dtype, device="meta"),), token_labels(length))
        return Sample((torch.randn(shape, generator=seeded_generator(seed)).to(dtype),), token_labels(length))

    return draw


def token_id_sampler(vocab_size: int, device: str) -> Callable[[int, int], Sample]:
    """Draws random token ids [batch, token], without the first few, which are often special."""

    def draw(length: int, seed: int) -> Sample:
        lowest = min(8, vocab_size - 1)
        token_ids = torch.randint(lowest, vocab_size, (BATCH_SIZE, length), generator=seeded_generator(seed))
        return Sample((token_ids.to(device),), tuple(map(str, token_ids[0].tolist())))

    return draw
