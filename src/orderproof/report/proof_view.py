"""The part of a proof that a page shows: its steps by module, cut with a count where there are too many."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace

from orderproof.records.audit import Deviation, Finding, Proof, ProofStep, Report, Scope, Theorem, Verdict
from orderproof.report.proof_groups import ModuleGroup, group_by_module

STEP_COST = 70  # [bytes] of markup for a step
GROUP_COST = 400  # [bytes] of markup for a module


@dataclass(frozen=True)
class GroupView:
    """A module of a proof and the number of its steps that are shown."""

    group: ModuleGroup
    shown: int

    @property
    def hidden_steps(self) -> int:
        """The number of its steps that are not shown."""
        return len(self.group.steps) - self.shown


@dataclass(frozen=True)
class ProofView:
    """One proof as a page shows it."""

    finding: Finding
    uniform_operands: int  # operands made uniform; 0 for the unchanged model
    verdict: Verdict
    scope: Scope
    proof: Proof
    deviation: Deviation
    reason: str
    theorem: Theorem | None = None
    groups: tuple[GroupView, ...] = ()
    hidden_steps: int = 0  # in modules that are not shown at all
    hidden_modules: int = 0


def proof_views(report: Report, budget: int) -> tuple[ProofView, ...]:
    """Every proof of a report within a shared budget [bytes]; a proof leaves its unused part to the next."""
    views = list(_proofs(report))
    filled: list[ProofView] = []
    for i, view in enumerate(views):
        done, left = _fit_to_budget(view, budget // (len(views) - i))
        budget -= budget // (len(views) - i) - left
        filled.append(done)
    return tuple(filled)


def _proofs(report: Report) -> Iterator[ProofView]:
    for f in report.findings:
        if f.proof:
            yield ProofView(f, 0, f.verdict, f.scope, f.proof, f.deviation, "", f.theorem)
        if f.completion and f.completion.proof:
            c = f.completion
            yield ProofView(f, c.uniform_operand_count, c.verdict, c.scope, f.completion.proof, c.deviation, c.reason)


def _fit_to_budget(view: ProofView, budget: int) -> tuple[ProofView, int]:
    """The view with as many modules and steps as the budget allows, and the rest of the budget."""
    groups = group_by_module(view.proof.steps)
    shown: list[GroupView] = []
    for i, group in enumerate(groups):
        budget -= GROUP_COST + len(group.module)
        if budget < 0:
            rest = groups[i:]
            steps = sum(len(g.steps) * g.repetitions for g in rest)
            view = replace(view, hidden_steps=steps, hidden_modules=sum(g.repetitions for g in rest))
            break
        kept = 0
        for numbered in group.steps:
            budget -= _cost(numbered.step)
            if budget < 0:
                break
            kept += 1
        shown.append(GroupView(group, kept))
    return replace(view, groups=tuple(shown)), max(budget, 0)


def _cost(step: ProofStep) -> int:
    parts = (step.operator, step.lemma, step.fact, step.source)
    return STEP_COST + sum(len(html.escape(part).encode()) for part in parts)
