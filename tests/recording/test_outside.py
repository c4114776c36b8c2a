"""A model that leaves the recording is refused, or its proof names what it depends on."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from orderproof.errors import CaptureError, SubjectError
from orderproof.recording.capture import capture
from tests.recording.attacks_outside import (
    ESCAPES,
    KEPT,
    OUTSIDE,
    TRAINED,
    Trained,
    computed_in_a_thread,
    if_asked,
    mixed,
)
from tests.recording.test_recording import Function, finding_of

X = torch.zeros(2, 5, 4)


@pytest.mark.trials
@pytest.mark.parametrize("name", ESCAPES)
def test_no_value_leaves_the_recording(name: str) -> None:
    try:
        found = finding_of(Function(ESCAPES[name]))
    except SubjectError as error:  # the first call leaves a thread running
        assert "it cannot be audited: a call of it left" in str(error)  # noqa: PT017
    else:
        assert found.verdict != "proved"


@pytest.mark.parametrize("name", KEPT)
def test_state_is_named_wherever_it_is_kept(name: str) -> None:
    assert capture(KEPT[name](), (X,)).changed_state
    found = finding_of(KEPT[name]())
    assert found.verdict == "proved"
    assert any(text.startswith("of one call: the call changes ") for text in found.scope.assumptions)


@pytest.mark.parametrize("name", OUTSIDE)
def test_answers_from_outside_are_an_assumption(name: str) -> None:
    found = finding_of(Function(if_asked(lambda x: OUTSIDE[name]())))
    assert found.verdict == "proved"
    assert any(text.startswith("with the same answers of ") for text in found.scope.assumptions)


@pytest.mark.parametrize("name", TRAINED)
def test_a_tensor_that_may_be_trained_is_no_constant(name: str) -> None:
    assert finding_of(Trained(TRAINED[name])).verdict != "proved"


def test_nested_state_is_restored() -> None:
    module = KEPT["nested list"]()
    capture(module, (X,))
    assert module.kept == {"a": [0]}
    module = KEPT["submodules"]()
    capture(module, (X,))
    assert len(module.parts) == 0


def test_a_model_without_state_has_none() -> None:
    captured = capture(Function(mixed), (X,))
    assert captured.changed_state == ()
    assert captured.outside == ()


def test_an_operator_in_another_thread_ends_in_a_reason() -> None:
    with pytest.raises(CaptureError):
        capture(Function(computed_in_a_thread), (X,))


def test_a_compiled_function_is_recorded_as_python_and_named() -> None:
    @torch.compile(backend="eager")
    def compiled(x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return torch.where((x > 20).any(), x.flip(1), mixed(x))
        return mixed(x)

    large = torch.full((2, 7, 4), 30.0)
    large[:, 0] = 0
    before = compiled(large)
    found = finding_of(Function(compiled))
    assert found.verdict == "proved"
    assert "torch.compile off: computed by torch's operators one by one" in found.scope.assumptions
    assert torch.equal(compiled(large), before)
