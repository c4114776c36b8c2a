"""The options that state the arguments of a module."""

from pathlib import Path

from tests.cli.conftest import Run

SUBJECT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)

    def forward(self, ids, keep=None):
        x = self.embed(ids)
        scores = x @ x.mT
        if keep is not None:
            scores = scores.masked_fill(keep[:, None, :] == 0, -1e9)
        return scores.softmax(-1) @ x

def build():
    return Model(), torch.randint(0, 50, (2, 7))
"""


def test_the_command_line_states_a_mask(run: Run, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SUBJECT)
    subject = f"{tmp_path}/model.py:build"
    assert run("prove", subject, "--law", "padding", "-q")[0] == 3
    assert run("prove", subject, "--law", "padding", "--mask", "keep=real", "-q")[0] == 0
    code, _, err = run("prove", subject, "--law", "padding", "--mask", "kept", "-q")
    assert (code, "that is a padding mask; got 'kept'" in err) == (2, True)


def test_a_malformed_mask_is_refused_before_anything_is_loaded(run: Run) -> None:
    code, _, err = run("audit", "no_such_file.py:build", "--mask", "keep=tokens")
    assert (code, "expected a mask as NAME, NAME=real, NAME=pads or none" in err) == (2, True)


def test_a_mask_of_a_model_of_transformers_is_refused_in_one_line(run: Run) -> None:
    code, _, err = run("audit", "arch:llama", "--tiny", "--mask", "keep")
    said = "expected file.py:name or file.onnx with mask; arch:llama states its own inputs"
    assert (code, said in err) == (2, True)
