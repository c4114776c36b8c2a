"""A module with example inputs as a reference: the subject `file.py:name` with which a rewrite is compared.

A call has numbers of tokens. Each stands for a token that is drawn as the example inputs are, so that both sides get
the same ids or vectors. The module has no configuration: of the causes, those apply that change a module.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from orderproof.laws.ports import PortCall, PortModel
from orderproof.models.subject import Subject
from orderproof.ports.module_calls import ModuleCalls
from orderproof.ports.reference import Change, Reference
from orderproof.records.audit import SubjectRecord

NO_CONFIGURATION = SimpleNamespace(model_type="module", to_dict=dict)


@dataclass
class ModuleReference(Reference):
    """A module, its calls and its tokens."""

    calls: ModuleCalls = field(kw_only=True)

    @property
    def config(self) -> Any:
        """One without values."""
        return NO_CONFIGURATION

    @cached_property
    def tokens(self) -> Tensor:
        """Those that the numbers of a call stand for."""
        return self.calls.draw()

    @cached_property
    def port_model(self) -> PortModel:
        """Its number of tokens, and the length that it allows."""
        return PortModel(len(self.tokens), limit=self.calls.adapter.max_positions, seed=self.seed)

    def record(self) -> SubjectRecord:
        """Its entry in a report."""
        subject = self.calls.subject
        return SubjectRecord(
            name=self.name, kind=subject.model_kind, parameters=subject.parameter_count, layers=subject.layer_count,
            detail=self.summary, axes=dict(subject.axes_text), inputs=subject.input_roles,
        )  # fmt: skip

    def config_json(self) -> dict[str, Any]:
        """No keys."""
        return {}

    def save(self, folder: Path, extra_keys: dict[str, Any] | None = None) -> None:
        """Write nothing: a rewrite reads no checkpoint."""

    def _build(self, changes: Sequence[Change], call: PortCall | None, *, double: bool) -> Any:
        adapter = self.calls.adapter
        built = adapter.in_float64().module if double else copy.deepcopy(adapter.module)
        for change in changes:
            if change.configure is not None or change.positions is not None or change.pads is not None:
                raise ValueError("a module has no configuration")
            if change.prepare is not None:
                change.prepare(built)
            if change.prepare_for is not None and call is not None:
                change.prepare_for(built, call)
        return built

    def _forward(
        self, model: Any, tokens: Tensor, positions: Tensor | None = None, *, mask: Tensor | None = None
    ) -> Tensor:
        del positions, mask
        given = self.tokens[tokens]
        is_double = any(p.dtype is torch.float64 for p in model.parameters())
        given = given.double() if is_double and given.is_floating_point() else given
        return self.calls.of(model).outputs(given)


def module_reference(subject: Subject, *, seed: int = 0) -> ModuleReference:
    """The reference of a subject. Raises `SubjectError` if its inputs have no tokens."""
    calls = ModuleCalls(subject)
    return ModuleReference(subject.name, calls.adapter.module, seed=seed, summary=subject.load_summary, calls=calls)
