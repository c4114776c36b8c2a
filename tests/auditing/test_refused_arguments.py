"""Arguments that a subject cannot honour are refused, not dropped."""

import pytest
import torch
from torch import nn

from orderproof import audit
from orderproof.auditing.api import as_subject
from orderproof.errors import UsageError
from orderproof.models import from_module
from orderproof.subject_spec import Layout

FILE = """
import torch
from torch import nn

class Sum(nn.Module):
    def forward(self, x):
        return x.cumsum({axis})

def build():
    return Sum(), torch.randn(5, 2, 16)"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "sums.py"
    path.write_text(FILE.format(axis=0))
    return str(path)


def test_a_text_and_its_token_axis_are_both_read(spec):
    report = audit(f"{spec}:build", laws=["causal"], token_axis=0)
    assert [f.verdict for f in report.findings] == ["proved"]
    assert audit(f"{spec}:build", laws=["batch"], token_axis=0).findings[0].verdict == "proved"
    assert audit(f"{spec}:build", laws=["batch"]).findings[0].verdict == "refuted"


def test_inputs_replace_those_of_a_text(spec):
    subject = as_subject(f"{spec}:build", inputs=torch.randn(3, 7, 4), layout=Layout(token_axis=0))
    assert subject.sample(7).inputs[0].shape[-1] == 4
    outputs = as_subject(f"{spec}:build", layout=Layout(token_axis=0, outputs="token,batch,width"))
    assert outputs.axes_text["output"] == "[token, batch, 16], as stated"


@pytest.mark.parametrize(
    "argument",
    [{"token_axis": 0}, {"outputs": "batch,token"}, {"together": True}, {"mask": "keep"}, {"position_ids": "at"}],
)
def test_axes_of_a_subject_that_states_them_are_refused(argument):
    made = from_module(nn.Identity(), torch.randn(2, 7, 16))
    for subject in ("arch:llama", None, made):
        with pytest.raises(UsageError, match=next(iter(argument))):
            as_subject(subject, layout=Layout(**argument))


def test_inputs_of_a_subject_that_draws_them_are_refused():
    made = from_module(nn.Identity(), torch.randn(2, 7, 16))
    for subject in ("arch:llama", None, made):
        with pytest.raises(UsageError, match="expected no inputs"):
            as_subject(subject, inputs=torch.randn(2, 7, 16))


def test_arguments_that_a_comparison_of_engines_ignores_are_refused():
    with pytest.raises(UsageError, match="expected no length with against"):
        audit("arch:llama", against="mlx", length=5)
