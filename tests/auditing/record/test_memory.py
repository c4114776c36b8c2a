"""The copies of a model that an audit makes: shared where they can be, and freed before other processes measure."""

import pytest
import torch
from torch import nn

from orderproof.laws.measured import CachedCalls
from orderproof.models import from_module
from tests.auditing.internals import AuditContext


def test_the_runs_and_the_graph_of_an_audit_share_one_copy_until_it_is_freed() -> None:
    context = AuditContext(from_module(nn.Linear(4, 4), torch.randn(2, 3, 4)), 3)
    tokens = context.execution.sample_tokens(3, 0).inputs
    first = context.execution.outputs(tokens, "float64 copy")["output"]
    name = next(iter(context.captured.parameters))
    copied = context.captured.in_float64(name)
    assert any(copied.data_ptr() == p.data_ptr() for p in context.execution.copied_module("float64 copy").parameters())
    context.free_float64_copies()
    assert torch.equal(context.execution.outputs(tokens, "float64 copy")["output"], first)
    assert context.captured.in_float64(name).data_ptr() != copied.data_ptr()


def test_the_models_that_a_law_built_are_freed_and_built_again_when_needed() -> None:
    subject = from_module(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.randn(2, 3, 8))
    assert subject.build_adapter is not None
    calls = CachedCalls(subject.build_adapter())
    wide, copied = calls.float64, calls.reloaded("copied")
    before = wide.default_output, copied.default_output
    assert calls.float64 is wide
    assert calls.reloaded("copied") is copied
    calls.free_models()
    assert calls.float64 is not wide
    assert calls.reloaded("copied") is not copied
    assert torch.equal(calls.float64.default_output, before[0])
    assert torch.equal(calls.reloaded("copied").default_output, before[1])


class Counting(nn.Module):
    """Its calls leave a number in it, or change its weights."""

    def __init__(self, changes: str) -> None:
        super().__init__()
        self.changes, self.calls, self.line = changes, 0, nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.changes == "number":
            self.calls += 1
        if self.changes == "weights":
            self.line.weight.data[0, 0] += 1
        return self.line(x) + self.calls


@pytest.mark.parametrize("changes", ["nothing", "number", "weights"])
@pytest.mark.parametrize("how", ["loaded", "cast"])
def test_a_copy_in_another_dtype_serves_the_next_law_if_no_call_changed_it(changes: str, how: str) -> None:
    subject = from_module(Counting(changes), torch.randn(2, 3, 4))
    assert subject.build_adapter is not None
    calls = CachedCalls(subject.build_adapter())
    calls.remember_first_state()

    def copied() -> CachedCalls:
        if how == "loaded":
            return calls.loaded_in(torch.float64)
        first = calls.as_before_the_first_call()
        assert first is not None
        return first.float64

    one = copied()
    first = one.default_output
    calls.free_models()
    two = copied()
    assert (two.adapter.module is one.adapter.module) == (changes == "nothing")
    assert torch.equal(two.default_output, first)
    calls.free_models()  # this law used the copy
    calls.free_models()  # this one did not
    assert copied().adapter.module is not two.adapter.module
