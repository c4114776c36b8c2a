"""Runs of a proved law in calls of which nothing is proved: with other rows, attention masks and lengths.

A proof without a theorem is about one number of rows, one mask and one length, and a program may branch on each. Runs
prove nothing: the scope of the finding names those that agree. A violation among them is decided by the audit of that
call. A theorem is run at a few of its own lengths as well, so that a wrong rule of the prover does not go unnoticed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from orderproof.auditing.explain.findings import undecide
from orderproof.auditing.explain.implied_expectation import expected_as_in_proved_call
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.output_axes import token_layouts
from orderproof.auditing.search.call_variants import (
    OtherCall,
    calls_with_other_lengths,
    calls_with_other_masks,
    calls_with_other_rows,
)
from orderproof.auditing.search.witness import COMPARED_CHANGES, FEWER_CHANGES, LONG, WitnessSearch
from orderproof.laws import ProvedLaw, TokenDim
from orderproof.laws.proved.proved_law import evenly_spaced
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.recording.restored_state import changes_state, restored_state
from orderproof.records.audit import Finding

MAX_SECONDS = 20.0  # after which no further calls of a finding are compared: a law has a time limit
_VARIANTS = {
    "compared_masks": calls_with_other_masks,
    "compared_rows": calls_with_other_rows,  # after masks: a single row has its pads at other places
    "compared_lengths": calls_with_other_lengths,
}
LOW_RANK_NOTE = (
    "a large model: where a law is proved for all weights, other calls are compared with matrices of low rank in place "
    "of its own, and with its own if they differ"
)
STATE_CHANGES = "change the state of the module, so that equal inputs give other outputs"

ProveCall = Callable[[AuditContext, str], list[Finding]]  # the findings in a context and a call mode


def compare_other_calls(
    context: AuditContext, law: ProvedLaw, finding: Finding, prove_call: ProveCall, *, expects_same: bool
) -> Finding:
    """A proved finding with the calls that were compared, or the finding of a call that violates the law.

    ``expects_same``: neither the user nor the kind of the model states what is expected, so the law is expected to
    hold in every call.
    """
    context = context.for_law(law)  # of whole rows: the image, not its patches, which cannot be given
    starts_at_patches = context.subject.patch_embedding_path is not None
    if finding.verdict != "proved" or not finding.expectation_met or starts_at_patches:
        return finding
    ends, module, found = time.monotonic() + MAX_SECONDS, context.runnable.subject.module, finding
    with restored_state(module, context.first_state):
        for name, variants in _VARIANTS.items():
            agreeing: list[int | str] = []
            for call in variants(context, law, finding):
                agrees = _agrees(context, law, finding, call) if time.monotonic() < ends else None
                if agrees == "state":
                    context.free_float64_copies()  # whose state was changed too
                    return undecide(found, f"{call.proved}, and calls {call.words} {STATE_CHANGES}")
                if agrees is False and _has_other_axes(context, call, finding.output):
                    continue
                if agrees is False:
                    proved = prove_call(call.context, call.call_mode)
                    return _decided(found, proved, call, expects_same=expects_same)
                agreeing += [call.value] if agrees and not call.is_covered else []
            scope = found.scope.model_copy(update={name: tuple(dict.fromkeys(agreeing))})
            found = found.model_copy(update={"scope": scope})
    return found


def _has_other_axes(context: AuditContext, call: OtherCall, output: str) -> bool:
    """True if an output has not as many axes as in the recorded call: `squeeze` removes that of a single row."""
    return len(call.context.shapes.get(output, ())) != len(context.shapes[output])


def _agrees(context: AuditContext, law: ProvedLaw, finding: Finding, call: OtherCall) -> bool | Literal["state"] | None:
    """True if runs of a call agree with the law, None if none can be made; "state" if only a kept state differs."""
    recorded, own = context.in_call_mode(finding.call_mode or DEFAULT_SETTING), law.in_call_mode(call.call_mode)
    if isinstance(recorded, str):
        return None
    dims = recorded.for_law(own).dims_for(own, finding.output)
    of_one_call = recorded.export_failure is None and changes_state(recorded.captured)
    parts = own.subrelations(call.runs.runnable.batch_size)
    agrees = None
    for part in (parts[k] for k in evenly_spaced(len(parts), COMPARED_CHANGES)):
        replaced = finding.scope.weights == "all" and not of_one_call
        found = _agrees_in_a_layout(
            call, part, finding.output, dims, restores_state=of_one_call, replaces_weights=replaced
        )
        if (
            found is False
            and not of_one_call
            and _agrees_in_a_layout(call, part, finding.output, dims, restores_state=True) is not False
        ):
            return "state"
        if found is not None:
            agrees = found
        if agrees is False:
            break
    return agrees


def _agrees_in_a_layout(
    call: OtherCall, law: ProvedLaw, output: str, dims: tuple[TokenDim, ...], *, restores_state: bool,
    replaces_weights: bool = False,
) -> bool | None:  # fmt: skip
    """The same in a layout of the output: entries that are no tokens may precede or follow them.

    ``replaces_weights``: of a large model with matrices of low rank, unless runs with these differ.
    """
    fewer = call.is_covered or (call.length or 0) > LONG
    agrees, count = None, FEWER_CHANGES if fewer else COMPARED_CHANGES
    for layout in token_layouts(dims):
        search = WitnessSearch(call.runs, law, output, layout, None)
        search = search.with_restored_state() if restores_state else search
        every = call.length is not None and not call.is_covered
        length = call.length or search.context.length
        stand_in = search.stand_in if replaces_weights else None
        if stand_in is not None and stand_in.compare_at(length, count, every=every):
            call.runs.note(LOW_RANK_NOTE)
            return True
        agrees = search.compare_at(length, count, every=every)
        if agrees is not False:
            break
    return agrees


def _decided(finding: Finding, found: list[Finding], call: OtherCall, *, expects_same: bool) -> Finding:
    """The finding of the call that violates a law that is proved in another one."""
    violated = next((f for f in found if f.output == finding.output and f.verdict == "refuted"), None)
    if violated is None or violated.witness is None:
        return undecide(finding, f"{call.proved}, and runs {call.words} violate it")
    if finding.call_mode == violated.call_mode:
        witness = violated.witness.model_copy(update={"onset": f"{call.proved} and violated {call.words}"})
        violated = violated.model_copy(update={"witness": witness})
    return expected_as_in_proved_call(violated, call.proved, unstated=expects_same)
