"""Where the runs of a measured law first differ: the module and the line, and findings with one cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.auditing.explain.findings import with_causes
from orderproof.auditing.explain.source_name import source_name
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.records.audit import Finding

WIDTH = 8
THIS_FILE = source_name(__file__)


class Mean(nn.Module):
    """Each token gets the mean of the tokens up to itself; on a cache only of those of the call."""

    def forward(self, x: Tensor, before: Tensor | None) -> Tensor:
        del before  # the defect
        counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype).unsqueeze(-1)  # the line of the difference
        return x.cumsum(1) / counts


class Block(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.output = Mean(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, before: Tensor | None) -> Tensor:
        return self.output(x) + self.mix(x, before)


class Forgetful(nn.Module):
    """Two blocks."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x: Tensor, before: Tensor | None = None) -> Tensor:
        for block in self.blocks:
            x = block(x, before)
        return x


class ForgetfulAdapter(ModelAdapter):
    """Calls it, with the number of cached tokens as its cache."""

    supported_inputs = frozenset({"cache"})
    causal = True

    def __init__(self) -> None:
        self.module = Forgetful().eval()

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randn((rows, tokens, WIDTH), generator=torch.Generator().manual_seed(seed))

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **_: Any) -> ModelOutput:
        return ModelOutput(self.module(tokens, past), tokens if past is None else torch.cat([past, tokens], 1))


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def measured(law: str) -> Finding:
    adapter = ForgetfulAdapter()
    calls = CachedCalls(adapter)
    calls.remember_first_state()
    return measure_law(adapter, find_law(law), calls, kind="causal_lm")  # type: ignore[arg-type]


def test_witness_names_the_module_and_the_line() -> None:
    found = measured("cached_decoding")
    assert found.verdict == "refuted"
    assert found.witness is not None
    assert found.witness.first_violating_module == "blocks.0.mix"
    assert found.witness.first_violating_source == f"{THIS_FILE}:{line_of('# the line of the difference')}"


def test_violations_at_one_line_are_one_cause() -> None:
    report = audit(ForgetfulAdapter(), laws=["cached_decoding", "chunked_prefill"])
    assert [(f.verdict, f.same_cause_as) for f in report.findings] == [("refuted", ""), ("refuted", "OP401")]


def test_violations_at_other_lines_are_other_causes() -> None:
    found = measured("cached_decoding")
    other = found.model_copy(update={"code": "OP402", "fix_source": "elsewhere.py:1"})
    same = found.model_copy(update={"code": "OP403"})
    assert [f.same_cause_as for f in with_causes([found, other, same])] == ["", "", "OP401"]


def test_hooks_do_not_stay_on_the_model() -> None:
    adapter = ForgetfulAdapter()
    calls = CachedCalls(adapter)
    calls.remember_first_state()
    measure_law(adapter, find_law("cached_decoding"), calls, kind="causal_lm")  # type: ignore[arg-type]
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in adapter.module.modules())
    copied = calls.as_before_the_first_call()
    assert copied is not None
    assert not any(part._forward_hooks for part in copied.adapter.module.modules())
