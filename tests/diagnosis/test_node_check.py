"""Every fact at every node of real models, for every law, generator and cut, holds in two float64 runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof.diagnosis.node_check import check_nodes
from orderproof.laws import ProvedLaw, proved_laws
from orderproof.models import from_module
from orderproof.recording.execution import execute_nodes
from tests.auditing.internals import ARCHITECTURES, AuditContext, LawWalk, examined, walk_graph
from tests.diagnosis.walking import malformed
from tests.pairs import one_in


class Attention(nn.Module):
    """nn.MultiheadAttention of tokens to each other, causal or not, with its weights."""

    def __init__(self, *, batch_first: bool, causal: bool = False) -> None:
        super().__init__()
        self.batch_first = batch_first
        self.causal = causal
        self.inner = nn.MultiheadAttention(16, 2, batch_first=batch_first)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[int(self.batch_first)]) if self.causal else None
        found: tuple[Tensor, Tensor] = self.inner(x, x, x, attn_mask=mask, need_weights=True)
        return found


def layer(*, batch_first: bool, norm_first: bool) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(16, 2, 32, batch_first=batch_first, norm_first=norm_first)


MODULES: dict[str, Callable[[], nn.Module]] = {
    "encoder": lambda: nn.TransformerEncoder(layer(batch_first=True, norm_first=False), 2, enable_nested_tensor=False),
    "encoder_tokens_first": lambda: nn.TransformerEncoder(
        layer(batch_first=False, norm_first=True), 2, enable_nested_tensor=False
    ),
    "attention": lambda: nn.MultiheadAttention(16, 2, batch_first=True),
    "attention_tokens_first": lambda: nn.MultiheadAttention(16, 2),
    "attention_with_weights": lambda: Attention(batch_first=True),
    "attention_with_weights_tokens_first": lambda: Attention(batch_first=False),
    "causal_attention": lambda: Attention(batch_first=True, causal=True),
    "causal_attention_tokens_first": lambda: Attention(batch_first=False, causal=True),
}


def module_examination(name: str) -> AuditContext:
    torch.manual_seed(0)
    module = MODULES[name]()
    if isinstance(module, Attention):
        shape = (2, 7, 16) if module.batch_first else (7, 2, 16)
        subject = from_module(module, (torch.zeros(shape),), token_axis=int(module.batch_first))
    else:
        subject = from_module(module)
    return AuditContext(subject, subject.default_length)


def contradictions(context: AuditContext, done: LawWalk) -> tuple[int, list[str]]:
    """How many pairs of runs were made, and every fact that one of them contradicts."""
    captured, subject = done.captured, context.subject
    axes = [1] if captured.start is not None else subject.token_axes
    axis = axes[0]
    assert isinstance(axis, int)
    first, other = (subject.sample(context.length, seed).inputs for seed in (1, 2))
    assert first[0].shape[1 if axis == 0 else 0] == 2, "a batch of two"
    cut = captured.start is not None
    x, y = (_start(context, inputs) if cut else inputs[0] for inputs in (first, other))
    pairs, wrong = 0, []
    for change, generator, case in done.law.proof_cases(context.token_count, context.batch_size):
        pairs += 1
        if cut:
            changed, starts = first, (x, change.apply(x, y, axis))
        else:
            changed = tuple(change.apply(a, b, d) for a, b, d in zip(first, other, axes, strict=True))
            starts = (None, None)
        found = check_nodes(
            captured, done.walk.facts, first, changed, generator=generator, case=case, starts=starts
        )  # fmt: skip
        wrong += [f"{change.description}: {v.node.name}: {v.claim} ({v.deviation:.2g})" for v in found]
    return pairs, wrong


def _start(context: AuditContext, inputs: tuple[Tensor, ...]) -> Tensor:
    """The value at the node a vision model's graph is cut at."""
    captured = context.captured
    with torch.no_grad():
        return next(v for n, v in execute_nodes(captured, inputs) if n is captured.start)


def check(context: AuditContext, law: ProvedLaw) -> None:
    for mode in law.call_modes:
        law_context = context.in_call_mode(mode)
        if isinstance(law_context, str):
            assert law_context.startswith("it takes no ")
            continue
        for part in law.subrelations(law_context.batch_size):
            check_part(law_context, part)


def check_part(context: AuditContext, law: ProvedLaw) -> None:
    done = walk_graph(context, law, context.captured)
    pairs, wrong = contradictions(context, done)
    assert wrong == []
    assert pairs == len(list(law.proof_cases(context.token_count, context.batch_size)))
    assert malformed(done) == []
    assert [b.reason for b in done.walk.breaks if b.reason.startswith("internal")] == []
    held = [
        f for f in done.walk.facts.values() if not isinstance(f, tuple) and (f.dependence < context.token_count).any()
    ]
    assert len(held) > 20 if len(done.walk.facts) > 40 else held, "a walk that claims nothing cannot be wrong"


def architectures_and_laws() -> Iterator[Any]:
    """All of both, of which three laws are soon checked in each architecture, and each law in several."""
    laws = list(proved_laws())
    for place, row in enumerate(ARCHITECTURES):
        for law in laws:
            marks = () if (laws.index(law) - place) % len(laws) in (0, 3, 5) else (pytest.mark.slow,)
            yield pytest.param(*row.values, law, id=f"{row.id}-{law.name}", marks=(*row.marks, *marks))


@pytest.mark.parametrize(("name", "attention", "law"), one_in(6, architectures_and_laws()))
def test_every_fact_holds_in_an_architecture(name: str, attention: str, law: ProvedLaw) -> None:
    check(examined(name, attention), law)


@pytest.mark.parametrize("name", MODULES)
def test_every_fact_holds_in_modules_of_torch(name: str) -> None:
    context = module_examination(name)
    for law in proved_laws():
        check(context, law)
