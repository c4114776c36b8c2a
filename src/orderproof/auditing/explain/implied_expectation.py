"""The expectation that the masks of a model suggest, where neither the user nor the kind of the model states one."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.auditing.explain.findings import is_met
from orderproof.auditing.explain.mask_view import MaskView
from orderproof.laws import ProvedLaw
from orderproof.records.audit import Finding

KIND_OF_UNKNOWN_MODELS = "module"  # a user's own module, of which no configuration says what it is


def with_implied_expectation(
    finding: Finding, law: ProvedLaw, masks: Sequence[MaskView | None], model_kind: str
) -> Finding:
    """The finding of a violated law, with the result that the masks at the places of the violation suggest.

    ``masks`` has the mask of every such place, None where there is none. One place without a mask, or with a mask of
    another form, shows that the model is not what the others suggest.
    """
    if finding.verdict != "refuted" or finding.expected != "any" or model_kind != KIND_OF_UNKNOWN_MODELS:
        return finding
    shared = [mask for mask in masks if mask is not None and mask.is_shared]
    suggested = {law.expectation_from_mask(mask.visible) for mask in shared}
    if len(suggested) != 1 or len(shared) < len(masks):
        return finding
    ((expected, form),) = suggested
    place = f" of {shared[0].place.source}" if shared[0].place.source else ""
    because = f"the mask{place} {form}" if form else ""
    met = is_met(finding.verdict, expected)
    return finding.model_copy(update={"expected": expected, "expectation_met": met, "expected_because": because})


def expected_as_in_plain_call(finding: Finding, plain: Sequence[Finding]) -> Finding:
    """The finding of a call mode, expected to hold if nothing is expected of it and the plain call is proved."""
    if any(f.output == finding.output and f.verdict == "proved" and not f.vacuous for f in plain):
        return expected_as_in_proved_call(finding, "calls without an attention mask are proved to satisfy it")
    return finding


def expected_as_in_proved_call(finding: Finding, because: str) -> Finding:
    """The finding of a violated law, expected to hold because another call is proved to satisfy it."""
    if finding.expected != "any" or finding.verdict != "refuted":
        return finding
    met = is_met(finding.verdict, "holds")
    return finding.model_copy(update={"expected": "holds", "expectation_met": met, "expected_because": because})
