"""A rewrite of a model as an engine: `file.py:name` or `package.module:name`, a module of torch or a model of JAX.

It has weights of its own, which are those of the reference if it is right, and reads no checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orderproof.errors import SubjectError, UsageError
from orderproof.ports.engines.engine import EngineError, InferenceEngine, LoadedModel, Row, Scores
from orderproof.subject_spec import check_spec

if TYPE_CHECKING:
    from torch import Tensor

    from orderproof.ports.module_calls import ModuleCalls
    from orderproof.ports.reference import Reference

_SPEC = re.compile(r".+\.py:[A-Za-z_][\w.]*|[A-Za-z_]\w*(\.[A-Za-z_]\w*)+:[A-Za-z_][\w.]*")


class _Rewrite(LoadedModel):
    def __init__(self, calls: ModuleCalls, tokens: Tensor | None) -> None:
        self.calls, self.tokens = calls, tokens  # the token of each number; None: an id is its number

    def prefill(self, row: Row) -> Scores:
        return Scores(self.calls.outputs(self._tokens([row]))[0].numpy())

    def batch(self, rows: Sequence[Row]) -> list[Scores]:
        import torch

        lengths = torch.tensor([len(row) for row in rows])
        longest = int(lengths.max())
        padded = [[*row, *[row[-1]] * (longest - len(row))] for row in rows]  # on the right, where positions stay
        found = self.calls.outputs(self._tokens(padded), mask=torch.arange(longest) < lengths[:, None])
        return [Scores(each[: len(row)].numpy()) for each, row in zip(found, rows, strict=True)]

    def _tokens(self, rows: Sequence[Row]) -> Tensor:
        import torch

        numbers = torch.tensor([list(row) for row in rows])
        return numbers if self.tokens is None else self.tokens[numbers]


@dataclass(frozen=True, kw_only=True)
class SubjectEngine(InferenceEngine):
    """A rewrite by its name; `for_reference` loads it."""

    title: str = "a rewrite"
    reads_config: bool = False
    reads_checkpoint: bool = False
    loaded: _Rewrite | None = field(default=None, compare=False, repr=False)

    def for_reference(self, reference: Reference) -> InferenceEngine:
        """The rewrite with its model, which takes the tokens of a reference. Raises `SubjectError`, `UsageError`."""
        from orderproof.models import load
        from orderproof.ports.module_calls import ModuleCalls

        calls = ModuleCalls(load(self.target, seed=reference.seed))
        tokens = reference.tokens
        calls.check_takes(tokens)
        kinds = {"prefill", "batch"} if calls.takes_mask else {"prefill"}
        return replace(self, abilities=frozenset(kinds), loaded=_Rewrite(calls, tokens))

    def load(self, folder: Path) -> LoadedModel:
        del folder
        if self.loaded is None:
            raise EngineError(f"{self.name} is not loaded")
        return self.loaded


def names_a_subject(spec: str) -> bool:
    """True of the text of a Python object, and not of an engine."""
    return _SPEC.fullmatch(spec) is not None


def subject_engine(spec: str) -> SubjectEngine:
    """The rewrite of a text. Raises `UsageError` for a file or a package that is not there."""
    try:
        check_spec(spec)
    except SubjectError as error:
        raise UsageError(str(error)) from error
    return SubjectEngine(name=spec, target=spec)
