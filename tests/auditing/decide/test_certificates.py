"""Certificates come from the walks that proved a finding, and equal those of a new proof."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.auditing.api import audit_context, report_on_law
from orderproof.auditing.decide.certificates import certificate_for, certificates_of
from orderproof.auditing.record.context import AuditContext
from orderproof.errors import UsageError
from orderproof.laws import find_proved_law
from orderproof.models import load
from orderproof.models.settings import DEFAULT_SETTING
from tests.auditing.internals import prove_law


@pytest.mark.parametrize(
    ("law", "uniform", "count"),
    [
        ("permutation", (), 1),
        ("causal", (), 1),
        ("batch", (), 2),
        ("packing", (), 4),
        ("prompt_permutation", ("wpe",), 1),
    ],
)
def test_the_kept_walk_gives_the_certificate_of_a_new_proof(law: str, uniform: tuple[str, ...], count: int) -> None:
    context = audit_context(load("arch:gpt2?n_layer=1", tiny=True), keep_walks=True)
    first, second = [], []
    for finding in report_on_law(context, law, uniform=uniform).findings:
        first += certificates_of(context, finding)
        called = context.in_call_mode(finding.call_mode or DEFAULT_SETTING)
        assert isinstance(called, AuditContext)
        law_context = called.for_law(find_proved_law(law))
        for relation in find_proved_law(law).subrelations(law_context.batch_size):
            completed = finding.verdict != "proved"
            second.append(certificate_for(law_context, relation, finding.output, uniform=uniform, completed=completed))
    assert len(first) == count
    assert first == second


def test_a_context_that_kept_no_walks_has_no_certificates() -> None:
    context = audit_context(load("arch:gpt2?n_layer=1", tiny=True))
    (finding,) = report_on_law(context, "causal").findings
    assert context.walks == []
    with pytest.raises(ValueError, match="expected a context made with keep_walks=True"):
        certificates_of(context, finding)


def test_a_certificate_has_the_assumptions_of_its_finding() -> None:
    subject = load("arch:gpt2", tiny=True)
    context = AuditContext(subject, subject.default_length, keep_walks=True)
    (finding,) = prove_law(context, find_proved_law("causal"))
    (certificate,) = certificates_of(context, finding)
    assert tuple(certificate["assumptions"]) == finding.scope.assumptions


@pytest.mark.parametrize(("layers", "outcome"), [(1, "no"), (2, "yes")])
def test_a_model_with_uniform_entries_is_named_as_another_model(layers: int, outcome: str) -> None:
    context = audit_context(load(f"arch:gpt2?n_layer={layers}", tiny=True), keep_walks=True)
    report = report_on_law(context, "prompt_permutation", uniform=("wpe",))
    assert report.subject.name.endswith(" with the entries of wpe the same for every token")
    (finding,) = report.findings
    assert finding.outcome == outcome
    changed = "values from model.wpe.weight the same for every token at modeling_gpt2.py:"
    assert any(text.startswith(f"of another model: {changed}") for text in finding.scope.assumptions)
    for certificate in certificates_of(context, finding):
        assert certificate["subject"].startswith(f"{context.subject.name} with {changed}")


class Stepping(nn.Module):
    """A distance that is scaled by a vector, which is the same for every token already."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Parameter(torch.randn(4))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        return x + self.step * torch.arange(x.shape[1])[:, None] + x.mean(1, keepdim=True)


def test_a_uniform_entry_is_named_by_its_line_and_not_only_by_a_tensor_from_which_it_is_computed() -> None:
    finding = prove(Stepping().eval(), "permutation", inputs=torch.randn(2, 7, 4), uniform=["step"])
    assert finding.outcome == "no"
    (changed,) = [text for text in finding.scope.assumptions if "another model" in text]
    assert changed.startswith("of another model: values from step the same for every token at ")
    assert "test_certificates.py:" in changed


def test_the_certificate_of_a_complete_entry_map_names_what_it_takes_out() -> None:
    context = audit_context(load("arch:gpt2?n_layer=1", tiny=True), keep_walks=True)
    (finding,) = report_on_law(context, "permutation").findings
    assert finding.completion is not None
    (certificate,) = certificates_of(context, finding)
    assert " the same for every token" in certificate["subject"]
    assert "model.wpe.weight" in certificate["subject"]
    assert not any("another model" in text for text in finding.completion.scope.assumptions)  # the record says it


def test_a_measured_law_has_no_uniform_entries() -> None:
    with pytest.raises(UsageError, match="expected no uniform entries with stateless, which is measured"):
        report_on_law(audit_context(load("arch:gpt2?n_layer=1", tiny=True)), "stateless", uniform=("wpe",))
