"""Proofs of laws for every number of tokens and rows, and every value of the inputs that both runs share.

The subject is recorded with open sizes, and the law's open statement is proved on the recordings. Each recording is
compared with eager calls at several lengths before anything is claimed of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from torch.fx import Node

from orderproof.auditing.explain.entries import named_place, operator_name, source_of
from orderproof.auditing.record.assumptions import TWIN_ASSUMPTION
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.length_ranges import Coverage, covered_lengths, have_lengths_in_common
from orderproof.auditing.record.open_calls import OpenCalls, Proofs
from orderproof.auditing.record.open_inputs import NO_TOKENS, NoTheorem
from orderproof.errors import INTERNAL_ERROR, CaptureError, first_line
from orderproof.laws import ProvedLaw
from orderproof.logic.solver import Solver
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.records.audit import OPEN_CALL_ASSUMPTION, SEPARATE_INPUTS_ASSUMPTION, Finding, Theorem
from orderproof.theorems.statement import FIXED, REAL_TOKENS, Equivariance, Statement

EVERY_DEPTH_ASSUMPTION = (
    "for other numbers of layers: each has the code of a recorded one, and the code around them does not depend on "
    "their number"
)
MASK_ASSUMPTION = (
    "an attention mask has one value for each row and token, 0 or 1 in int64, or a boolean where the argument takes "
    "booleans only"
)


def prove_theorems(calls: OpenCalls, law: ProvedLaw, call_mode: str) -> dict[str, Theorem]:
    """The theorem about each output of a call mode. Raises `NoTheorem`."""
    statement = calls.statement(law, call_mode)
    found = calls.proofs(law, call_mode)
    first = found[0][1]
    held = [f"input_{k}" for k, role in enumerate(calls.roles(call_mode)) if role == FIXED]
    same = [f"the same in both runs: {', '.join(held)}"] if held else []
    same += [SEPARATE_INPUTS_ASSUMPTION] if len(calls.roles(call_mode)) > 1 else []
    same += [calls.inputs.subject.mode] if calls.inputs.subject.mode else []
    same += [MASK_ASSUMPTION] if REAL_TOKENS.keys() & {*calls.roles(call_mode)} else []
    theorems = {name: join_theorem(name, found, statement, calls.solver) for name in first}
    if not calls.open_length:
        of_rows = {"open_length": False, "recorded_shapes": calls.inputs.shapes(call_mode)}
        theorems = {name: theorem.model_copy(update=of_rows) for name, theorem in theorems.items()}
    return {
        name: theorem.model_copy(update={"assumptions": (*theorem.assumptions, *same)}) if theorem.proved else theorem
        for name, theorem in theorems.items()
    }


def with_theorem(context: AuditContext, law: ProvedLaw, call_mode: str, finding: Finding) -> Finding:
    """The finding with what is proved for every length, if it is proved at the recorded one."""
    if finding.verdict != "proved":
        return finding
    calls = context.open_calls
    theorems: list[Theorem] = []
    modes = [call_mode] if call_mode != DEFAULT_SETTING else [DEFAULT_SETTING, context.padded_mode]
    for mode in modes:
        if theorems and not calls.may_widen(mode):
            break
        theorems.append(_theorem(context, calls, law, mode, finding.output))
    chosen = theorems[0]
    if len(theorems) == 2 and chosen.proved and _covers_masks(theorems[1]):
        chosen = _with_and_without_mask(*theorems)
        if chosen.conditions and not _have_lengths_in_common(calls, law, modes, finding.output):
            chosen = theorems[0]
    if not chosen.proved and law.replaces_whole_rows and call_mode == DEFAULT_SETTING:
        of_rows = _theorem(context, context.open_rows, law, call_mode, finding.output)
        if chosen.reason == NO_TOKENS:
            chosen = of_rows
        elif of_rows.proved:
            chosen = of_rows.model_copy(update={"reason": chosen.reason})
    return finding.model_copy(update={"theorem": chosen})


def _covers_masks(masked: Theorem) -> bool:
    """True if a theorem about calls with a mask widens that without one.

    Where parts of the model are replaced, the replaced ones may keep a mask that the model drops: runs with several
    masks are compared with a theorem of its own.
    """
    return masked.proved and bool(masked.covers) and not masked.is_of_replaced_parts


def theorem_of_the_program(
    context: AuditContext, calls: OpenCalls, call_mode: str, proved: Callable[[], Theorem]
) -> Theorem:
    """The theorem of `proved`, if the recordings of the call mode agree with eager calls; else why there is none.

    A recording may fill the caches of the code that it runs, and then differ from a call: it is made once more.
    """
    runnable = context.runnable
    compared = calls if runnable is context else runnable.open_calls_of(calls.open_length)
    while True:
        theorem, differs = _compared_theorem(calls, compared, call_mode, proved)
        if not differs or not compared.may_record_again(call_mode):
            return theorem
        calls.forget(call_mode)
        compared.forget(call_mode)


def _compared_theorem(
    calls: OpenCalls, compared: OpenCalls, call_mode: str, proved: Callable[[], Theorem]
) -> tuple[Theorem, bool]:
    """The theorem, if the recordings agree with eager calls, and True if they do not.

    Of a model without weights, those of its tiny twin are compared.
    """
    try:
        theorem = proved()
        if theorem.proved and (wrong := compared.disagreement(call_mode)):
            return without_theorem(f"the open recording is not the program that runs: {wrong}"), True
    except (NoTheorem, CaptureError) as error:
        theorem = without_theorem(str(error))
    except Exception as error:  # noqa: BLE001 - the proof at the recorded length stays
        theorem = without_theorem(f"{INTERNAL_ERROR}{first_line(error)}")
    if theorem.proved and compared is not calls:
        theorem = theorem.model_copy(update={"assumptions": (*theorem.assumptions, TWIN_ASSUMPTION)})
    return theorem, False


def _theorem(context: AuditContext, calls: OpenCalls, law: ProvedLaw, call_mode: str, output: str) -> Theorem:
    """The theorem about one output of a call mode; why there is none."""

    def proved() -> Theorem:
        theorem = prove_theorems(calls, law, call_mode).get(output) or without_theorem("it has no output of this name")
        if theorem.proved and not calls.has_axes(call_mode, output, context.output_axes.get(output)):
            theorem = without_theorem("with open sizes the output has other axes than those that are stated")
        return theorem

    return theorem_of_the_program(context, calls, call_mode, proved)


def _with_and_without_mask(without: Theorem, masked: Theorem) -> Theorem:
    """One theorem for the calls without and with a mask: for the lengths and sizes at which both hold."""
    ends = [t.greatest_length for t in (without, masked) if t.greatest_length is not None]
    least = max(without.least_length, masked.least_length)
    every_depth = without.every_depth and masked.every_depth
    assumptions = dict.fromkeys([*without.assumptions, *masked.assumptions])
    if not every_depth:
        assumptions.pop(EVERY_DEPTH_ASSUMPTION, None)
    if ends and min(ends) < least:
        return without
    return masked.model_copy(
        update={
            "covers": ("no attention mask", *masked.covers),
            "least_length": least,
            "greatest_length": min(ends, default=None),
            "every_depth": every_depth,
            "conditions": tuple(dict.fromkeys([*without.conditions, *masked.conditions])),
            "assumptions": tuple(assumptions),
        }
    )


def _have_lengths_in_common(calls: OpenCalls, law: ProvedLaw, modes: Sequence[str], output: str) -> bool:
    """True if some length fulfils the conditions of the theorems of all call modes."""
    covered = [proved_lengths(output, calls.proofs(law, mode), calls.solver) for mode in modes]
    return have_lengths_in_common(covered, calls.solver)


def without_theorem(reason: str) -> Theorem:
    """That nothing is proved for every length, and why."""
    return Theorem(proved=False, reason=reason)


def with_unfinished_theorems(finding: Finding, reason: str) -> Finding:
    """The finding, where no time was left to prove it for every length."""
    done, theorem = finding.completion, without_theorem(reason)
    if finding.verdict == "proved":
        return finding.model_copy(update={"theorem": theorem})
    if done is not None and done.verdict == "proved":
        return finding.model_copy(update={"completion": done.model_copy(update={"theorem": theorem})})
    return finding


def proved_lengths(name: str, found: Proofs, solver: Solver) -> Coverage:
    """The lengths that a theorem about an output covers."""
    return covered_lengths([piece for piece, own in found if name in own and own[name].proved], solver)


def join_theorem(name: str, found: Proofs, statement: Statement | Equivariance, solver: Solver) -> Theorem:
    """The theorem about one output from the results for adjoining ranges of lengths."""
    result = found[0][1][name]
    if not result.proved:
        where = "" if result.node is None else f"{named_place(result.node)}: "
        return without_theorem(f"{where}{result.reason}")
    covered = proved_lengths(name, found, solver)
    pieces = covered.pieces
    results = [own[name] for piece, own in found if any(piece is one for one in pieces)]
    assumptions = [text for piece in pieces for text in piece.assumptions]
    assumptions += [text for one in results for text in one.assumptions]
    every_depth = all(one.every_depth for one in results)
    assumptions += [EVERY_DEPTH_ASSUMPTION] if every_depth else []
    return Theorem(
        proved=True, least_length=covered.least, greatest_length=covered.greatest, every_depth=every_depth,
        covers=statement.covers,
        conditions=tuple(map(str, covered.conditions)),
        assumptions=(OPEN_CALL_ASSUMPTION, *dict.fromkeys(assumptions)),
    )  # fmt: skip


def with_open_entry_map(context: AuditContext, law: ProvedLaw, finding: Finding) -> Finding:
    """The finding with the theorem that its entry map is complete, if it is complete at the recorded length."""
    done = finding.completion
    if done is None or done.verdict != "proved" or finding.call_mode:
        return finding
    calls = context.open_calls
    theorem = theorem_of_the_program(context, calls, DEFAULT_SETTING, lambda: _completeness(calls, law, finding))
    return finding.model_copy(update={"completion": done.model_copy(update={"theorem": theorem})})


def _completeness(calls: OpenCalls, law: ProvedLaw, finding: Finding) -> Theorem:
    statement = calls.statement(law, DEFAULT_SETTING)
    if not isinstance(statement, Equivariance):
        raise NoTheorem("the law is not that tokens are permuted")
    maps, proofs = calls.entry_maps(DEFAULT_SETTING), calls.map_proofs(DEFAULT_SETTING)
    if finding.output not in proofs[0][1]:
        raise NoTheorem("it has no output of this name")
    theorem = join_theorem(finding.output, proofs, statement, calls.solver)
    if not theorem.proved:
        return theorem
    covered = proved_lengths(finding.output, proofs, calls.solver).pieces
    entries = [
        n for piece, found in maps if any(piece is one for one in covered) for n in found[finding.output].entries
    ]
    more = _places(entries) - {entry.source or entry.operator for entry in finding.entries}
    if more:
        return without_theorem(f"at another length order enters at {', '.join(sorted(more))} too")
    return theorem


def _places(nodes: Iterable[Node]) -> set[str]:
    return {source_of(node)[0] or operator_name(node) for node in nodes}
