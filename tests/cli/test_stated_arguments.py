"""The options that state the arguments of a module."""

import re
from pathlib import Path

import pytest

from orderproof.cli.application import REMOVED_OPTIONS
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]

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
    assert run("prove", subject, "--law", "padding", "--role", "keep=mask:real", "-q")[0] == 0
    code, _, err = run("prove", subject, "--law", "padding", "--role", "kept=mask", "-q")
    assert (code, "that is a padding mask; got 'kept'" in err) == (2, True)


def test_a_malformed_mask_is_refused_before_anything_is_loaded(run: Run) -> None:
    code, _, err = run("audit", "no_such_file.py:build", "--role", "keep=mask:tokens")
    assert (code, "expected a role, one of mask, mask:real, mask:pads, " in err) == (2, True)
    code, _, err = run("audit", "no_such_file.py:build", "--role", "keep=mask", "--role", "hide=mask:pads")
    assert (code, "expected the role mask for one argument; got it for 'hide' too" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (
            ["--mask", "keep=real"],
            "--mask is gone: expected --role NAME=mask, mask:real or mask:pads; for none, --role",
        ),
        (["--position-ids=none"], "--position-ids is gone: expected --role NAME=positions; for none, --role NAME=held"),
    ],
)
def test_a_removed_option_names_the_role_that_states_the_same(run: Run, arguments: list[str], instead: str) -> None:
    code, _, err = run("audit", "no_such_file.py:build", *arguments)
    assert (code, instead in err) == (2, True)


def test_a_mask_of_a_model_of_transformers_is_refused_in_one_line(run: Run) -> None:
    code, _, err = run("audit", "arch:llama", "--tiny", "--role", "keep=mask")
    said = (
        "expected file.py:name, file.onnx, file.pt2 or a TorchScript file with mask; arch:llama states its own inputs"
    )
    assert (code, said in err) == (2, True)


def test_no_text_names_a_removed_option() -> None:
    removed = re.compile(rf"({'|'.join(REMOVED_OPTIONS)})(?![\w-])")
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    found = [file for file in files if removed.search(file.read_text(encoding="utf-8"))]
    assert [file.name for file in found] == ["application.py"]
