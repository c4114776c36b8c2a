"""The recorded program is the one that runs: its operators with their arguments, its state and its assumptions."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from orderproof.errors import CaptureError
from orderproof.recording.capture import capture
from tests.recording import attacks_program
from tests.recording.attacks_operators import WRITES
from tests.recording.attacks_outside import mixed
from tests.recording.attacks_program import (
    ACTS,
    COUNTS,
    QUESTIONS,
    VIEWS,
    Asks,
    Counts,
    Order,
    ReachesMuch,
    SharesMemory,
    another_dimension,
    positions,
)
from tests.recording.notebook import notebook
from tests.recording.test_recording import Function, finding_of

X = torch.zeros(2, 5, 4)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a question; other tests' objects, hundreds of thousands, are hidden from a model that looks at each.

    Objects that the test makes itself are found again afterwards.
    """
    if request.param == "objects":
        gc.collect()
        gc.freeze()
    yield request.param
    gc.unfreeze()


@pytest.mark.parametrize("name", QUESTIONS, indirect=True)
def test_a_recording_that_can_be_told_from_a_run_is_not_proved(name: str) -> None:
    assert finding_of(Asks(QUESTIONS[name])).verdict != "proved"


@pytest.mark.parametrize("name", QUESTIONS, indirect=True)
def test_nor_is_one_of_code_in_a_notebook(name: str) -> None:
    with notebook(attacks_program) as cell:
        assert finding_of(cell.Asks(cell.QUESTIONS[name])).verdict != "proved"


@pytest.mark.parametrize("act", ACTS)
def test_another_argument_is_another_program(act: Callable[[Tensor, object], Tensor]) -> None:
    found = finding_of(Asks(QUESTIONS["instance of a tensor type"], act))
    assert found.verdict == "undecided"
    assert "the recording is not the program that runs: an eager call gives" in found.reason
    assert finding_of(Asks(lambda m, x: False, act)).verdict == "proved"


@pytest.mark.parametrize("name", VIEWS)
def test_an_object_on_the_memory_of_a_parameter_is_refused(name: str) -> None:
    found = finding_of(SharesMemory(VIEWS[name]))
    assert found.verdict == "undecided"
    assert "view reads the memory of a parameter" in found.reason


@pytest.mark.parametrize("name", COUNTS)
def test_a_counter_outside_containers_is_named(name: str) -> None:
    captured = capture(Counts(COUNTS[name]), (X,))
    assert captured.changed_state
    assert not hasattr(torch, "calls_of_an_attack")


@pytest.mark.parametrize("name", COUNTS)
def test_a_counter_of_code_in_a_notebook_is_named(name: str) -> None:
    with notebook(attacks_program) as cell:
        assert capture(cell.Counts(cell.COUNTS[name]), (X,)).changed_state


def test_arguments_at_their_defaults_are_named() -> None:
    found = finding_of(Order())
    assert found.verdict == "proved"
    assert "with the defaults of reverse, mask in forward" in found.scope.assumptions
    assert not any("defaults" in text for text in finding_of(Function(mixed)).scope.assumptions)


def test_a_walk_that_ends_early_is_an_assumption() -> None:
    found = finding_of(ReachesMuch())
    assert found.verdict == "proved"
    assert "its state is compared in the first 20,000 objects that it owns only" in found.scope.assumptions


@pytest.mark.parametrize("name", WRITES)
def test_a_custom_operator_that_writes_in_silence_is_not_proved(name: str) -> None:
    def unused(x: Tensor) -> Tensor:
        y = mixed(x)
        WRITES[name](y, x)
        return y

    assert finding_of(Function(unused)).verdict != "proved"


def test_a_write_against_the_schema_is_seen() -> None:
    def used(x: Tensor) -> dict[str, Tensor]:
        y = mixed(x)
        return {"first": y, "second": WRITES["writes_always"](y, x)}

    with pytest.raises(CaptureError, match="writes to an operand, which its schema does not say"):
        capture(Function(used), (torch.arange(40.0).reshape(2, 5, 4),))


def test_a_custom_operator_is_an_assumption() -> None:
    def used(x: Tensor) -> dict[str, Tensor]:
        y = mixed(x)
        return {"first": y, "second": WRITES["writes_rarely"](y, x)}

    captured = capture(Function(used), (X,))
    assert captured.assumptions == ("without effects besides their results: orderproof_attacks.writes_rarely.default",)


def test_python_state_is_that_of_the_recording() -> None:
    found = finding_of(Function(mixed))
    assert "environment variables and Python state (attributes, caches, global variables)" in found.scope.assumptions[0]


class Various(nn.Module):
    """Operators whose programs look alike on meta and on other tensors only if they are compared with care."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("table", torch.arange(5.0))
        self.plain = torch.ones(4)
        self.inner = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[:, [0, 1]] *= 2
        y[:, 1] = 3.0
        y[..., 0] = x[0, 0, 0]
        y = y + torch.tensor(2.5) + torch.tensor([True, False]).any()
        y = y + self.weight.data + self.plain + float(self.plain.sum()) + self.table[:, None]
        y = y.to(torch.float64).to(x.dtype).contiguous().detach() + torch.full_like(x, float("nan")).nan_to_num(0.0)
        self.plain += 0
        y = y.masked_fill(torch.ones(5, 5).triu(1).bool()[:, :4].any(), 0.5)
        mask = torch.tensor([1.0, 2.0], dtype=torch.float64).numpy().sum()
        first, *rest = y.split(2, dim=-1)
        y = torch.cat([first, *rest], -1) * float(mask)
        scores = torch.einsum("bnk,bmk->bnm", y, y).softmax(-1)
        return self.inner(y, y, y, need_weights=False)[0] + scores.sum(-1)[..., None]


def test_programs_that_are_the_same_are_found_to_be() -> None:
    module = Various().eval()
    capture(module, (torch.randn(2, 5, 4),))


def test_a_difference_names_the_line() -> None:
    module = Asks(QUESTIONS["instance of a tensor type"], another_dimension)
    with pytest.raises(CaptureError, match=r"aten\.cumsum\.default other arguments, attacks_program\.py:\d+"):
        capture(module, (X + positions(X),))


class _ReachesModules(nn.Linear):
    """A module that holds the interpreter's table of modules, and imports one while it is called."""

    def __init__(self) -> None:
        super().__init__(8, 8)
        self.table = sys.modules

    def forward(self, x: Tensor) -> Tensor:
        importlib.import_module("this_module_is_imported_late")
        return super().forward(x)


def test_an_import_during_a_recording_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "this_module_is_imported_late.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    capture(_ReachesModules(), (torch.randn(2, 7, 8),))
    assert sys.modules.pop("this_module_is_imported_late").value == 1
