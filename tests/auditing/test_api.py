"""The two calls, `prove` and `audit`, on subjects whose answers are known."""

from __future__ import annotations

import json

import jsonschema
import pytest
import torch
from torch import Tensor, nn

from orderproof import laws
from orderproof.errors import SubjectError, UsageError
from orderproof.laws import measured_laws
from orderproof.models import from_module
from orderproof.records.audit import Finding, Report
from orderproof.report.schema import audit_schema
from tests.auditing import examples
from tests.auditing.internals import AuditContext, ProofOptions, audit, examined, prove, prove_law, report_on_law


def found(module: nn.Module, law: str, **options: object) -> Finding:
    return prove(module, law, **options)  # type: ignore[arg-type]


# ---------------------------------------------------------------- theorems


@pytest.mark.parametrize(("layers", "verdict"), [(1, "proved"), (2, "refuted")])
def test_causal_decoder_without_positions_is_prompt_blind_at_one_layer_only(layers: int, verdict: str) -> None:
    context = examined(f"gpt2?n_layer={layers}")
    (finding,) = prove_law(context, laws.find_proved_law("prompt_permutation"), ProofOptions(uniform_entries=("wpe",)))
    assert finding.verdict == verdict, finding.reason
    assert (finding.witness is not None) == (verdict == "refuted")
    if verdict == "proved":
        assert (finding.scope.weights, finding.vacuous) == ("all", False)


def test_one_layer_with_positions_is_not_prompt_blind() -> None:
    (finding,) = prove_law(examined("gpt2?n_layer=1"), laws.find_proved_law("prompt_permutation"))
    assert finding.verdict == "refuted"


