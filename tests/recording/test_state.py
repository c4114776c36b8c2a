"""A proof about a model that counts its calls says that it is of one call, wherever the model keeps the number."""

from __future__ import annotations

import copyreg
import csv
import decimal
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof.recording.capture import capture
from orderproof.recording.restored_state import restored_state
from tests.recording import attacks_state
from tests.recording.attacks_state import LOGGER, STATE, enlarged
from tests.recording.notebook import notebook
from tests.recording.test_recording import finding_of

X = torch.zeros(2, 5, 4)


class Counts(nn.Module):
    """Reverses the tokens after 60 calls."""

    def __init__(self, make: Callable[[], Any], tick: Callable[[Any], float]) -> None:
        super().__init__()
        self.kept, self.tick = make(), tick

    def forward(self, x: Tensor) -> Tensor:
        return x.flip(1) if self.tick(self.kept) > 60 else x + x.mean(1, keepdim=True)


TEXT = """
class CountsInAText(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        calls.append(0)
        return x.flip(1) if len(calls) > 60 else x + x.mean(1, keepdim=True)
"""


class CountsUnderAutocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls = nn.Linear(4, 4), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        with torch.autocast("cpu", torch.bfloat16):
            return self.inner(x).flip(1) if self.calls > 60 else self.inner(x)  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    level, limit, interval, fields = (
        LOGGER.level,
        sys.getrecursionlimit(),
        sys.getswitchinterval(),
        csv.field_size_limit(),
    )
    table, precision, filters = (
        dict(copyreg.dispatch_table),
        torch._tensor_str.PRINT_OPTS.precision,
        warnings.filters[:],
    )
    decimals = decimal.getcontext().copy()
    sys.setrecursionlimit(1000)  # the attack counts from there, and torch's compiler raises it
    yield
    decimal.setcontext(decimals)
    LOGGER.setLevel(level)
    sys.setrecursionlimit(limit)
    sys.setswitchinterval(interval)
    csv.field_size_limit(fields)
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(table)
    torch.set_printoptions(precision=precision)
    warnings.filters[:] = filters  # type: ignore[index]


@pytest.mark.parametrize("name", STATE)
def test_state_is_named_wherever_it_is_kept(name: str) -> None:
    found = finding_of(Counts(*STATE[name]))
    assert found.verdict == "proved"
    assert any(text.startswith("of one call: the call changes ") for text in found.scope.assumptions)


@pytest.mark.parametrize("name", STATE)
def test_state_of_code_in_a_notebook_is_named_too(name: str) -> None:
    with notebook(attacks_state, Counts, nn=nn, Tensor=Tensor) as cell:
        found = finding_of(cell.Counts(*cell.STATE[name]))
    assert found.verdict == "proved"
    assert any(text.startswith("of one call: the call changes ") for text in found.scope.assumptions)


def test_state_of_a_text_is_named() -> None:
    names = {"__name__": "of nothing", "nn": nn, "Tensor": Tensor, "calls": [0]}
    exec(compile(TEXT, "<string>", "exec"), names)
    assert capture(names["CountsInAText"](), (X,)).changed_state == ("global calls",)


def test_a_tensor_gets_its_size_and_its_values_back() -> None:
    module = Counts(lambda: torch.zeros(1), enlarged)
    assert finding_of(module).verdict != "proved"
    module.kept = torch.zeros(1)
    with restored_state(module):
        module.kept.data = torch.ones(3)
    assert module.kept.tolist() == [0.0]


def test_a_call_under_autocast_is_observed_too() -> None:
    captured = capture(CountsUnderAutocast(), (X,))
    assert captured.changed_state == ("calls",)


class AsksTheLogger(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flip(1) if LOGGER.isEnabledFor(logging.ERROR) else x + x.mean(1, keepdim=True)


class CatchesAWarning(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with warnings.catch_warnings(record=True) as found:
            warnings.warn("a warning", stacklevel=1)
        return x.flip(1) if found else x + x.mean(1, keepdim=True)


@pytest.mark.parametrize("kind", [AsksTheLogger, CatchesAWarning])
def test_messages_are_as_in_a_call(kind: type[nn.Module]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        graph = capture(kind(), (X,)).graph
    assert any(node.target is torch.ops.aten.flip.default for node in graph.nodes)


def test_a_message_of_a_recorded_call_is_not_written(capfd: pytest.CaptureFixture[str]) -> None:
    class Warns(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            LOGGER.error("a message")
            warnings.warn("a warning", stacklevel=1)
            return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        capture(Warns(), (X,))
    assert capfd.readouterr() == ("", "")


def test_a_model_without_state_changes_none() -> None:
    captured = capture(nn.TransformerEncoderLayer(4, 2, batch_first=True).eval(), (X,))
    assert captured.changed_state == ()
    assert captured.outside == ()
