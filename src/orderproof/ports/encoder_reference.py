"""An encoder as a reference: the embeddings of its tokens, which are its last hidden states, and of whole texts.

An engine reads the checkpoint without a head. One that has a head is written without it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orderproof.laws.ports import PortCall, PortModel
from orderproof.laws.ports.port_law import ModelKind
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.position_tables import first_position
from orderproof.ports.pooling import Pooling, write_pooling
from orderproof.ports.reference import Change, Logits, Reference


@dataclass
class EncoderReference(Reference):
    """A model without a head."""

    pooling: Pooling | None = field(default=None, kw_only=True)
    has_head: bool = field(default=False, kw_only=True)  # the checkpoint in its folder

    @property
    def kind(self) -> ModelKind:
        """An encoder."""
        return "encoder"

    @property
    def engine_folder(self) -> Path | None:
        """Its own folder if an engine can read that."""
        return None if self.has_head else self.folder

    @cached_property
    def port_model(self) -> PortModel:
        """The same with its pooling; a window of layers that see both sides has a half on each."""
        found = super().port_model
        local = getattr(self.config, "local_attention", None)
        window = local // 2 + 1 if isinstance(local, int) and local > 0 else found.window
        return replace(found, pooling="" if self.pooling is None else self.pooling.mode, window=window)

    def save(self, folder: Path, extra_keys: dict[str, Any] | None = None) -> None:
        """Write its checkpoint, and its pooling."""
        super().save(folder, extra_keys)
        if self.pooling is not None:
            write_pooling(folder, self.pooling, self.config.hidden_size)

    def first_position(self) -> int:
        """The position id of the first token."""
        return first_position(self.model)

    def _compute(self, model: Any, call: PortCall, changes: Sequence[Change]) -> list[Logits]:
        if call.kind != "pooled":
            return super()._compute(model, call, changes)
        pooling = next((each.pooling for each in changes if each.pooling is not None), self.pooling)
        assert pooling is not None
        more = [Change(pads="kept")] if pooling.over_pads else []
        tokens = super()._compute(model, replace(call, kind="batch"), [*changes, *more])
        return [pooling(each) for each in tokens]

    def _with_pads(self, model: Any, call: PortCall, pads: str) -> list[Logits]:
        """The rows with pads on the right; `kept` pads are hidden, and returned."""
        longest, outputs = call.length, []
        for row in call.rows:
            after = longest - len(row)
            mask = None if pads == "visible" else torch.tensor([[1] * len(row) + [0] * after])
            output = self._forward(model, torch.tensor([[*row, *[self.config.pad_token_id or 0] * after]]), mask=mask)
            outputs.append(output[0, : longest if pads == "kept" else len(row)].double().numpy())
        return outputs

    def _forward(
        self, model: Any, tokens: Tensor, positions: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor:
        accepted = inspect.signature(model.forward).parameters
        if positions is not None and "position_ids" not in accepted:
            raise ValueError("the model takes no position ids")
        given = {"position_ids": positions, "attention_mask": mask}
        more = {name: value for name, value in given.items() if value is not None}
        with torch.no_grad(), suppress_warnings():
            embeddings: Tensor = model(tokens, **more).last_hidden_state
        return embeddings