def test_uniform_pattern_that_matches_nothing_names_the_entries() -> None:
    with pytest.raises(UsageError, match=r"expected --uniform to match an entry of .*wpe.*; got rotary"):
        prove_law(
            examined("gpt2?n_layer=1"),
            laws.find_proved_law("prompt_permutation"),
            ProofOptions(uniform_entries=("rotary",)),
        )


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_of_torch_is_order_blind(batch_first: bool, norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=batch_first, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    finding = found(encoder, "permutation")
    assert (finding.verdict, finding.vacuous, finding.scope.weights) == ("proved", False, "all"), finding.reason
    assert found(encoder, "reversal").verdict == "proved"
    assert found(encoder, "causal").verdict == "refuted"


@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_of_torch_is_order_blind(batch_first: bool) -> None:
    finding = found(nn.MultiheadAttention(16, 2, batch_first=batch_first), "permutation")
    assert (finding.verdict, finding.vacuous) == ("proved", False), finding.reason


def test_verdict_for_each_output() -> None:
    subject = from_module(examples.SeveralOutputs())
    rows = prove_law(AuditContext(subject, subject.default_length), laws.find_proved_law("permutation"))
    assert {f.output: f.verdict for f in rows} == {"tokens": "proved", "mean": "proved", "first": "refuted"}
    assert prove(subject, "permutation").output == "tokens"
    assert prove(subject, "permutation", output="first").verdict == "refuted"
    with pytest.raises(UsageError, match="expected an output, one of tokens, mean, first; got 'last'"):
        prove(subject, "permutation", output="last")
    causal = prove_law(AuditContext(subject, subject.default_length), laws.find_proved_law("causal"))
    assert [f.verdict for f in causal] == ["refuted", "not_applicable", "not_applicable"]


# ---------------------------------------------------------------- what a verdict is worth


@pytest.mark.parametrize("law", ["permutation", "reversal", "causal", "prompt_permutation"])
def test_vacuous_proof_is_flagged(law: str) -> None:
    finding = found(examples.Alone(), law)
    assert (finding.verdict, finding.vacuous) == ("proved", True)
    assert "no token's output depends on another token" in finding.reason


@pytest.mark.parametrize("law", ["permutation", "causal"])
def test_a_branch_for_exporters_is_not_recorded(law: str) -> None:
    assert found(examples.OtherBranch(), law).verdict == "refuted"


@pytest.mark.parametrize("law", ["permutation", "causal"])
def test_logits_of_minus_infinity_are_outputs(law: str) -> None:
    finding = found(examples.BestWords(), law)
    assert finding.verdict == "proved"
    assert finding.theorem is not None
    assert finding.theorem.proved


@pytest.mark.parametrize("law", ["permutation", "causal", "reversal", "prompt_permutation"])
def test_outputs_that_are_no_numbers_are_undecided(law: str) -> None:
    finding = found(examples.NotANumber(), law)
    assert finding.verdict == "undecided"
    assert "not finite" in finding.reason


def test_table_that_starts_at_zero_is_refuted_unless_these_weights_are_meant() -> None:
    torch.manual_seed(0)
    module = examples.ZeroTable()
    finding = found(module, "permutation")
    assert finding.verdict == "refuted"
    assert finding.witness is not None
    assert finding.witness.weights == "random"
    assert finding.scope.weights == "all"
    finding = found(module, "permutation", weights="these")
    assert finding.verdict == "proved"
    assert (finding.scope.weights, finding.scope.tensors_read) == ("these", ("table",))
    assert found(examples.Attention(), "permutation", weights="these").scope.tensors_read == ()
    with torch.no_grad():
        module.table.normal_()
    finding = found(module, "permutation", weights="these")
    assert finding.witness is not None
    assert (finding.verdict, finding.witness.weights) == ("refuted", "given")


def test_proof_that_needs_no_weights_says_all_even_when_these_were_allowed() -> None:
    assert found(examples.Causal(), "causal", weights="these").scope.weights == "all"


def test_module_that_cannot_be_recorded_is_refuted_by_its_runs() -> None:
    report = audit(examples.DependsOnData())
    assert [f.law for f in report.findings] == [law.name for law in (*laws.proved_laws(), *measured_laws())]
    for finding in report.findings:
        if finding.law in {law.name for law in measured_laws()}:
            assert finding.verdict in ("held", "not_applicable", "undecided"), finding.reason
            continue
        if finding.reason.startswith("it takes no "):
            assert finding.verdict == "not_applicable"
            continue
        assert finding.verdict in ("undecided", "refuted")
        assert "the graph cannot be recorded: control flow depends on data" in finding.reason
    assert any("the graph cannot be recorded" in note for note in report.notes)


def test_prove_of_a_module_that_cannot_be_recorded_gives_a_finding() -> None:
    finding = found(examples.DependsOnData(), "causal")
    assert finding.verdict == "refuted"
    assert finding.witness is not None
    assert "the graph cannot be recorded" in finding.reason


# ---------------------------------------------------------------- expectations, lengths, seeds, JSON


@pytest.mark.parametrize(("expect", "met", "code"), [("holds", True, 0), ("any", True, 0), ("fails", False, 1)])
def test_expectation_decides_the_exit_code(expect: str, met: bool, code: int) -> None:
    report = audit(examples.Causal(), laws=["causal"], expect={"causal": expect})  # type: ignore[dict-item]
    (finding,) = report.findings
    assert (finding.verdict, finding.expectation_met, report.exit_code) == ("proved", met, code)


def test_undecided_has_an_exit_code_of_its_own() -> None:
    report = audit(examples.NotANumber(), laws=["causal"], expect={"causal": "holds"})
    assert (report.findings[0].verdict, report.exit_code) == ("undecided", 3)


def test_causal_model_is_judged_by_its_kind() -> None:
    report = report_on_law(examined("llama", "sdpa"), "causal")
    assert [(f.verdict, f.expected, f.expectation_met) for f in report.findings] == [("proved", "holds", True)]


@pytest.mark.parametrize(("length", "message"), [(1, "at least 2 tokens; got 1"), (0, "at least 2 tokens; got 0")])
def test_order_needs_two_tokens(length: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        audit(examples.Causal(), length=length)


def test_length_beyond_the_position_table_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"expected a length of at most \d+, the size of .*'s position table; got 1000"
    ):
        audit("arch:bert", length=10**5) if False else audit(examined("bert", "sdpa").subject, length=100000)


@pytest.mark.parametrize("length", [2, 3, 11])
def test_other_lengths_are_proved_too(length: int) -> None:
    finding = found(examples.Causal(), "causal", length=length)
    assert (finding.verdict, finding.scope.length) == ("proved", length)


def test_same_seed_same_report() -> None:
    def run(seed: int) -> Report:
        torch.manual_seed(3)
        return audit(examples.Causal(), seed=seed)

    def timeless(report: Report) -> str:
        findings = tuple(f.model_copy(update={"seconds": 0.0}) for f in report.findings)
        return report.model_copy(update={"seconds": 0.0, "findings": findings}).to_json()

    first = timeless(run(0))
    assert timeless(run(0)) == first
    assert [f.verdict for f in run(1).findings] == [f.verdict for f in run(0).findings]


def test_json_of_an_audit_satisfies_the_schema() -> None:
    for report in (
        audit(examples.SeveralOutputs()),
        report_on_law(examined("bert", "sdpa"), "permutation", check_nodes=True),
    ):
        data = json.loads(report.to_json())
        jsonschema.validate(data, audit_schema())
        assert data["schema"] == 2
        assert Report.from_json(report.to_json()) == report
        assert set(report.lemma_statements) >= set(
            (report.findings[0].proof or report.findings[0].completion.proof).lemma_counts
        )


def test_node_check_says_what_it_did() -> None:
    report = report_on_law(examined("bert", "sdpa"), "causal", check_nodes=True)
    (note,) = [n for n in report.notes if n.startswith("node check")]
    assert "hold in 6 pairs of float64 runs" in note


def test_module_without_token_axis_or_tensor_is_refused() -> None:
    class Nothing(nn.Module):
        def forward(self, x: Tensor) -> str:
            return "nothing"

    with pytest.raises(SubjectError, match="returned str without a tensor"):
        prove(Nothing(), "causal", inputs=(torch.zeros(2, 7, 8),))
    with pytest.raises(SubjectError, match="calling it with"):
        prove(examples.Attention(), "causal", inputs=(torch.zeros(2, 3, 7, 8),))


class Noisy(nn.Module):
    """Adds noise to each token by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.inner(x)
        return given + torch.randn_like(x)


@pytest.mark.parametrize("law", ["batch", "causal"])
def test_noise_is_no_witness_and_a_proof_is_about_the_same_noise(law: str) -> None:
    finding = found(Noisy(), law, inputs=(torch.randn(2, 5, 8),))
    assert finding.witness is None
    assert finding.verdict == "proved"
    assert any("the same random numbers in both runs: randn_like" in text for text in finding.scope.assumptions)
