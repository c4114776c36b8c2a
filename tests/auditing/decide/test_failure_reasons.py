"""An error becomes a reason: defects of this package are marked as such, errors of models and libraries are not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from orderproof.adapter import ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.auditing.decide.relation import ProofOptions
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder
from orderproof.errors import INTERNAL_ERROR, UnsupportedCallError, failure_reason, first_line, is_internal
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls, MeasuredLaw
from orderproof.laws.measured.chunked_prefill import chunk_sizes
from orderproof.laws.proved.proved_law import InputChange


def error_of(call: object) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of any kind
        call()  # type: ignore[operator]
    return caught.value


def test_an_error_raised_by_the_engine_is_internal() -> None:
    error = error_of(lambda: InputChange("nothing").apply(torch.zeros(2, 3), torch.zeros(2, 3), 1))
    assert is_internal(error)
    assert failure_reason(error).startswith(f"{INTERNAL_ERROR}AssertionError")
    assert is_internal(error_of(lambda: chunk_sizes(None, ())))  # type: ignore[arg-type]


def test_an_error_of_a_library_or_of_the_caller_is_not() -> None:
    assert failure_reason(error_of(lambda: torch.zeros(2) @ torch.zeros(3))).startswith("RuntimeError: ")
    assert not is_internal(error_of(lambda: ProofOptions(wights="all")))  # type: ignore[call-arg]
    assert failure_reason(UnsupportedCallError("it takes no cache")) == "it takes no cache"


class Refusing(TransformerAdapter):
    """Asserts that a call on a cache has one token."""

    def call(self, tokens: Tensor, *, past: object = None, **kwargs: object) -> ModelOutput:
        assert past is None or tokens.shape[1] == 1, "one token only"
        return super().call(tokens, past=past, **kwargs)  # type: ignore[arg-type]


def test_a_model_that_asserts_is_not_applicable_and_a_law_that_asserts_is_an_internal_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law = find_law("chunked_prefill")
    assert isinstance(law, MeasuredLaw)
    refusing, adapter = tiny_decoder(of=Refusing), tiny_decoder()
    found = measure_law(refusing, law, CachedCalls(refusing), kind="causal_lm")
    assert (found.verdict, "it refuses several tokens on a cache" in found.reason) == ("not_applicable", True)
    calls = CachedCalls(adapter)
    monkeypatch.setattr(CachedCalls, "incremental_forward", InputChange("nothing").apply)
    found = measure_law(adapter, law, calls, kind="causal_lm")
    assert found.verdict == "undecided"
    assert found.reason.startswith(INTERNAL_ERROR)


def test_long_message_keeps_its_beginning_and_its_end() -> None:
    printed = "Model(\n" + "  (layer): Linear()\n" * 40 + ")"
    shown = first_line(TypeError(f"{printed} got multiple values for 'use_cache'"))
    assert shown.startswith("TypeError: Model( (layer): Linear()")
    assert shown.endswith("(layer): Linear() ) got multiple values for 'use_cache'")
    assert len(shown) < 320
