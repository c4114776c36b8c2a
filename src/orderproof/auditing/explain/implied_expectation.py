"""The expectation that the masks or the other calls of a model suggest, and why: also of one that is stated."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.auditing.explain.findings import is_met
from orderproof.auditing.explain.mask_view import MaskView
from orderproof.laws import ProvedLaw
from orderproof.records.audit import Expectation, Finding

KIND_OF_UNKNOWN_MODELS = "module"  # a user's own module, of which no configuration says what it is


def with_implied_expectation(
    finding: Finding, law: ProvedLaw, masks: Sequence[MaskView | None], *, unstated: bool
) -> Finding:
    """The finding of a violated law, with the result that the masks at the places of the violation suggest.

    ``masks`` has the mask of every such place, None where there is none. One place without a mask, or with a mask of
    another form, shows that the model is not what the others suggest. ``unstated``: nothing is known of the model. The
    masks then decide what is expected; else they only explain it.
    """
    shared = [mask for mask in masks if mask is not None and mask.is_shared]
    suggested = {law.expectation_from_mask(mask.visible) for mask in shared}
    if len(suggested) != 1 or len(shared) < len(masks):
        return finding
    ((expected, form),) = suggested
    place = f" of {shared[0].place.source}" if shared[0].place.source else ""
    return _expected(finding, expected, f"the mask{place} {form}" if form else "", unstated=unstated)


def expected_as_in_plain_call(finding: Finding, plain: Sequence[Finding], *, unstated: bool) -> Finding:
    """The finding of a call mode, expected to hold if nothing is expected of it and the plain call is proved."""
    if any(f.output == finding.output and f.verdict == "proved" and not f.vacuous for f in plain):
        because = "calls without an attention mask are proved to satisfy it"
        return expected_as_in_proved_call(finding, because, unstated=unstated)
    return finding


def expected_as_in_proved_call(finding: Finding, because: str, *, unstated: bool) -> Finding:
    """The finding of a violated law, expected to hold because another call is proved to satisfy it."""
    return _expected(finding, "holds", because, unstated=unstated)


def _expected(finding: Finding, expected: Expectation, because: str, *, unstated: bool) -> Finding:
    """The finding of a violated law with what is expected of it and why; a reason for what is stated explains it."""
    if finding.verdict != "refuted":
        return finding
    if finding.expected == "any" and unstated:
        how = f"; if this is intended, state it: --as encoder or --expect {finding.law}=fails" if because else ""
        met = is_met(finding.verdict, expected)
        update = {"expected": expected, "expectation_met": met, "expected_because": f"{because}{how}"}
        return finding.model_copy(update=update)
    if finding.expected == expected and not finding.expected_because:
        return finding.model_copy(update={"expected_because": because})
    return finding
