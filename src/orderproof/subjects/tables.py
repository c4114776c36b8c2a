"""The position tables of a transformers model: where they begin to count, and how many rows they have."""

from __future__ import annotations

from typing import Any

from torch import nn

TABLES = {"position_embeddings", "position_embedding", "embed_positions", "positions_embed", "wpe", "pos_embed"}


def first_position(model: nn.Module) -> int:
    """The position id of the first token: RoBERTa and its kin count from the one behind the padding's.

    Others keep their ids in a buffer, which may start anywhere.
    """
    if (found := _first_in_buffer(model)) > 0:
        return found
    return max(
        (
            part.padding_idx + 1
            for path, part in model.named_modules()
            if path.rpartition(".")[2] in TABLES and _counts_past_padding(part)
        ),
        default=0,
    )


def table_rows(model: nn.Module) -> int | None:
    """The most tokens the position tables of a model have rows for."""
    first = _first_in_buffer(model)
    rows = [
        len(part.weight) - (part.padding_idx + 1 if part.padding_idx is not None else getattr(part, "offset", first))
        for path, part in model.named_modules()
        if path.rpartition(".")[2] in TABLES and _is_table(part)
    ]
    return min(rows, default=None)


def _first_in_buffer(model: nn.Module) -> int:
    """The first of the ids that a model keeps in a buffer; 0 where it keeps none."""
    kept = (
        ids for path, ids in model.named_buffers()
        if path.endswith("position_ids") and ids.dim() == 2 and ids.device.type != "meta" and ids.numel()
    )  # fmt: skip
    return next((first for ids in kept if (first := int(ids[0, 0])) > 0), 0)


def _is_table(part: Any) -> bool:
    return isinstance(part, nn.Embedding) or type(part).__name__ == "QuantEmbedding"


def _counts_past_padding(part: Any) -> bool:
    """A table with a row for padding; or one that works its rows out, and counts as RoBERTa does."""
    counts = _is_table(part) or hasattr(part, "create_position_ids_from_input_ids")
    return counts and isinstance(getattr(part, "padding_idx", None), int)
