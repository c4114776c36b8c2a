"""Reports name the line of the user's file, also under autocast and decorators."""

from __future__ import annotations

import functools
import inspect
import os

import pytest
import torch
from torch import nn

from orderproof import prove
from orderproof.auditing.explain.entries import source_of
from orderproof.recording.capture import capture

VECTORS = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))


def logged(function):
    """A decorator of the user."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Wrapped(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return self.inner(x)

    @logged
    def inner(self, x):
        return x.flip(1)  # here


class Inference(nn.Module):
    @torch.inference_mode()
    @logged
    def forward(self, x):
        return x.flip(1)  # here


class Cast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.layer(x)
            return x.flip(1)  # here


class CastByDecorator(Cast):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x):
        x = self.layer(x)
        return x.flip(1)  # here


class CastTwice(Cast):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.layer(x)
        x = x.float().cos()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.layer(x).relu()
            return x.flip(1)  # here


class CastInPart(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Cast()
        self.other = nn.Linear(16, 16)

    def forward(self, x):
        return self.other(self.part(x).float())


MODULES = [Wrapped, Inference, Cast, CastByDecorator, CastTwice, CastInPart]


def line_marked_here(module: type[nn.Module]) -> int:
    lines, start = inspect.getsourcelines(Cast if module is CastInPart else module)
    return start + next(k for k, line in enumerate(lines) if "# here" in line)


@pytest.mark.parametrize("module", MODULES)
def test_a_leak_is_at_the_line_of_the_user(module):
    torch.manual_seed(0)
    finding = prove(module().eval(), "causal", inputs=VECTORS)
    assert finding.verdict == "refuted"
    assert {entry.source for entry in finding.entries} == {f"{os.path.relpath(__file__)}:{line_marked_here(module)}"}
    assert "eval_with_key" not in finding.model_dump_json()


@pytest.mark.parametrize("module", MODULES)
def test_no_operator_has_a_generated_line(module):
    captured = capture(module().eval(), (VECTORS,))
    nodes = [n for n in captured.graph.nodes if n.op == "call_function"]
    assert nodes
    sources = {source_of(n)[0] for n in nodes}
    assert not any("eval_with_key" in source for source in sources)
    assert f"{os.path.relpath(__file__)}:{line_marked_here(module)}" in sources
