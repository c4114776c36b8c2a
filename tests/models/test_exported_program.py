"""Programs of torch.export are audited as modules are."""

import pytest
import torch
from torch import nn
from torch.export import Dim

from orderproof import audit
from orderproof.errors import SubjectError
from orderproof.models import from_module

INPUTS = torch.randn(2, 7, 16)


class Decoder(nn.Module):
    """A layer whose mask hides later tokens, if it is causal."""

    def __init__(self, *, causal):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.causal = causal

    def forward(self, x):
        tokens = x.shape[1]
        mask = torch.full((tokens, tokens), -torch.inf).triu(1)
        return self.layer(x, src_mask=mask if self.causal else None)


def exported(*, causal, is_open):
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},) if is_open else None
    return torch.export.export(Decoder(causal=causal).eval(), (INPUTS,), dynamic_shapes=shapes, strict=False)


@pytest.mark.parametrize("causal", [True, False])
def test_a_saved_program_is_audited(causal, tmp_path):
    torch.export.save(exported(causal=causal, is_open=True), tmp_path / "model.pt2")
    report = audit(torch.export.load(tmp_path / "model.pt2"), laws=["causal", "batch"])
    verdicts = {f.law: (f.verdict, f.theorem is not None and f.theorem.proved) for f in report.findings}
    assert verdicts == {"causal": ("proved", True) if causal else ("refuted", False), "batch": ("proved", True)}
    assert report.subject.name == "exported program"


def test_a_program_of_one_shape_is_audited_at_it():
    subject = from_module(exported(causal=True, is_open=False))
    assert subject.max_length == 7
    assert audit(subject, laws=["causal"]).findings[0].verdict == "proved"


def test_a_program_without_inputs_is_refused():
    program = exported(causal=True, is_open=True)
    program._example_inputs = None
    with pytest.raises(SubjectError, match="the exported program has no example inputs"):
        from_module(program)
