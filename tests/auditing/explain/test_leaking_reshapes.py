"""A reshape that mixes tokens with heads is the line of the violation, and not the mask, which is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.auditing.api import audit

MODEL = """
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, attention_mask=None):
        b, n, c = x.shape
        q, k, v = (part.view(b, n, 2, 4).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        if attention_mask is not None:
            hidden = hidden | (attention_mask == 0)[:, None, None, :]
        y = (q @ k.transpose(-1, -2)).masked_fill(hidden, torch.finfo(x.dtype).min).softmax(-1) @ v
        {join}
        return x + y


def decoder():
    return Decoder(), torch.randn(2, 7, 8)
"""
WRONG, RIGHT = "y = y.reshape(b, n, c)", "y = y.transpose(1, 2).reshape(b, n, c)"


@pytest.mark.parametrize("law", ["causal", "padding"])
def test_the_reshape_is_the_line_and_the_remedy_repairs_it(law: str, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL.format(join=WRONG), encoding="utf-8")
    (found,) = audit(f"{file}:decoder", laws=[law]).findings
    assert found.verdict == "refuted"
    assert (found.fix_source, found.fix_line) == (
        f"model.py:{MODEL[: MODEL.index('{join}')].count(chr(10)) + 1}",
        WRONG,
    )
    assert "This reshape gives one token entries of another" in found.remedy
    assert found.remedy_diff.splitlines()[-1].startswith("+y = y.transpose(1, 2).reshape(")
    assert found.entries[0].picture is None
    file.write_text(MODEL.format(join=RIGHT), encoding="utf-8")
    (found,) = audit(f"{file}:decoder", laws=[law]).findings
    assert found.verdict == "proved"
