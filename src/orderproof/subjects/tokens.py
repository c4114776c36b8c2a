"""The tokens of a transformers model, drawn at random: vectors, or numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from orderproof.subjects.subject import Sample, labels, seeded

BATCH = 2


def embeddings_of(model: Any) -> Any:
    """The table of token vectors, where a model has a plain one."""
    try:
        embeddings = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):  # FSMT's encoder is a plain module
        return None
    return embeddings if hasattr(embeddings, "weight") else None


def draw_vectors(width: int, dtype: torch.dtype, device: str) -> Callable[[int, int], Sample]:
    """Random token vectors [batch, token, width]."""

    def draw(length: int, seed: int) -> Sample:
        shape = (BATCH, length, width)
        if device == "meta":
            return Sample((torch.empty(shape, dtype=dtype, device="meta"),), labels(length))
        return Sample((torch.randn(shape, generator=seeded(seed)).to(dtype),), labels(length))

    return draw


def draw_numbers(vocabulary: int, device: str) -> Callable[[int, int], Sample]:
    """Random token numbers [batch, token], past the first few, which are often special."""

    def draw(length: int, seed: int) -> Sample:
        numbers = torch.randint(min(8, vocabulary - 1), vocabulary, (BATCH, length), generator=seeded(seed))
        return Sample((numbers.to(device),), tuple(str(int(number)) for number in numbers[0]))

    return draw
