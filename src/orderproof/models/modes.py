"""Eval mode and train mode: the one that is audited, and if the other one is another computation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from orderproof.errors import UsageError
from orderproof.models.own_errors import raise_own_error
from orderproof.models.process_state import preserved_settings
from orderproof.models.subject import Subject
from orderproof.models.training_forward import NOT_AS_IN_TRAINING
from orderproof.operator_mode import OperatorMode
from orderproof.recording.eager_check import without_fast_path
from orderproof.recording.restored_state import restored_state
from orderproof.registry import did_you_mean
from orderproof.seeded_random import seeded_random
from orderproof.subject_spec import MODES

_OTHER = {"eval": "train", "train": "eval"}

_Called = tuple[str, tuple[str, ...], bool]  # an operator, its numbers and flags, and if it draws random numbers


def check_mode(mode: str) -> str:
    """The mode. Raises `UsageError` if there is no such mode."""
    if mode not in MODES:
        raise UsageError(f"expected mode to be {' or '.join(MODES)}; got {mode!r}{did_you_mean(str(mode), MODES)}")
    return mode


def state_mode(subject: Subject, module: nn.Module, mode: str) -> None:
    """Let a subject state the mode of its module, if its call computes something else in the other one.

    A graph of a file is of one mode (`of_one_mode`), and is not called.
    """
    if getattr(module, "of_one_mode", False):
        return
    calls = _CallsInModes(subject, module)
    if not (readers := calls.readers([part for part in module.modules() if part.training == (mode == "train")])):
        return
    subject.mode = f"in {mode} mode; in {_OTHER[mode]} mode {', '.join(readers)} would compute something else"
    if mode == "eval":
        how = "--mode train (mode='train' in Python) audits the training forward"
    else:
        subject.mode += f"; {NOT_AS_IN_TRAINING}"
        subject.draws_random_numbers = calls.draws_random_numbers()
        how = "runs of one shape draw the same random numbers"
    subject.notes = (*subject.notes, f"audited {subject.mode}; {how}")


@dataclass
class _CallsInModes:
    """Calls of a subject whose modules are switched for them; `module` has all these modules."""

    subject: Subject
    module: nn.Module

    def readers(self, switched: Sequence[nn.Module]) -> list[str]:
        """The classes of the modules whose mode changes the operators of a call; empty if both modes do the same."""
        given = self._operators(())
        if self._operators(switched) == given:
            return []
        by_class: dict[str, list[nn.Module]] = {}
        for part in switched:
            by_class.setdefault(type(part).__name__, []).append(part)
        return [name for name, parts in by_class.items() if self._operators(parts) != given] or ["the model"]

    def draws_random_numbers(self) -> bool:
        """True if an operator of a call draws random numbers."""
        return any(draws for _, _, draws in self._operators(()))

    def _operators(self, switched: Sequence[nn.Module]) -> list[_Called]:
        """The operators of a call in which these modules, and no other ones, have the other mode."""
        recorded = _Operators()
        inputs = self.subject.sample(self.subject.default_length).inputs
        with (
            preserved_settings(self.subject.name), restored_state(self.module), _switched(switched), torch.no_grad(),
            seeded_random(0), without_fast_path(), recorded,
        ):  # fmt: skip
            try:
                self.subject.module(*inputs)
            except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in one mode
                raise_own_error(error)
                recorded.called.append((type(error).__name__, (), False))
        return recorded.called


@contextmanager
def _switched(parts: Sequence[nn.Module]) -> Iterator[None]:
    """Switch the mode of these modules, and of no other one, for a block."""
    for part in parts:
        part.training = not part.training
    try:
        yield
    finally:
        for part in parts:
            part.training = not part.training


class _Operators(OperatorMode):
    """Writes down the operators that are called, with every argument that is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[_Called] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = [repr(a) for a in (*args, *(kwargs or {}).values()) if a is None or isinstance(a, bool | int | float)]
        draws = torch.Tag.nondeterministic_seeded in getattr(
            func, "tags", ()
        )  # an operator with nested functions has none
        self.called.append((str(func), tuple(given), draws))
        return func(*args, **(kwargs or {}))
