"""The position tables of a transformers model: their first position id and their size."""

from __future__ import annotations

from typing import Any

from torch import nn

TABLE_NAMES = {"position_embeddings", "position_embedding", "embed_positions", "positions_embed", "wpe", "pos_embed"}


def first_position(model: nn.Module) -> int:
    """The position id of the first token.

    RoBERTa and similar models start after the padding index; others read it from a buffer of position ids.
    """
    if (buffered := _first_buffered_position(model)) > 0:
        return buffered
    return max(
        (
            part.padding_idx + 1
            for path, part in model.named_modules()
            if path.rpartition(".")[2] in TABLE_NAMES and _offset_by_padding(part)
        ),
        default=0,
    )


def position_table_size(model: nn.Module) -> int | None:
    """The most tokens that the position tables of a model have rows for; None without a table."""
    first = _first_buffered_position(model)
    rows = [
        len(part.weight) - (part.padding_idx + 1 if part.padding_idx is not None else getattr(part, "offset", first))
        for path, part in model.named_modules()
        if path.rpartition(".")[2] in TABLE_NAMES and _is_embedding_table(part)
    ]
    return min(rows, default=None)


def _first_buffered_position(model: nn.Module) -> int:
    """The first position id in a buffer; 0 without such a buffer."""
    buffers = (
        ids for path, ids in model.named_buffers()
        if path.endswith("position_ids") and ids.dim() == 2 and ids.device.type != "meta" and ids.numel()
    )  # fmt: skip
    return next((first for ids in buffers if (first := int(ids[0, 0])) > 0), 0)


def _is_embedding_table(part: Any) -> bool:
    return isinstance(part, nn.Embedding) or type(part).__name__ == "QuantEmbedding"


def _offset_by_padding(part: Any) -> bool:
    """True if position ids start after the padding index: a table with a padding row, or a computed one."""
    is_table = _is_embedding_table(part) or hasattr(part, "create_position_ids_from_input_ids")
    return is_table and isinstance(getattr(part, "padding_idx", None), int)
