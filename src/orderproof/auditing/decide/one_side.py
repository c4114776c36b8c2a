"""Outputs without tokens that obey a law with pads on one side: the first or the last token is right for that side."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from orderproof.auditing.record.context import AuditContext
from orderproof.batch_layout import ONE_SIDE
from orderproof.laws import ProvedLaw
from orderproof.records.audit import Finding

ProveInMode = Callable[[str], list[Finding]]


def possible_call_modes(context: AuditContext, law: ProvedLaw) -> tuple[str, ...]:
    """The call modes of a law in which a subject can be called; at least one, which says why it cannot."""
    for modes in (law.call_modes, law.call_modes_of_one_side):
        if possible := tuple(mode for mode in modes if not isinstance(context.in_call_mode(mode), str)):
            return possible if modes is law.call_modes else possible[:1]
    return law.call_modes[:1]


def applies(context: AuditContext, law: ProvedLaw) -> bool:
    """False if a subject cannot be called as a law needs, so that no call is made for it."""
    if context.subject.whole_rows_reason and not law.replaces_whole_rows:
        return False
    return any(not isinstance(context.in_call_mode(mode), str) for mode in possible_call_modes(context, law))


def proved_on_one_side(
    context: AuditContext, law: ProvedLaw, finding: Finding, prove: ProveInMode, *, sides: int = len(ONE_SIDE)
) -> Finding:
    """The finding, or that of pads on one side if it is proved there and one side suffices for the output.

    The first of at most ``sides`` that are proved is taken; the note names them all.
    """
    if finding.verdict not in ("refuted", "undecided") or not law.one_call_mode_suffices(
        context.dims_for(law, finding.output) if finding.output and finding.output in context.output_dims else ()
    ):
        return finding
    proved: dict[str, Finding] = {}
    for mode in law.call_modes_of_one_side:
        if len(proved) < sides and mode != finding.call_mode and not isinstance(context.in_call_mode(mode), str):
            found = next((f for f in prove(mode) if f.output == finding.output and f.verdict == "proved"), None)
            proved.update({} if found is None else {mode: found})
    if not proved:
        return finding
    context.note(
        f"{law.code} {law.name}: {finding.output or 'the output'} has no tokens and {_sides(finding, proved, sides)}"
    )
    return next(iter(proved.values()))


def _sides(finding: Finding, proved: Iterable[str], tried: int) -> str:
    """On which sides of its rows an output ignores pads, and where they should be."""
    reads = "reads pads" if finding.verdict == "refuted" else "is not proved to ignore pads"
    side, *others = (mode.removeprefix("padded ") for mode in proved)
    if others:
        return (
            f"ignores pads on one side of all rows, at {finding.scope.length} tokens; it {reads} of a batch with both "
            "sides: pad all rows on the same side"
        )
    other = "on the left" if side == "right" else "on the right"
    where = other if tried > 1 else "of a batch with both sides"
    return f"ignores pads on the {side}; it {reads} {where}: pad its rows on the {side}"
