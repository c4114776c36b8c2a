"""The reference of a port: a transformers model with a language-model head, its checkpoint, and changed copies of it.

A changed copy has the same weights and another configuration, or a patched part. It shows which setting explains a
difference: if the copy gives the outputs of the engine, the engine computes the changed setting.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orderproof.laws.ports import PortCall, PortModel
from orderproof.laws.ports.port_law import ModelKind
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.build_subject import use_batched_experts
from orderproof.models.hf.context_spans import context_spans
from orderproof.models.hf.effective_config import effective_config
from orderproof.models.hf.position_tables import position_table_size
from orderproof.models.subject import count_parameters
from orderproof.ports.float64_casts import Float64Casts
from orderproof.ports.pooling import Pooling
from orderproof.records.audit import SubjectRecord

Logits = NDArray[np.float64]  # [token, vocabulary] of one row
Patch = Callable[[Any], AbstractContextManager[object]]
CONFIG_FILE = "config.json"
MAX_TRIED = 1024  # [tokens] of a call that only shows whether it is possible


@dataclass(frozen=True)
class Change:
    """One change of a reference: of its configuration, of its built module, or of its code during a call."""

    configure: Callable[[Any], Any] | None = None  # a configuration -> the changed one
    prepare: Callable[[Any], None] | None = None  # changes a built module
    prepare_for: Callable[[Any, PortCall], None] | None = None  # the same for one call
    patch: Patch | None = None  # entered around each call
    positions: Callable[[PortCall], Sequence[Sequence[int]]] | None = None  # position ids of each row
    pads: Literal["visible", "masked", "kept"] | None = None  # of rows, whose positions the model itself counts
    pooling: Pooling | None = None  # of an encoder


@dataclass
class Reference:
    """A model, the properties that calls depend on, and its outputs."""

    name: str
    model: Any  # a PreTrainedModel in float32 and eval mode that returns logits
    folder: Path | None = None  # of its checkpoint, if it was loaded from one
    seed: int = 0
    summary: str = ""
    _outputs: dict[Any, list[Logits]] = field(default_factory=dict, repr=False)

    @property
    def config(self) -> Any:
        """The configuration of the model."""
        return self.model.config

    @property
    def kind(self) -> ModelKind:
        """The kind of its outputs: logits of tokens, or embeddings."""
        return "causal_lm"

    @property
    def engine_folder(self) -> Path | None:
        """The folder that an engine reads; None if the checkpoint has to be written."""
        return self.folder

    @property
    def tokens(self) -> Tensor | None:
        """The tokens that the numbers of a call stand for; None if the numbers are ids."""
        return None

    def record(self) -> SubjectRecord:
        """Its entry in a report."""
        return SubjectRecord(
            name=self.name, kind=self.kind, parameters=count_parameters(self.model),
            layers=getattr(self.config, "num_hidden_layers", None), detail=self.summary,
            configuration=effective_config(self.model),
        )  # fmt: skip

    @cached_property
    def port_model(self) -> PortModel:
        """The properties that the calls of laws depend on."""
        config = self.config
        rope = getattr(config, "rope_parameters", None) or {}
        originals = [v for k, v in _flat_items(rope) if k == "original_max_position_embeddings" and isinstance(v, int)]
        stated = getattr(config, "max_position_embeddings", None)
        longest = stated if isinstance(stated, int) and stated > 1 else None
        return PortModel(
            vocabulary=int(config.vocab_size), kind=self.kind, window=window_of(config),
            context=min(originals, default=longest), stated=longest,
            limit=self._length_limit(stated), seed=self.seed,
        )  # fmt: skip

    def _length_limit(self, stated: Any) -> int | None:
        """The number of tokens that a table of positions allows: a computed one is found by a call past the context."""
        table = position_table_size(self.model)
        if table is not None or not isinstance(stated, int) or not 1 < stated <= MAX_TRIED:
            return table
        try:
            self._forward(self.model, torch.zeros((1, stated + 1), dtype=torch.long))
        except (IndexError, RuntimeError):
            return stated
        return None

    def outputs(self, call: PortCall, changes: Sequence[Change] = (), *, double: bool = False) -> list[Logits]:
        """The logits of each row, in float64 arithmetic if ``double``; changed copies are not kept."""
        if changes:
            return self._compute(self._build(changes, call, double=double), call, changes)
        key = (call, double)
        if key not in self._outputs:
            model = self._float64_model if double else self.model
            with Float64Casts() if double else nullcontext():
                self._outputs[key] = self._compute(model, call, ())
        return self._outputs[key]

    def greedy(self, call: PortCall, changes: Sequence[Change] = ()) -> Iterator[tuple[int, float]]:
        """The generated token ids of the first row, each with the gap between its logit and the next one, relative."""
        row, model = list(call.rows[0]), self._build(changes, call, double=False) if changes else self.model
        for _ in range(call.count):
            logits = self._compute(model, PortCall("prefill", (tuple(row),)), changes)[0][-1]
            token = int(logits.argmax())
            second = float(np.partition(logits, -2)[-2])
            yield token, float((logits[token] - second) / np.abs(logits).max())
            row.append(token)

    def save(self, folder: Path, extra_keys: dict[str, Any] | None = None) -> None:
        """Write its checkpoint as safetensors, with more keys in config.json if there are any."""
        with suppress_warnings():
            self.model.save_pretrained(folder)
        if extra_keys:
            file = folder / CONFIG_FILE
            file.write_text(
                json.dumps({**json.loads(file.read_text(encoding="utf-8")), **extra_keys}), encoding="utf-8"
            )

    def with_changes(self, changes: Sequence[Change]) -> Reference:
        """A reference whose model has these changes; it has no folder."""
        return replace(self, model=self._build(changes, None, double=False), folder=None, _outputs={})

    def config_json(self) -> dict[str, Any]:
        """The content of config.json."""
        return dict(json.loads(self.config.to_json_string(use_diff=False)))

    @cached_property
    def _float64_model(self) -> Any:
        with Float64Casts():
            return self._build((), None, double=True)

    def _build(self, changes: Sequence[Change], call: PortCall | None, *, double: bool) -> Any:
        """A copy of the model with these changes and the same weights."""
        from transformers.initialization import no_init_weights

        config = copy.deepcopy(self.config)
        for change in changes:
            config = config if change.configure is None else change.configure(config)
        dtype = torch.float64 if double else torch.float32
        with suppress_warnings(), no_init_weights():
            built = type(self.model)._from_config(
                config, attn_implementation=self.config._attn_implementation, dtype=dtype
            )
        state = {name: value.to(dtype) if value.is_floating_point() else value for name, value in self._state.items()}
        built.load_state_dict(state, strict=True)
        use_batched_experts(built)
        for change in changes:
            if change.prepare is not None:
                change.prepare(built)
            if change.prepare_for is not None and call is not None:
                change.prepare_for(built, call)
        return built.eval()

    @cached_property
    def _state(self) -> dict[str, Tensor]:
        return dict(self.model.state_dict())

    def _compute(self, model: Any, call: PortCall, changes: Sequence[Change]) -> list[Logits]:
        with ExitStack() as stack:
            for change in changes:
                if change.patch is not None:
                    stack.enter_context(change.patch(model))
            positions = next((c.positions(call) for c in changes if c.positions is not None), None)
            if call.kind == "chunks" and positions is None:
                return [self._in_chunks(model, call)]
            pads = next((c.pads for c in changes if c.pads is not None), None)
            if call.kind == "batch" and pads is not None:
                return self._with_pads(model, call, pads)
            rows = [torch.tensor([row]) for row in call.compared_rows]
            ids = [None] * len(rows) if positions is None else [torch.tensor([each]) for each in positions]
            pairs = zip(rows, ids, strict=True)
            return [self._forward(model, row, positions=each)[0].double().numpy() for row, each in pairs]

    def _in_chunks(self, model: Any, call: PortCall) -> Logits:
        if "past_key_values" not in inspect.signature(model.forward).parameters:  # a recurrent model
            whole: Logits = self._forward(model, torch.tensor([call.rows[0]]))[0].double().numpy()
            return whole
        row, start, past, parts = torch.tensor([call.rows[0]]), 0, None, []
        for size in call.sizes:
            with torch.no_grad(), suppress_warnings():
                output = model(row[:, start : start + size], past_key_values=past, use_cache=True)
            past = output.past_key_values
            parts.append(output.logits[0].double())
            start += size
        joined: Logits = torch.cat(parts).numpy()
        return joined

    def _with_pads(self, model: Any, call: PortCall, pads: str) -> list[Logits]:
        """The rows with pads on the left, which the mask hides if they are `masked`."""
        longest = call.length
        outputs = []
        for row in call.rows:
            before = longest - len(row)
            mask = torch.tensor([[0] * before + [1] * len(row)]) if pads == "masked" else None
            output = self._forward(model, torch.tensor([[0] * before + list(row)]), mask=mask)
            outputs.append(output[0, before:].double().numpy())
        return outputs

    def _forward(
        self, model: Any, tokens: Tensor, positions: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor:
        if positions is not None:  # without a mask, transformers reads gaps in position ids as packed documents
            mask = torch.ones_like(tokens)
        given = {"position_ids": positions, "attention_mask": mask}
        more = {name: value for name, value in given.items() if value is not None}
        with torch.no_grad(), suppress_warnings():
            logits: Tensor = model(tokens, use_cache=False, **more).logits
        return logits


def window_of(config: Any) -> int | None:
    """The window of some layer [tokens]; None without one, or if no layer uses it."""
    types = getattr(config, "layer_types", None)
    sizes = [size for key, size in context_spans(config).items() if "window" in key or "attention_chunk" in key]
    local = types is None or any(kind not in ("full_attention", "attention") for kind in types)
    unused = getattr(config, "use_sliding_window", None) is False
    return min(sizes) if sizes and local and not unused else None


def _flat_items(values: Any) -> list[tuple[str, Any]]:
    items: list[tuple[str, Any]] = []
    for key, value in values.items():
        items += _flat_items(value) if isinstance(value, dict) else [(key, value)]
    return items
