"""Graphs whose constants at places where order enters are made the same for every token."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from orderproof.auditing.explain.entries import origin_of
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import walk_graph
from orderproof.diagnosis.uniform_constants import can_be_uniform, make_uniform
from orderproof.errors import UsageError
from orderproof.laws import ProvedLaw, entry_map_law
from orderproof.recording.captured_graph import CapturedGraph, ancestors, module_path


def make_entries_uniform(
    context: AuditContext, law: ProvedLaw, captured: CapturedGraph, patterns: Iterable[str]
) -> CapturedGraph:
    """The graph with the entries that match a pattern made uniform. Raises `UsageError` if none matches."""
    repaired = walk_graph(context, law, captured, repairing=True)
    wanted = list(patterns)
    names = {
        b: (origin_of(b.operand, repaired.constants) if b.operand is not None else "is_causal", module_path(b.node))
        for b in repaired.walk.breaks
        if can_be_uniform(b)
    }
    chosen = [b for b, both in names.items() if any(fnmatch.fnmatch(x, f"*{p}*") for p in wanted for x in both)]
    if not chosen:
        have = "; ".join(sorted({f"{o} in {m or 'the top module'}" for o, m in names.values()})) or "none"
        raise UsageError(
            f"expected --uniform to match an entry of {context.subject.name}; entries are: {have}; "
            f"got {', '.join(wanted)}"
        )
    return make_uniform(captured, chosen)[0]


def with_uniform_positions(context: AuditContext, output: str, *, place: int) -> CapturedGraph | None:
    """The graph with the constants of its entry map set to their values at one token; None if one cannot be set."""
    walked = walk_graph(context, entry_map_law(), context.captured, repairing=True)
    needed = ancestors([context.captured.outputs[output]])
    breaks = [b for b in walked.walk.breaks if b.node in needed]
    if not all(can_be_uniform(b) for b in breaks):
        return None
    return make_uniform(context.captured, breaks, token=place)[0]
