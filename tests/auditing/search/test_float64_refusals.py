"""A model whose float64 copy is refused is still searched for a witness, and the report says with which numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof.auditing.api import as_subject, audit_context, report_on_law
from orderproof.auditing.search import law_runs
from orderproof.diagnosis.rounding_noise import RoundingNoise, rounding_noise
from orderproof.diagnosis.tolerances import ROUNDING_FACTOR
from orderproof.laws import find_proved_law
from orderproof.recording.execution import relative_difference
from orderproof.records.audit import Report
from orderproof.report import render_text
from tests.auditing.search import float64_refusals as models
from tests.auditing.search.float64_refusals import Causal, OrderBlind, OrderBlindOnlyInFloat32, subclasses

INPUTS = torch.randn(2, 7, models.WIDTH, generator=torch.Generator().manual_seed(0))
GRAPH = "its recorded graph is run in float64 instead"
OWN = "differences are compared with the model's own rounding error instead"
FAILS = "a float64 copy of the model fails: "
UNCOPIED = "the model cannot be copied: TypeError: cannot pickle "
FROM_GRAPH = "the witness is of the recorded graph in float64; the module itself differs by "
FROM_MODEL = "the witness is in the model's own dtype: it differs by "

REFUSALS = {
    models.AssertsFloat32: (FAILS + "AssertionError: float32 only, float64_refusals.py:", GRAPH),
    models.Bfloat16Table: (FAILS + "AssertionError, float64_refusals.py:", GRAPH),
    models.Bfloat16Weights: (FAILS + "RuntimeError: mat1 and mat2 must have the same", GRAPH),
    models.DefaultDtype: (FAILS + "TypeError: expected torch.float32", GRAPH),
    models.PlainParameter: (FAILS + "RuntimeError: expected m1 and m2 to have the same", GRAPH),
    models.WeakReference: (FAILS + "AssertionError, float64_refusals.py:", GRAPH),
    models.Lock: (UNCOPIED + "'_thread.lock' object, attribute 'lock'", GRAPH),
    models.Generator: (UNCOPIED + "'generator' object, attribute 'ste", GRAPH),
    models.ExtensionObject: (UNCOPIED + "memoryview objects, attribut", GRAPH),
    models.Float32Operator: (FAILS + "RuntimeError: no kernel but for float32, float6", OWN),
    models.Float32DataBranch: (FAILS + "AssertionError: float32 only, float64_refusals.p", OWN),
    models.LockAndDataBranch: (UNCOPIED + "'_thread.lock' object, attribu", OWN),
}  # fmt: skip


def report(module: nn.Module, law: str = "causal") -> Report:
    return report_on_law(audit_context(as_subject(module, inputs=INPUTS)), law)


@pytest.mark.parametrize("of", REFUSALS, ids=lambda of: of.__name__)
def test_leak_is_refuted_and_the_report_says_which_numbers_were_used(of: type[Causal]) -> None:
    made = report(of(leak=True))
    finding = made.findings[0]
    assert finding.verdict == "refuted", finding.reason
    assert finding.witness is not None
    assert finding.witness.relative_difference > 0.01
    why, instead = REFUSALS[of]
    assert [note for note in made.notes if note.startswith(why) and note.endswith(instead)], made.notes
    assert finding.scope.assumptions[0].startswith(FROM_GRAPH if instead == GRAPH else FROM_MODEL)
    assert (finding.deviation.float64 is None) == (instead == OWN)


@pytest.mark.parametrize("of", [models.FloatInside, models.Autocast, models.OtherBranchInFloat64])
def test_leak_is_refuted_where_the_copy_runs_but_is_not_float64_throughout(of: type[Causal]) -> None:
    finding = report(of(leak=True)).findings[0]
    assert finding.verdict == "refuted", finding.reason


def test_copy_that_takes_another_branch_is_not_believed() -> None:
    made = report(models.OtherBranchInFloat64(leak=True))
    assert len(made.notes) == 1
    assert made.notes[0].startswith("OP201 causal: a float64 copy of the model computes something else than the model")
    assert made.findings[0].scope.assumptions[0].startswith(FROM_GRAPH)


@pytest.mark.parametrize("of", list(subclasses()), ids=lambda of: of.__name__)
@pytest.mark.parametrize("law", ["causal", "batch"])
def test_nothing_is_refuted_without_the_leak(of: type[Causal], law: str) -> None:
    finding = report(of(), law).findings[0]
    recorded = "DataBranch" not in of.__name__ and of is not models.Float32Operator
    assert finding.verdict == ("proved" if recorded else "undecided"), finding.reason
    assert "error in the prover" not in finding.reason


@pytest.mark.parametrize("of", [OrderBlind, OrderBlindOnlyInFloat32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounding_of_a_narrower_dtype_is_no_witness(of: type[OrderBlind], dtype: torch.dtype) -> None:
    module = of(dtype).eval()
    with torch.no_grad():
        moved = (module(INPUTS) - module(INPUTS.flip(1))).abs().max() / module(INPUTS).abs().max()
    assert float(moved) > 0, "the test needs a model that rounds"
    finding = report(module, "permutation").findings[0]
    assert finding.verdict == "undecided"
    assert finding.witness is None


def test_report_shows_the_refusal_and_the_yardstick(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    made = report(models.Float32DataBranch(leak=True))
    render_text(made, Console(width=400))
    shown = capsys.readouterr().out
    assert FAILS + "AssertionError: float32 only, float64_refusals.py:" in shown
    assert FROM_MODEL in shown
    assert OWN in Report.from_json(made.to_json()).notes[0]


def _sums(x: Tensor) -> Tensor:
    return (x + 1e4).sum(1) - x.shape[1] * 1e4


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("tokens", [7, 200])
def test_rounding_noise_bounds_what_the_order_of_a_sum_can_do(dtype: torch.dtype, tokens: int) -> None:
    x = torch.randn(2, tokens, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    for function in (lambda y: y.cumsum(1)[:, -1], lambda y: torch.softmax(y.sum(1), -1), _sums):
        noise = rounding_noise(lambda f=function: f(x))
        differences = []
        for seed in range(8):
            order = torch.randperm(tokens, generator=torch.Generator().manual_seed(seed))
            first, second = function(x).double(), function(x[:, order]).double()
            differences.append(relative_difference(first, second))
        if noise < 1:  # where the noise is as large as the output, it bounds nothing
            assert max(differences) <= ROUNDING_FACTOR / 4 * noise
        assert noise >= torch.finfo(dtype).eps


def test_rounding_noise_leaves_the_model_and_its_random_numbers_alone() -> None:
    module = Causal().eval()
    before = [parameter.clone() for parameter in module.parameters()]
    torch.manual_seed(3)
    with torch.no_grad():
        rounding_noise(lambda: module(INPUTS))
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(1))
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def test_model_that_refuses_perturbed_values_has_unbounded_noise() -> None:
    def run() -> Tensor:
        doubled = INPUTS * 2
        if not torch.equal(doubled, INPUTS + INPUTS) or bool((doubled != INPUTS * 2).any()):
            raise ValueError("other values")
        return doubled

    assert rounding_noise(run) == float("inf")


def test_second_run_is_not_perturbed_if_the_rounding_error_of_the_first_explains_the_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[float] = []

    class Counted(RoundingNoise):
        def of_a_difference(self, size: float = 0.0) -> float:
            began = self._runs
            found = super().of_a_difference(size)
            measured.extend([found] * (self._runs > began))
            return found

    monkeypatch.setattr(law_runs, "RoundingNoise", Counted)
    context = audit_context(as_subject(models.FloatInside(leak=True), inputs=INPUTS))
    law = find_proved_law("causal")
    output, dims = next(iter(context.output_dims.items()))
    search = law_runs.LawRuns(context, law, output, dims, context.captured)
    change = next(iter(law.input_changes(7, context.batch_size)))
    assert search.pair(7, change, "model") is not None
    first = search.noise(7, None, "model", size=1.0)
    assert measured == [first]
    assert search.noise(7, change, "model", size=ROUNDING_FACTOR * first) == first
    assert len(measured) == 1
    assert search.noise(7, change, "model", size=1.0) == max(measured)
    assert len(measured) == 2
