"""What of a proof a page shows: its lines folded by module and, where there are too many, cut with a count."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace

from orderproof.record import Deviation, Finding, Proof, Report, Scope, Step, Verdict
from orderproof.report.fold import Group, fold

LINE_COST = 70  # [bytes] of markup around a line
GROUP_COST = 400  # [bytes] of markup around a module


@dataclass(frozen=True)
class GroupView:
    """A module of a proof, and how many of its lines are shown."""

    group: Group
    shown: int

    @property
    def hidden(self) -> int:
        """How many of its lines are not shown."""
        return len(self.group.lines) - self.shown


@dataclass(frozen=True)
class ProofView:
    """One proof as a page shows it."""

    finding: Finding
    uniform: int  # operands made uniform; 0 for the model as it is
    verdict: Verdict
    scope: Scope
    proof: Proof
    deviation: Deviation
    reason: str
    groups: tuple[GroupView, ...] = ()
    hidden_lines: int = 0  # in modules that are not shown at all
    hidden_modules: int = 0


def proof_views(report: Report, budget: int) -> tuple[ProofView, ...]:
    """Every proof of a report, within a budget [bytes] they share; what one leaves over the next ones get."""
    views = list(_proofs(report))
    filled: list[ProofView] = []
    for i, view in enumerate(views):
        done, left = _fill(view, budget // (len(views) - i))
        budget -= budget // (len(views) - i) - left
        filled.append(done)
    return tuple(filled)


def _proofs(report: Report) -> Iterator[ProofView]:
    for f in report.findings:
        if f.proof:
            yield ProofView(f, 0, f.verdict, f.scope, f.proof, f.deviation, "")
        if f.completion and f.completion.proof:
            c = f.completion
            yield ProofView(f, c.uniform, c.verdict, c.scope, f.completion.proof, c.deviation, c.reason)


def _fill(view: ProofView, budget: int) -> tuple[ProofView, int]:
    """Show modules and lines until the budget is spent; return what is left of it too."""
    groups = fold(view.proof.lines)
    shown: list[GroupView] = []
    for i, group in enumerate(groups):
        budget -= GROUP_COST + len(group.module)
        if budget < 0:
            rest = groups[i:]
            lines = sum(len(g.lines) * g.times for g in rest)
            view = replace(view, hidden_lines=lines, hidden_modules=sum(g.times for g in rest))
            break
        kept = 0
        for line in group.lines:
            budget -= _cost(line.step)
            if budget < 0:
                break
            kept += 1
        shown.append(GroupView(group, kept))
    return replace(view, groups=tuple(shown)), max(budget, 0)


def _cost(step: Step) -> int:
    parts = (step.operator, step.lemma, step.fact, step.source)
    return LINE_COST + sum(len(html.escape(part).encode()) for part in parts)
