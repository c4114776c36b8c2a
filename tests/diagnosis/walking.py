"""Walk small programs, and hold what the walk says against real runs. Shared by the tests of the prover."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, walk_graph
from orderproof.diagnosis.domain.fact import Fact
from orderproof.diagnosis.node_check import Violation, check_nodes
from orderproof.laws import ProvedLaw
from orderproof.models import from_module
from orderproof.models.axes import OutputAxes, TokenRun

Function = Callable[..., Tensor]
TOKENS = 5
WIDTH = 4


class Program(nn.Module):
    """A function of one tensor [2, TOKENS, WIDTH] as a module; keyword tensors become buffers or parameters."""

    def __init__(self, function: Function, **state: Tensor) -> None:
        super().__init__()
        self.function = function
        self.names = tuple(state)
        for name, value in state.items():
            if isinstance(value, nn.Parameter):
                self.register_parameter(name, value)
            else:
                self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *[getattr(self, name) for name in self.names])


def examine(module: nn.Module, tokens: int = TOKENS, width: int = WIDTH) -> AuditContext:
    """The examination of a module that takes [batch, token, width]."""
    subject = from_module(module, (torch.zeros(2, tokens, width),), token_axis=1, length=tokens)
    assert subject.output_axes is not None
    subject.output_axes = {name: _read_by_size(axes, tokens) for name, axes in subject.output_axes.items()}
    return AuditContext(subject, tokens)


def _read_by_size(axes: OutputAxes, tokens: int) -> OutputAxes:
    """The axes of an output of a program of one length: here an axis with as many entries as tokens runs over them."""
    if not axes.fixed:
        return axes
    runs = tuple(TokenRun(axis) for axis, size in enumerate(axes.shape) if size == tokens)
    return replace(axes, tokens=runs, unknown_tokens="", fixed=False)


def shortfall(context: AuditContext, done: LawWalk) -> str | None:
    """Why the walk does not prove its law for some output; None where it proves it for all."""
    for name, dims in context.output_dims.items():
        if done.law.reads_rows and context.output_axes[name].row is None:
            return "no axis of the output runs over rows"
        missing = done.law.missing_property(done.walk.fact(context.captured.outputs[name]), dims, context.token_count)
        if missing is not None:
            return missing
    return None


def violations(context: AuditContext, done: LawWalk) -> Iterator[Violation]:
    """Every fact of a walk that two real runs contradict, for every generator and every cut."""
    subject = context.subject
    first, other = (subject.sample(context.length, seed).inputs for seed in (1, 2))
    for change, generator, case in done.law.proof_cases(context.token_count, context.batch_size):
        second = tuple(
            x if axis is None else change.apply(x, y, axis)
            for x, y, axis in zip(first, other, subject.token_axes, strict=True)
        )
        yield from check_nodes(done.captured, done.walk.facts, first, second, generator=generator, case=case)


def malformed(done: LawWalk) -> list[str]:
    """Facts whose moves or levels have not the rank of the tensor, or levels neither full nor of size 1."""
    wrong = []
    for node, facts in done.walk.facts.items():
        for fact in facts if isinstance(facts, tuple) else (facts,):
            arrays = [fact.dependence] + ([] if fact.ranges is None else [fact.ranges.low, fact.ranges.high])
            fits = len(fact.moves) == len(fact.shape) and all(_fits(x.shape, fact) for x in arrays)
            if not fits:
                wrong.append(
                    f"{node.name}: {len(fact.moves)} moves and {fact.dependence.shape} levels for {fact.shape}"
                )
    return wrong


def _fits(shape: tuple[int, ...], fact: Fact) -> bool:
    return len(shape) == len(fact.shape) and all(s in (1, n) for s, n in zip(shape, fact.shape, strict=True))


def walk(context: AuditContext, law: ProvedLaw, *, weights: str = "all", repairing: bool = False) -> LawWalk:
    """A walk of the examination's own graph."""
    return walk_graph(context, law, context.captured, weights=weights, repairing=repairing)  # type: ignore[arg-type]
