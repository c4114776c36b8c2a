"""A recording does not import torch._dynamo, and what is compiled after it is compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = """
import sys
import torch
from torch import nn

from orderproof import audit

layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True).eval()
report = audit(layer, inputs=torch.randn(2, 7, 16), fast=True)
assert {f.law: f.verdict for f in report.findings}["permutation"] == "proved"
assert "torch._dynamo" not in sys.modules

calls = []


def backend(graph, inputs):
    calls.append(len(list(graph.graph.nodes)))
    return graph


x = torch.randn(2, 7, 16)
torch.testing.assert_close(torch.compile(layer, backend=backend)(x), layer(x))
assert calls
"""
ATTRIBUTES = """
import sys
import torch

from orderproof.recording.late_dynamo import late_dynamo

with late_dynamo():
    import torch._dynamo

    assert "recording" in type(torch._dynamo).__module__
    marked = torch._dynamo.disable(lambda x: (x + 1, torch.compiler.is_compiling()))
    kept = torch.compiler.allow_in_graph(torch._dynamo.disable(recursive=False)(lambda x: x))
    assert marked(1) == (2, False)
    assert callable(torch._dynamo.optimize)  # anything else is that of torch
    assert "eval_frame" in dir(sys.modules["torch._dynamo"])
    assert id(kept) in torch._dynamo.trace_rules._allowed_callable_ids
    assert marked(2) == (3, False)
with late_dynamo():
    assert "eval_frame" in dir(torch._dynamo)
"""
SUBMODULES = """
import torch

from orderproof.recording.late_dynamo import late_dynamo

with late_dynamo():
    from torch._dynamo.exc import Unsupported
    import torch._dynamo.config

assert torch._dynamo.exc.Unsupported is Unsupported
assert torch._dynamo.config.verbose is False
"""


def run(text: str, folder: Path) -> None:
    file = folder / "program.py"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_proof_needs_no_compiler_and_compiling_still_works(tmp_path: Path) -> None:
    run(AUDIT, tmp_path)


@pytest.mark.slow
def test_what_is_asked_of_the_compiler_is_that_of_torch(tmp_path: Path) -> None:
    run(ATTRIBUTES, tmp_path)


@pytest.mark.slow
def test_a_submodule_may_be_imported_meanwhile(tmp_path: Path) -> None:
    run(SUBMODULES, tmp_path)
