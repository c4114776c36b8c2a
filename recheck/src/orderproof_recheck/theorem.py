"""The check of a certificate of a theorem: a law for every length, mask and weight, and often every depth.

{"certificate": 4, "kind": "theorem", "law", "code", "output", "subject",
"claim": {"least_length", "greatest_length", "every_depth", "covers", "conditions", "sentence"},
"assumptions": [text, ...],
"calls": [{"shared": [role, ...],
"ranges": [{"least_length", "greatest_length", "conditions", "least_mask" if it is stated,
"recordings": [{"inputs": [[node, role], ...], "conditions", "questions": [[node, answer]],
"asked": [step, ...], "uniform", "steps": [step, ...],
"output": {"node", "row", "token"}, "depth"}, ...]}, ...]}, ...],
"digest": SHA-256 of everything else}

A recording whose answers cannot be has no steps and no output.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orderproof_recheck.assumptions import DEPTH_ASSUMPTION, REAL_NUMBERS
from orderproof_recheck.certificate_file import KIND, VERSION
from orderproof_recheck.conditions import can_be_fulfilled
from orderproof_recheck.depth import check_depth
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.logic.decision import Decision
from orderproof_recheck.logic.formulas import FALSE, Formula, at_most, every, some
from orderproof_recheck.logic.notation import read_formula, require, text
from orderproof_recheck.mask_sizes import stated_masks
from orderproof_recheck.permuted.ends import check_moved_depth
from orderproof_recheck.permuted.moved_fact import MovedRecording
from orderproof_recheck.permuted.recording import check_moved_recording
from orderproof_recheck.recording import Range, Recording, check_recording
from orderproof_recheck.result import RecheckResult
from orderproof_recheck.statements import BATCH, LEAST_SIZE, TOKENS, Statement, find_statement

FIELDS = {"certificate", "kind", "law", "code", "output", "subject", "claim", "assumptions", "calls", "digest"}
RECORDING_FIELDS = {"inputs", "conditions", "questions", "asked", "uniform", "steps", "output", "depth"}
MOVED_FIELDS = {"inputs", "conditions", "questions", "constants", "everywhere", "entries", "steps", "output", "depth"}
MAX_RECORDINGS = 64
NO_LENGTH = "no length fulfils the conditions, so that nothing is claimed"


@dataclass
class _Found:
    """The claim that the calls of a certificate prove together."""

    open_length: bool = True  # the inputs have an open number of tokens
    least: int = LEAST_SIZE
    greatest: int | None = None
    every_depth: bool = True
    covers: tuple[str, ...] = ()
    conditions: tuple[Formula, ...] = ()
    steps: int = 0
    moves: tuple[int, ...] | None = None  # dimensions of the output along which it moves with the tokens
    entries: tuple[str, ...] = ()  # steps at which order is taken out
    premises: tuple[str, ...] = ()


def digest_of(certificate: Mapping[str, Any]) -> str:
    """SHA-256 of a certificate without its digest."""
    content = {key: value for key, value in certificate.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check_theorem(certificate: dict[str, Any], *, fill: bool = False) -> RecheckResult:
    """Check every step of a certificate of a theorem. Raises `CertificateError`.

    Args:
        certificate: The certificate.
        fill: Write the obligations, the claim and the digest instead of comparing them: for who makes a certificate.

    """
    try:
        return _checked(certificate, fill=fill)
    except RecursionError:
        raise CertificateError("expected a certificate whose proof holds: it is nested too deeply") from None
    except (CertificateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise CertificateError(f"expected a certificate whose proof holds: {str(error)[:600]}") from error


def _checked(certificate: dict[str, Any], *, fill: bool) -> RecheckResult:
    if not fill:
        require(set(certificate) == FIELDS, "it has other fields")
        require(certificate["digest"] == digest_of(certificate), "its digest is not that of its text")
    assumptions = certificate["assumptions"]
    require(isinstance(assumptions, list) and all(isinstance(a, str) for a in assumptions), "expected assumptions")
    require(any(a.startswith(REAL_NUMBERS) for a in assumptions), "it does not say that it is about real numbers")
    decision, found = Decision(), _Found()
    calls = certificate["calls"]
    shared = [tuple(call["shared"]) for call in calls]
    require(calls and len(set(shared)) == len(calls), "it has no call, or one several times")
    for call, roles in zip(calls, shared, strict=True):
        _check_call(certificate, call, roles, found, decision, fill=fill)
    if len(calls) > 1:
        require(shared[0] == () and len(calls) == 2, "its calls are not one without and one with a mask")
        found.covers = ("no attention mask", *found.covers)
    stated = not found.every_depth or DEPTH_ASSUMPTION in assumptions
    require(stated, f"it needs the assumption: {DEPTH_ASSUMPTION}")
    claim = _claim(certificate["law"], found)
    if fill:
        certificate["claim"] = claim
        certificate["digest"] = digest_of(certificate)
    require(certificate["claim"] == claim, "its claim is not what its calls prove")
    require(certificate["certificate"] == VERSION and certificate["kind"] == KIND, "its version is another")
    return RecheckResult(
        law=str(certificate["law"]),
        output=str(certificate["output"]),
        subject=str(certificate["subject"]),
        steps=found.steps,
        assumptions=tuple(assumptions),
        premises=found.premises,
        theorem=claim["sentence"],
        obligations=decision.asked,
    )


def _check_call(
    certificate: Mapping[str, Any], call: Mapping[str, Any], shared: tuple[str, ...], found: _Found,
    decision: Decision, *, fill: bool,
) -> None:  # fmt: skip
    require(set(call) == {"shared", "ranges"}, "a call has other fields")
    statement = find_statement(certificate["law"], certificate["code"], shared)
    ranges, wholes = sorted(call["ranges"], key=range_order), []
    require(ranges and ranges == call["ranges"], "the ranges of lengths are not in order")
    for one in ranges:
        fields = {"least_length", "greatest_length", "conditions", "recordings"}
        fits = set(one) - {"least_mask"} == fields and type(one["least_length"]) is int
        require(fits, "a range of lengths has other fields")
        end = one["greatest_length"]
        require(one["least_length"] >= LEAST_SIZE, "a range begins before 2 tokens")
        require(end is None or (type(end) is int and end >= one["least_length"]), "a range of lengths is empty")
        conditions = tuple(map(read_formula, one["conditions"]))
        sizes = BATCH.variables | TOKENS.variables  # an index or a bound of a law would stand for another at each use
        require(all(c.variables <= sizes for c in conditions), "a condition of a range is not about its sizes")
        require(can_be_fulfilled(one["least_length"], end, conditions), NO_LENGTH)
        whole = Range(
            statement, one["least_length"], end, conditions, frozenset(certificate["assumptions"]), decision, fill
        )
        require(not decision.implies(every(*whole.premises), FALSE), NO_LENGTH)  # which also reads functions
        with stated_masks(one.get("least_mask")):
            _check_range(one["recordings"], whole, shared, found)
        wholes.append(whole)
    greatest = None if any(w.greatest is None for w in wholes) else max(w.greatest or 0 for w in wholes)
    if not _cover(wholes, wholes[0].least, greatest, decision):
        pairs = itertools.pairwise(wholes)
        adjoin = all(one.greatest is not None and after.least == one.greatest + 1 for one, after in pairs)
        require(adjoin, "the ranges of lengths leave lengths out")
        conditions = tuple(dict.fromkeys(c for whole in wholes for c in whole.conditions))
        # Those of one range are stated of all of them, and must leave lengths of each.
        require(all(can_be_fulfilled(one.least, one.greatest, conditions) for one in wholes), NO_LENGTH)
        found.conditions = tuple(dict.fromkeys([*found.conditions, *conditions]))
    ends = [e for e in (found.greatest, greatest) if e is not None]
    found.least, found.greatest = max(found.least, wholes[0].least), min(ends, default=None)
    require(found.greatest is None or found.least <= found.greatest, "its calls have no length in common")
    require(can_be_fulfilled(found.least, found.greatest, found.conditions), NO_LENGTH)
    found.covers = (*found.covers, *statement.covers)


def range_order(one: Mapping[str, Any]) -> tuple[int, bool, int]:
    """The order of the ranges of lengths in a call: by their first and their last length."""
    end = one["greatest_length"]
    return one["least_length"], end is None, end or 0


def _cover(ranges: Sequence[Range], least: int, greatest: int | None, decision: Decision) -> bool:
    """True if each length between these, with any number of rows, is in a range and fulfils its conditions."""

    def between(first: int, last: int | None) -> tuple[Formula, ...]:
        return at_most(first, TOKENS), *([] if last is None else [at_most(TOKENS, last)])

    whole = every(at_most(LEAST_SIZE, BATCH), *between(least, greatest))
    return decision.implies(whole, some(*(every(*between(r.least, r.greatest), *r.conditions) for r in ranges)))


def _check_range(recordings: Sequence[dict[str, Any]], whole: Range, shared: tuple[str, ...], found: _Found) -> None:
    require(0 < len(recordings) <= MAX_RECORDINGS, "a range of lengths has no recording, or too many")
    answers = [[answer for _, answer in one["questions"]] for one in recordings]
    require(_covers_all(answers), "the recordings do not answer every question both ways")
    proved = 0
    for one in recordings:
        cut_off = whole.statement.permuted and set(one) == RECORDING_FIELDS  # a branch that no input takes
        fields = MOVED_FIELDS if whole.statement.permuted and not cut_off else RECORDING_FIELDS
        require(set(one) == fields, "a recording has other fields")
        found.open_length &= _check_roles(one["inputs"], shared)
        fixed = ", ".join(node for node, role in one["inputs"] if role == "fixed")
        stated = not fixed or f"the same in both runs: {fixed}" in whole.assumptions
        require(stated, "an input is the same in both runs, and the assumptions do not say so")
        if cut_off:
            nothing_agrees = replace(whole, statement=Statement(FALSE, FALSE))
            require(check_recording(one, nothing_agrees) is None, "a recording without an output is of a branch")
            continue
        if whole.statement.permuted:
            _add(found, check_moved_recording(one, whole))
            proved += 1
            continue
        recording = check_recording(one, whole)
        if recording is None:
            continue
        proved += 1
        found.steps += len(recording.facts)
        _check_depth(recording, found, fill=whole.fill)
    require(proved, "no recording of a range of lengths is proved")


def _add(found: _Found, recording: MovedRecording) -> None:
    """Add what a recording with permuted tokens proves."""
    found.steps += len(recording.facts)
    moves = tuple(recording.data["output"]["moves"])
    require(found.moves in (None, moves), "the output moves along other dimensions in another recording")
    found.moves = moves
    found.entries = tuple(dict.fromkeys([*found.entries, *recording.entries]))
    found.premises = tuple(dict.fromkeys([*found.premises, *recording.premises]))
    if recording.data["depth"] is None:
        found.every_depth = False
    else:
        check_moved_depth(recording.data["depth"], recording)


def _check_depth(recording: Recording, found: _Found, *, fill: bool) -> None:
    depth = recording.data["depth"]
    if depth is None:
        found.every_depth = False
    else:
        check_depth(depth, recording, fill=fill)


def _check_roles(inputs: Sequence[Sequence[str]], shared: tuple[str, ...]) -> bool:
    """Some inputs have tokens, or rows only, and the shared ones are those of the statement; True for tokens."""
    roles = [role for _, role in inputs]
    require(len({node for node, _ in inputs}) == len(inputs), "an input has several roles")
    open_length = "rows" not in roles
    require(("tokens" in roles) is open_length, "no input has tokens or rows, or some have both")
    rest = [role for role in roles if role not in ("tokens", "rows", "fixed")]
    require(rest == list(shared), "the shared inputs are not those of the statement")
    require(open_length or not shared, "inputs with rows only, and shared ones with tokens")
    return open_length


def _covers_all(answers: Sequence[Sequence[bool]]) -> bool:
    """True if sequences of answers are the paths of a tree in which every question is answered both ways."""
    if any(not one for one in answers):
        return len(answers) == 1
    sides = [[one[1:] for one in answers if one[0] is answer] for answer in (False, True)]
    return all(side and _covers_all(side) for side in sides)


def _claim(law: str, found: _Found) -> dict[str, Any]:
    conditions = [text(c) for c in found.conditions]
    end = "on" if found.greatest is None else f"to {found.greatest}"
    lengths = f"every length from {found.least} {end}" if found.open_length else "inputs of the recorded size"
    parts = [lengths, "every batch size of at least 2", *found.covers]
    parts += ["every number of layers"] if found.every_depth else []
    where = f", where {' and '.join(conditions)}" if conditions else ""
    claim = {
        "least_length": found.least,
        "greatest_length": found.greatest,
        "every_depth": found.every_depth,
        "covers": list(found.covers),
        "conditions": conditions,
        "sentence": f"{law}: for {', '.join(parts)} and every weight{where}",
    }
    if not found.open_length:
        claim["open_length"] = False
    if found.moves is None:
        return claim
    dims = ", ".join(map(str, found.moves))
    result = f"the output moves with the tokens along dimension {dims}" if dims else "the output is the same"
    if found.entries:
        result += f", if order is taken out at {len(found.entries)} steps, and so enters at no other"
    return {
        **claim,
        "moves": list(found.moves),
        "entries": list(found.entries),
        "sentence": f"{claim['sentence']}, {result}",
    }
