"""The places of a graph at which a law stops following: the entry map, or the leaks with their masks and remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from torch.fx import Node

from orderproof.auditing.explain.entries import Frame, group_entries, named_place
from orderproof.auditing.explain.leaks import find_leaks
from orderproof.auditing.explain.mask_view import MaskView, change_of_line, leaking_mask, mask_picture, table_picture
from orderproof.auditing.explain.remedies import remedy_of_leak
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk
from orderproof.diagnosis.analysis import NOT_DETERMINED
from orderproof.diagnosis.rule import RelationBreak
from orderproof.recording.captured_graph import ancestors
from orderproof.recording.nondeterminism import is_nondeterministic
from orderproof.records.audit import Entry, Picture, Remedy


@dataclass
class ViolatedPlaces:
    """Where a law stops following from the graph, for one output; without a graph there are no places."""

    needed: set[Node] = field(default_factory=set)  # the nodes from which the output is computed
    breaks: list[RelationBreak] = field(default_factory=list)
    entries: tuple[Entry, ...] = ()
    reason: str = ""  # the first place in words
    masks: list[MaskView | None] = field(default_factory=list)  # of each leak
    line: Frame = field(default_factory=Frame)  # of the model's own code, to change
    remedy: Remedy = field(default_factory=lambda: Remedy(text=""))  # of the first leak; empty where the law's serves

    @property
    def first_node(self) -> Node | None:
        """The node of the first place."""
        return self.breaks[0].node if self.breaks else None


def find_violated_places(
    context: AuditContext, strict: LawWalk, repaired: LawWalk | None, output: str
) -> ViolatedPlaces:
    """The places for one output: those of the repairing walk, if the law permutes tokens; else the leaks."""
    law, needed = strict.law, ancestors([strict.captured.outputs[output]])
    if repaired is not None:
        breaks = [b for b in repaired.walk.breaks if b.node in needed]
        places = ViolatedPlaces(needed, breaks)
        places.entries = group_entries(breaks, repaired.constants, partial(_table_picture, repaired, context))
    else:
        leaks = find_leaks(strict, needed, context, pooled=not context.output_dims.get(output))
        breaks = [leak.place for leak in leaks]
        places = ViolatedPlaces(needed, breaks)
        masks = {b: leaking_mask(b, strict.constants, law, context) for b in breaks}
        places.masks = list(masks.values())
        places.entries = group_entries(
            breaks, strict.constants, lambda b: mask_picture(masks[b], law, context.batch_size)
        )
        if breaks:
            places.line, diff = change_of_line(law, breaks[0].node, places.masks[0])
            remedy = remedy_of_leak(law, leaks[0], passed_mask=places.masks[0] is not None)
            places.remedy = remedy.model_copy(update={"diff": diff or remedy.diff})
    if strict.walk.internal_error(needed) is None:
        places.reason = _reason(breaks[0]) if breaks else _random_operator(strict, needed)
    return places


def _random_operator(strict: LawWalk, needed: set[Node]) -> str:
    """The first operator whose result is not determined, with what to do about it; empty if there is none."""
    first = next((node for node in strict.captured.graph.nodes if node in needed and is_nondeterministic(node)), None)
    return "" if first is None else f"{named_place(first)}: {NOT_DETERMINED}"


def _table_picture(done: LawWalk, context: AuditContext, entry: RelationBreak) -> Picture | None:
    if entry.operand is None or not entry.constant:
        return None
    return table_picture(entry.operand, done.constants, entry.dims, context.token_count)


def _reason(first: RelationBreak) -> str:
    return f"{named_place(first.node)}: {first.reason}"
