"""The resolution of scores: rounding is noticed, and float32 is not taken for rounding."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from orderproof.laws import find_port_law
from orderproof.laws.ports import PortCall
from orderproof.laws.ports.port_law import PortModel
from orderproof.ports.comparison import log_softmax, profile, resolution
from orderproof.ports.engine_side.serving import make_call
from orderproof.ports.engines.engine import Scores
from orderproof.ports.reference import Logits, Reference
from orderproof.ports.reference_checks import decisive_call

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("size", [0.01, 1.0, 10.0, 1000.0])
def test_values_of_float32_are_not_called_rounded(size: float) -> None:
    values = (size * RANDOM.standard_normal((12, 99))).astype(np.float32)
    assert resolution([Scores(values)], 99).notes == ()


@pytest.mark.parametrize("digits", [0, 1, 2, 3, 4])
def test_rounded_values_are_noticed_with_their_decimals(digits: int) -> None:
    values = (10 * RANDOM.standard_normal((12, 99))).round(digits).astype(np.float32)
    found = resolution([Scores(values)], 99)
    assert found.notes == (f"its scores are rounded to {digits} decimals: smaller differences are not seen",)
    assert found.step == 10.0**-digits


def test_log_probabilities_among_candidates_are_compared_with_those_of_the_same_tokens() -> None:
    logits = RANDOM.standard_normal((4, 9))
    candidates = np.array([[1, 3, 8, -1]] * 4)
    chosen = np.where(candidates >= 0, logits[:, [1, 3, 8, 0]], -np.inf)
    values = chosen - np.log(np.exp(chosen).sum(-1, keepdims=True))
    scores = Scores(
        np.where(candidates >= 0, values, 0.0).astype(np.float32), candidates, normalised=True, among_candidates=True
    )
    assert profile([scores], [logits], 1e-6).first is None
    moved = logits + 0.1 * (np.arange(9) == 3)
    assert profile([scores], [moved], 1e-6).first == 0


class RoundedReference(Reference):
    """A reference whose rounding grows with the index of the token."""

    growth = 0.0  # relative, for each token
    port_model = PortModel(vocabulary=99)

    def outputs(self, call: PortCall, changes: object = (), *, double: bool = False) -> list[Logits]:
        tokens = np.array(call.rows[0])
        logits = np.sin(np.outer(tokens, np.arange(1, 9)))
        return [logits if double else logits * (1 + self.growth * np.arange(len(tokens))[:, None])]


@pytest.mark.parametrize(("growth", "length"), [(1e-9, 1024), (2e-6, 512), (4e-6, 256), (1e-3, 1024)])
def test_far_positions_are_as_far_as_the_reference_decides_something(growth: float, length: int) -> None:
    law, reference = find_port_law("same_far_positions"), RoundedReference("rounded", model=None)
    reference.growth = growth
    call = law.call(reference.port_model)
    assert call is not None
    chosen = decisive_call(reference, law, call)
    assert chosen.length == length
    assert chosen.rows[0] == call.rows[0][:length]


def test_tokens_that_an_engine_was_not_asked_for_are_not_compared_and_are_counted() -> None:
    logits = log_softmax(RANDOM.standard_normal((4, 9)))
    hidden = np.tile(np.arange(4)[:, None] == 1, 9)
    given = np.ma.masked_array(logits + hidden, mask=hidden)
    call = {"kind": "prefill", "rows": [[1, 2, 3, 4]], "sizes": []}
    output = make_call(SimpleNamespace(prefill=lambda row: given, normalised=True), call)
    scores = [each for each in output if isinstance(each, Scores)]
    assert profile(scores, [logits], 1e-6).first is None
    assert resolution(scores, 9).notes == ("it was asked for 3 of 4 tokens; the others are not compared",)
