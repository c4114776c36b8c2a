"""Certificates of theorems: the proofs on the open recordings, written down and checked again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from orderproof.auditing.decide.theorems import proved_lengths, without_theorem
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.length_ranges import Piece
from orderproof.auditing.record.open_calls import OpenCalls
from orderproof.auditing.record.open_inputs import NoTheorem
from orderproof.errors import INTERNAL_ERROR, first_line
from orderproof.laws import ProvedLaw, find_proved_law
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.number_limits import masks_from
from orderproof.records.audit import Finding, Theorem
from orderproof.theorems.branches import NOTHING_AGREES, walk_branch
from orderproof.theorems.certificates.agreement import recording_record
from orderproof.theorems.certificates.equivariance import moved_recording_record
from orderproof.theorems.certificates.notation import formula_data
from orderproof.theorems.statement import Equivariance, Statement
from orderproof_recheck.certificate_file import KIND, VERSION
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem, range_order

TESTED_BRANCHES = 2  # of a recording, by proofs at one length: a mask that hides nothing, and one with pads
NO_MASK = "no attention mask"  # among what a theorem covers: the calls without and with a mask


class NotIncluded(Exception):
    """A theorem has no certificate; the message says why."""


def theorem_certificate(context: AuditContext, finding: Finding) -> dict[str, Any] | None:
    """The certificate of the theorem of a finding, which the recheck accepts; None if it has no theorem.

    Raises `NotIncluded`.
    """
    mode = finding.call_mode or DEFAULT_SETTING
    return _certificate(context, finding, mode, finding.theorem, without_order=False)


def map_certificate(context: AuditContext, finding: Finding) -> dict[str, Any] | None:
    """The certificate that the entry map of a finding is complete for every length; None if that is not proved.

    Raises `NotIncluded`.
    """
    theorem = None if finding.completion is None else finding.completion.theorem
    return _certificate(context, finding, finding.call_mode or DEFAULT_SETTING, theorem, without_order=True)


def with_rechecked_theorems(
    context: AuditContext, call_mode: str, finding: Finding, *, always: bool = False
) -> Finding:
    """The finding without theorems of several recordings, or `always` of any, that the recheck does not accept.

    The proofs at the length of the audit test the rules of the recordings for that length, without a mask and with one.
    No other proof does so for further recordings: a wrong rule would make a wrong theorem.
    """
    theorem, done = finding.theorem, finding.completion
    if theorem is not None:
        checked = _rechecked(context, finding, call_mode, theorem, of_map=False, always=always)
        finding = finding.model_copy(update={"theorem": checked})
    if done is not None and done.theorem is not None:
        found = _rechecked(context, finding, call_mode, done.theorem, of_map=True)
        finding = finding.model_copy(update={"completion": done.model_copy(update={"theorem": found})})
    return finding


def _rechecked(
    context: AuditContext, finding: Finding, call_mode: str, theorem: Theorem, *, of_map: bool, always: bool = False
) -> Theorem:
    if not theorem.proved:
        return theorem
    pieces = context.open_calls_of(theorem.open_length).recorded(call_mode)
    if not always and len(pieces) == 1 and len([g for g in pieces[0].graphs if not g.is_cut_off]) <= TESTED_BRANCHES:
        return theorem
    try:
        _certificate(context, finding, call_mode, theorem, without_order=of_map, as_written=False)
    except NotIncluded as error:
        return without_theorem(f"the proof is not accepted by the recheck: {error}")
    return theorem


def _certificate(
    context: AuditContext, finding: Finding, mode: str, theorem: Theorem | None, *, without_order: bool,
    as_written: bool = True,
) -> dict[str, Any] | None:  # fmt: skip
    """The certificate of a theorem, checked when its obligations are filled in and, if `as_written`, once more."""
    if theorem is None or not theorem.proved:
        return None
    calls = context.open_calls_of(theorem.open_length)
    law = find_proved_law(finding.law)
    modes = [mode, context.padded_mode] if NO_MASK in theorem.covers else [mode]
    try:
        made = certificate_of(calls, law, modes, finding.output, theorem, without_order=without_order)
        check_theorem(made, fill=True)
        if as_written:
            check_theorem(made)
    except NotIncluded:
        raise
    except (CertificateError, NoTheorem) as error:
        raise NotIncluded(str(error)) from None
    except Exception as error:
        raise NotIncluded(f"{INTERNAL_ERROR}{first_line(error)}") from error
    _compare(made["claim"], theorem)
    return made


def certificate_of(
    calls: OpenCalls, law: ProvedLaw, modes: Sequence[str], output: str, theorem: Theorem, *, without_order: bool
) -> dict[str, Any]:
    """The certificate of a theorem about one output, without obligations, claim and digest."""
    return {
        "certificate": VERSION,
        "kind": KIND,
        "law": law.name,
        "code": law.code,
        "output": output,
        "subject": calls.subject.part_and_name,
        "claim": {},
        "assumptions": list(theorem.assumptions),
        "calls": [_call_record(calls, law, mode, output, without_order=without_order) for mode in modes],
        "digest": "",
    }


def _call_record(calls: OpenCalls, law: ProvedLaw, mode: str, output: str, *, without_order: bool) -> dict[str, Any]:
    statement, roles = calls.statement(law, mode), calls.roles(mode)
    proofs = calls.map_proofs(mode) if without_order else calls.proofs(law, mode)
    ranges = []
    for piece in proved_lengths(output, proofs, calls.solver).pieces:
        size = next(own[output].least_mask for one, own in proofs if one is piece)
        with nullcontext() if size is None else masks_from(size):
            recordings = _recordings(piece, calls, statement, roles, output, without_order=without_order)
        ranges.append(
            {
                "least_length": piece.least,
                "greatest_length": piece.greatest,
                "conditions": [formula_data(c) for c in piece.others],
                "recordings": recordings,
                **({} if size is None else {"least_mask": size}),
            }
        )
    shared = [role for role in roles if role not in ("tokens", "rows", "fixed")]
    return {"shared": shared, "ranges": sorted(ranges, key=range_order)}


def _recordings(
    piece: Piece, calls: OpenCalls, statement: Statement | Equivariance, roles: Sequence[str], output: str,
    *, without_order: bool,
) -> list[dict[str, Any]]:  # fmt: skip
    moved = isinstance(statement, Equivariance)
    about_answers = statement if isinstance(statement, Statement) else NOTHING_AGREES
    return [
        moved_recording_record(graph, roles, output, calls.solver, without_order=without_order)
        if moved and not graph.is_cut_off
        else recording_record(walk_branch(graph, roles, about_answers, calls.solver), roles, output)
        for graph in piece.graphs
    ]


def _compare(claim: dict[str, Any], theorem: Theorem) -> None:
    """The certificate proves what the report says. Raises `NotIncluded`."""
    reported = {
        "open_length": theorem.open_length,
        "least_length": theorem.least_length,
        "greatest_length": theorem.greatest_length,
        "covers": list(theorem.covers),
    }
    claimed = {"open_length": True, **claim}
    if any(claimed[key] != value for key, value in reported.items()) or (
        theorem.every_depth and not claim["every_depth"]
    ):
        raise NotIncluded(f"it proves another claim than the report: {claim['sentence']}")
