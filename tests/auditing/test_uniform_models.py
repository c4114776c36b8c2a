"""Models with entries made the same for every token are named as other models."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.auditing.api import audit_context, report_on_law
from orderproof.errors import UsageError
from orderproof.models import load


@pytest.mark.parametrize(("layers", "outcome"), [(1, "no"), (2, "yes")])
def test_a_model_with_uniform_entries_is_named_as_another_model(layers: int, outcome: str) -> None:
    context = audit_context(load(f"arch:gpt2?n_layer={layers}", tiny=True))
    report = report_on_law(context, "prompt_permutation", uniform=("wpe",))
    assert report.subject.name.endswith(" with the entries of wpe the same for every token")
    (finding,) = report.findings
    assert finding.outcome == outcome
    changed = "values from model.wpe.weight the same for every token at modeling_gpt2.py:"
    assert any(text.startswith(f"of another model: {changed}") for text in finding.scope.assumptions)


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
    assert "test_uniform_models.py:" in changed


def test_a_complete_entry_map_is_not_said_to_be_of_another_model() -> None:
    context = audit_context(load("arch:gpt2?n_layer=1", tiny=True))
    (finding,) = report_on_law(context, "permutation").findings
    assert finding.completion is not None
    assert finding.completion.verdict == "proved"
    assert not any("another model" in text for text in finding.completion.scope.assumptions)  # the record says it


def test_a_measured_law_has_no_uniform_entries() -> None:
    with pytest.raises(UsageError, match="expected no uniform entries with stateless, which is measured"):
        report_on_law(audit_context(load("arch:gpt2?n_layer=1", tiny=True)), "stateless", uniform=("wpe",))
