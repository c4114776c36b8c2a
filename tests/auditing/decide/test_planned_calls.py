"""The number of calls of a model: what is known of it is not asked again, and runs stop where they decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import cast_on_use
from orderproof.auditing.api import as_subject, audit_context
from orderproof.auditing.decide.sandbox import MeasurementRun
from orderproof.auditing.decide.verdict import prove_law
from orderproof.auditing.record.execution import SubjectExecution
from orderproof.auditing.search import law_runs
from orderproof.auditing.search.deviation import measured_deviation
from orderproof.auditing.search.lengths import UNSEEN
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.cast_on_use import LowRank
from orderproof.diagnosis.counterexample import Executor
from orderproof.diagnosis.rounding_noise import RoundingNoise
from orderproof.diagnosis.tolerances import CLEAR_DIFFERENCE, ROUNDING_RUNS
from orderproof.laws import find_law, find_proved_law
from orderproof.laws.measured import MeasuredLaw
from orderproof.models import from_adapter
from orderproof.models.hf.adapter import HFAdapter
from orderproof.recording import low_rank
from tests.models.hf.adapters import tiny_adapter


def measured(*names: str) -> list[MeasuredLaw]:
    laws = [find_law(name) for name in names]
    assert all(isinstance(law, MeasuredLaw) for law in laws)
    return [law for law in laws if isinstance(law, MeasuredLaw)]


def test_copies_of_a_model_are_not_asked_again_which_arguments_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    accepts = HFAdapter._accepts_argument

    def counted(self: HFAdapter, name: str, build_value: Callable[[Tensor], Tensor]) -> bool:
        asked.append(name)
        return accepts(self, name, build_value)

    monkeypatch.setattr(HFAdapter, "_accepts_argument", counted)
    laws = measured("attention_pattern", "position_shift", "default_position_ids", "attention_backend")
    adapter = tiny_adapter("qwen2").cast_to(torch.bfloat16)  # comparisons of which are made in float32 too
    findings = list(MeasurementRun(from_adapter(adapter), laws).run_in_process(0, UNSEEN))
    assert [finding.verdict for finding in findings] == ["held"] * len(laws)
    assert sorted(asked) == ["mask", "positions"]


def rounding_run(rounds: list[int]) -> Callable[[], Tensor]:
    def run() -> Tensor:
        rounds.append(1)
        return torch.linspace(0, 1, 5) * 3

    return run


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_rounding_noise_takes_one_perturbed_run_where_it_leaves_no_doubt(factor: float) -> None:
    noise = RoundingNoise(rounding_run([])).of_a_difference()
    runs: list[int] = []
    RoundingNoise(rounding_run(runs)).of_a_difference(factor * CLEAR_DIFFERENCE * noise)
    assert len(runs) == (2 if factor > 1 else ROUNDING_RUNS + 1)


def test_rounding_noise_goes_on_for_a_smaller_difference() -> None:
    runs: list[int] = []
    noise = RoundingNoise(rounding_run(runs))
    first = noise.of_a_difference(1.0)
    assert len(runs) == 2
    assert noise.of_a_difference() >= first
    assert len(runs) == ROUNDING_RUNS + 1


def test_rounding_noise_compares_with_a_run_that_was_made_before() -> None:
    runs: list[int] = []
    run = rounding_run(runs)
    output = run()
    expected = RoundingNoise(rounding_run([])).of_a_difference()
    assert RoundingNoise(run, unperturbed=lambda: output).of_a_difference() == expected
    assert len(runs) == ROUNDING_RUNS + 1


class _Attention(nn.Module):
    """A decoder; one that leaks adds the mean of all tokens, or of all rows."""

    def __init__(self, *, leaks: bool, leak: float = 0.1, over_rows: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 64)
        self.attention = nn.Linear(64, 192)
        self.leaks, self.leak, self.axis = leaks, leak, 0 if over_rows else 1

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self.attention(self.embedding(tokens)).chunk(3, -1)
        x = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + 4
        return x + self.leak * x.mean(self.axis, keepdim=True) if self.leaks else x


@pytest.mark.parametrize("leaks", [False, True])
def test_a_law_starts_from_the_call_that_was_compared_with_its_recording(
    leaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    outputs = SubjectExecution.outputs

    def counted(self: SubjectExecution, inputs: tuple[Tensor, ...], executor: Executor = "model") -> dict[str, Tensor]:
        made.append(executor)
        return outputs(self, inputs, executor)

    monkeypatch.setattr(SubjectExecution, "outputs", counted)
    torch.manual_seed(0)
    subject = as_subject(_Attention(leaks=leaks), inputs=(torch.randint(0, 50, (2, 7)),), kind="decoder")
    context = audit_context(subject)
    law = find_proved_law("causal")
    output, dims = next(iter(context.output_dims.items()))
    search = law_runs.LawRuns(context, law, output, dims, None)
    pair = search.pair(7, next(iter(law.input_changes(7, 2))), "model")
    assert pair is not None
    assert torch.equal(*pair) != leaks
    assert made == ["model"]  # the changed call: the other one was compared with the recording
    assert search.mixes_tokens()
    assert made == ["model", "model"]


@pytest.mark.parametrize("leak", [0.0, 1e-3])
@pytest.mark.parametrize("law_name", ["causal", "batch"])
def test_a_proved_law_of_a_large_model_has_one_call_in_float64(
    law_name: str, leak: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, int]] = []
    outputs = SubjectExecution.outputs

    def counted(self: SubjectExecution, inputs: tuple[Tensor, ...], executor: Executor = "model") -> dict[str, Tensor]:
        made.append((executor, len(inputs[0])))
        return outputs(self, inputs, executor)

    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)
    monkeypatch.setattr(cast_on_use, "LEAST_ELEMENTS", 0)
    monkeypatch.setattr(SubjectExecution, "outputs", counted)
    torch.manual_seed(0)
    model = _Attention(leaks=leak > 0, leak=leak, over_rows=law_name == "batch").bfloat16()
    context = audit_context(as_subject(model, inputs=(torch.randint(0, 50, (2, 7)),), kind="decoder"))
    output, dims = next(iter(context.output_dims.items()))
    search = WitnessSearch(context, find_proved_law(law_name), output, dims, None)
    deviation, contradicts = measured_deviation(search)
    assert deviation.float32 == 0.0  # the leak is below the rounding of bfloat16
    assert deviation.float64 is not None
    assert (deviation.float64 > 0, contradicts) == (leak > 0, leak > 0)
    in_float64 = [rows for executor, rows in made if executor == "float64 copy"]
    if leak:
        assert in_float64[-1] == 2  # a difference is that of calls with the rows of the model's own
    else:
        assert in_float64 == ([2] * 2 if law_name == "batch" else [6])  # a law about rows has calls of its own


def test_a_call_for_shapes_has_weights_of_low_rank_unless_it_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "is_large", lambda _: True)
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 0)
    seen: list[type] = []

    class Reads(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(type(self.weight.detach()))
            return x @ torch.as_tensor(self.weight.detach().numpy()) if len(x) == 2 else super().forward(x)

    module, x = Reads(4, 4), torch.ones(2, 4)
    assert low_rank.call_for_shapes(module, (x[:1],)).shape == (1, 4)
    assert seen == [LowRank]
    assert torch.equal(low_rank.call_for_shapes(module, (x,)), module(x).detach())
    assert seen[1:3] == [LowRank, Tensor]
    assert type(module.weight) is nn.Parameter


class _LeaksWithManyTokens(_Attention):
    """A decoder that leaks in calls with this many tokens, which its proof at seven tokens does not see."""

    def __init__(self, tokens: int) -> None:
        super().__init__(leaks=False)
        self.tokens = tokens

    def forward(self, tokens: Tensor) -> Tensor:
        x = super().forward(tokens)
        return x + x.mean(1, keepdim=True) if tokens.shape[1] == self.tokens else x


@pytest.mark.parametrize("tokens", [0, 16])
def test_other_calls_of_a_large_model_have_weights_of_low_rank_unless_these_differ(
    tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, tuple[int, ...]]] = []
    outputs = SubjectExecution.outputs

    def counted(self: SubjectExecution, inputs: tuple[Tensor, ...], executor: Executor = "model") -> dict[str, Tensor]:
        made.append((self.weights, tuple(inputs[0].shape)))
        return outputs(self, inputs, executor)

    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 0)
    monkeypatch.setattr(SubjectExecution, "outputs", counted)
    torch.manual_seed(0)
    subject = as_subject(_LeaksWithManyTokens(tokens), inputs=(torch.randint(0, 50, (2, 7)),), kind="decoder")
    context = audit_context(subject)
    found = prove_law(context, find_proved_law("causal"))[0]
    assert found.verdict == ("refuted" if tokens else "proved")
    assert found.witness is None or "16 tokens" in found.witness.onset
    own = {shape for weights, shape in made if weights == "given"}
    assert {shape for weights, shape in made if weights == "low rank"} > {(2, 7), (1, 7)}
    assert ((2, tokens) in own, (1, 7) in own) == (bool(tokens), False)


def test_weights_of_low_rank_are_the_same_in_each_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 0)
    torch.manual_seed(0)
    model, tokens = _Attention(leaks=False), torch.randint(0, 50, (2, 7))
    with torch.no_grad():
        own, narrow, wide = (low_rank.low_rank_copy(model, dtype)(tokens) for dtype in (None, None, torch.float64))
    assert torch.equal(own, narrow)
    assert wide.dtype is torch.float64
    assert torch.allclose(own.double(), wide, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(own, model(tokens), rtol=0.1)


def test_the_weights_of_a_large_model_are_run_once_for_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 0)
    torch.manual_seed(0)
    subject = as_subject(_Attention(leaks=False), inputs=(torch.randint(0, 50, (2, 7)),), kind="decoder")
    context = audit_context(subject)
    made: list[str] = []
    outputs = SubjectExecution.outputs

    def counted(self: SubjectExecution, inputs: tuple[Tensor, ...], executor: Executor = "model") -> dict[str, Tensor]:
        made.append(self.weights)
        return outputs(self, inputs, executor)

    output, dims = next(iter(context.output_dims.items()))
    monkeypatch.setattr(SubjectExecution, "outputs", counted)
    search = WitnessSearch(context, find_proved_law("causal"), output, dims, None)
    found = [measured_deviation(search, of_all_weights=True) for _ in range(2)]
    assert made.count("given") == 1  # the other run of the pair is the call with which the recording was compared
    assert context.at_length(5).with_own_weights == {"causal"}
    assert [contradicts for _, contradicts in found] == [False, False]
    of_graph = WitnessSearch(context, find_proved_law("causal"), output, dims, context.captured)
    assert of_graph.stand_in is not None
    tokens = of_graph.stand_in.tokens(7)[0].inputs
    graph, module = (of.stand_in.runs.outputs(tokens, "float64 copy" if of is search else "float64 graph")
                     for of in (of_graph, search) if of.stand_in is not None)  # fmt: skip
    assert graph[output].dtype is torch.float64
    assert torch.allclose(graph[output], module[output], rtol=1e-9, atol=1e-9)


def test_a_recording_of_a_large_model_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 0)
    torch.manual_seed(0)
    subject = as_subject(_Attention(leaks=False), inputs=(torch.randint(0, 50, (2, 7)),), kind="decoder")
    other = audit_context(as_subject(_Attention(leaks=True), inputs=(torch.randint(0, 50, (2, 7)),), kind="decoder"))
    context = audit_context(subject)
    assert context.recording.mismatch is None
    graph, compared = context.recording.graph, context.recording.compared
    assert compared is not None
    assert context._agrees_with_low_rank(graph, *compared)
    assert not other._agrees_with_low_rank(graph, *compared)
    assert not context._agrees_with_low_rank(graph, compared[0], {k: x / 0 for k, x in compared[1].items()})


def test_a_recording_of_a_large_model_is_compared_with_the_call_that_its_operators_are_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 0)
    torch.manual_seed(0)
    context = audit_context(as_subject(_Attention(leaks=False), inputs=(torch.randint(0, 50, (2, 7)),), kind="decoder"))
    called: list[tuple[int, ...]] = []
    compared_call = context._compared_call
    monkeypatch.setattr(context, "_compared_call", lambda graph: called.append((1,)) or compared_call(graph))
    found = context.recording
    assert found.compared is not None
    assert (found.mismatch, called) == (None, [])
    inputs, outputs = found.compared
    assert torch.equal(inputs[0], context.subject.sample(7, context.seed + 1).inputs[0])  # the tokens of the first runs
    assert torch.equal(outputs["output"], context.subject.module(*inputs))
