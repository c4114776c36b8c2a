"""Operators that run functions of the model: recorded as what these compute, and proved as that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.errors import CaptureError
from orderproof.laws import find_proved_law
from orderproof.recording import execution
from orderproof.recording.capture import capture
from tests.auditing.internals import ProofOptions, prove_law
from tests.diagnosis.corpus.nested_graphs import (
    PROVED,
    Nested,
    cond_of_a_buffer,
    flex_causal,
    flex_plain,
    scan_over_tokens,
    while_the_data,
)
from tests.diagnosis.walking import examine

WITHOUT_SEARCH = ProofOptions(search_witness=False, every_length=False)
LAWS = ("causal", "permutation", "reversal", "batch")
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, about flex attention that is not compiled
Function = Callable[[Nested, Tensor], Tensor]
QUICK = (cond_of_a_buffer, scan_over_tokens, flex_causal)
EACH = [pytest.param(f, id=f.__name__, marks=() if f in QUICK else pytest.mark.slow) for f in PROVED]


def built(function: Function) -> Nested:
    torch.manual_seed(0)
    return Nested(function).eval()


@pytest.mark.parametrize("function", [one for one in EACH if one.id != while_the_data.__name__])
def test_what_is_written_out_computes_the_same(function: Function) -> None:
    module, x = built(function), torch.randn(2, 5, 4)
    captured = capture(module, (x,))
    with torch.no_grad():
        assert execution.relative_difference(execution.execute(captured, (x,))["output"], module(x)) < 1e-6


@pytest.mark.parametrize("function", EACH)
def test_laws_of_a_program_with_graphs_of_its_own(function: Function) -> None:
    context = examine(built(function))
    found = {law: prove_law(context, find_proved_law(law), WITHOUT_SEARCH)[0].verdict for law in LAWS}
    assert {law for law, verdict in found.items() if verdict == "proved"} == PROVED[function], found


@pytest.mark.parametrize(
    ("function", "law"),
    [
        pytest.param(flex_plain, "causal", marks=pytest.mark.slow),  # each run of it is compiled
        (scan_over_tokens, "permutation"),
    ],
)
def test_a_leak_within_a_graph_is_found(function: Function, law: str) -> None:
    assert prove_law(examine(built(function)), find_proved_law(law))[0].verdict == "refuted"


def test_a_loop_that_data_end_is_refused() -> None:
    with pytest.raises(CaptureError, match="control flow depends on data"):
        capture(built(while_the_data), (torch.randn(2, 5, 4),))


def test_a_branch_that_writes_to_a_tensor_of_the_model_is_refused() -> None:
    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            def write(y: Tensor) -> Tensor:
                self.seen.add_(1)
                return y + self.seen

            made = torch.cond(x.sum() > 0, write, lambda y: y - self.seen, (x,))
            assert isinstance(made, Tensor)
            return made

    with pytest.raises(CaptureError, match="writes to a tensor that it did not make"):
        capture(Writes(), (torch.randn(2, 5, 4),))


def test_a_proof_about_random_numbers_within_a_graph_is_about_the_same_ones() -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            made = torch._higher_order_ops.map(lambda t: t + torch.rand_like(t), x)
            assert isinstance(made, Tensor)
            return made

    found = prove_law(examine(Noisy()), find_proved_law("causal"), WITHOUT_SEARCH)[0]
    assert found.verdict == "proved"
    assert any("the same random numbers in both runs: " in text for text in found.scope.assumptions)


@pytest.mark.slow
def test_flex_attention_is_proved_for_every_length() -> None:
    found = prove(built(flex_causal), "causal", inputs=torch.randn(2, 7, 4))
    assert found.theorem is not None
    assert found.theorem.proved
    assert not any("at every call" in text for text in found.scope.assumptions)  # torch's compiler asks for files
