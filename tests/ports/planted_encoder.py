"""An encoder of transformers as an engine, with one planted difference in its modules, its calls or its pooling."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orderproof.library_messages import suppress_warnings
from orderproof.ports.engines.engine import InferenceEngine, LoadedModel, Row, Scores

Plant = Callable[[Any], None]
Pool = Callable[[Tensor, int], Tensor]  # the hidden states of a row with its pads, and its length


def mean(hidden: Tensor, length: int) -> Tensor:
    """The pooling of the tiny checkpoints."""
    pooled = hidden[:length].mean(0)
    return pooled / pooled.norm()


class PlantedEncoder(LoadedModel):
    """Rows of a batch with pads on the right."""

    def __init__(self, model: Any, faults: frozenset[str], pool: Pool) -> None:
        self.model, self.faults, self.pool = model, faults, pool

    def _hidden(self, rows: Sequence[Row]) -> Tensor:
        longest = max(map(len, rows))
        tokens = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        if "pads attended to" in self.faults:
            mask = torch.ones_like(mask)
        more = {"position_ids": torch.arange(longest)[None]} if "positions from 0" in self.faults else {}
        with torch.no_grad(), suppress_warnings():
            found: Tensor = self.model(tokens, attention_mask=mask, **more).last_hidden_state
        return found

    def prefill(self, row: Row) -> Scores:
        return self.batch([row])[0]

    def batch(self, rows: Sequence[Row]) -> list[Scores]:
        return [Scores(each[: len(row)].numpy()) for each, row in zip(self._hidden(rows), rows, strict=True)]

    def pooled(self, rows: Sequence[Row]) -> list[Scores]:
        pairs = zip(self._hidden(rows), rows, strict=True)
        return [Scores(self.pool(each, len(row))[None].numpy()) for each, row in pairs]


@dataclass(frozen=True, kw_only=True)
class PlantedEncoderEngine(InferenceEngine):
    """The engine."""

    name: str = "planted"
    title: str = "an encoder with a planted difference"
    encoder_abilities: frozenset[str] = frozenset({"prefill", "batch", "pooled"})
    reads_config: bool = False
    plants: tuple[Plant, ...] = ()
    faults: frozenset[str] = frozenset()
    pool: Pool = mean

    def load(self, folder: Path) -> LoadedModel:
        raise NotImplementedError

    def load_encoder(self, folder: Path) -> LoadedModel:
        from transformers import AutoModel

        with suppress_warnings():
            model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        for plant in self.plants:
            plant(model)
        return PlantedEncoder(model, self.faults, self.pool)


# ------------------------------------------------------------ plants


def second_type(model: Any) -> None:
    """Every token has the second type."""
    with torch.no_grad():
        model.embeddings.token_type_embeddings.weight[0] = model.embeddings.token_type_embeddings.weight[1]


def causal(model: Any) -> None:
    """Attention to earlier tokens only, as of a decoder."""
    module = sys.modules[type(model).__module__]
    build = module.create_bidirectional_mask

    def causal_mask(**options: Any) -> Tensor:
        count, mask = options["inputs_embeds"].shape[1], build(**options)
        earlier = torch.ones(count, count, dtype=torch.bool).tril()
        return earlier[None, None] if mask is None else mask & earlier

    module.create_bidirectional_mask = causal_mask


def exact_window(size: int) -> Plant:
    def plant(model: Any) -> None:
        model.config.local_attention = size

    return plant
