"""One finding of a law that is several relations between runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orderproof.records.audit import Deviation, Finding, Scope


def combine_relations(findings: Sequence[Finding]) -> Finding:
    """The finding of a law of several relations: proved if each relation is, else the worst of their findings."""
    worst = min(findings, key=lambda f: ("refuted", "undecided", "not_applicable", "proved").index(f.verdict))
    if len(findings) == 1 or worst.verdict != "proved":
        return worst
    reason = worst.reason or f"{len(findings)} relations, each proved separately"
    deviation = Deviation(
        float32=_largest(f.deviation.float32 for f in findings), float64=_largest(f.deviation.float64 for f in findings)
    )
    return worst.model_copy(update={"reason": reason, "deviation": deviation, "scope": _combined_scope(findings)})


def _largest(sizes: Iterable[float | None]) -> float | None:
    return max((size for size in sizes if size is not None), default=None)


def _combined_scope(findings: Sequence[Finding]) -> Scope:
    """The common scope of several proofs, with the assumptions of all of them."""
    scopes = [f.scope for f in findings]
    return scopes[0].model_copy(
        update={
            "weights": "these" if any(s.weights == "these" for s in scopes) else "all",
            "tensors_read": tuple(sorted({name for s in scopes for name in s.tensors_read})),
            "assumptions": tuple(dict.fromkeys(text for s in scopes for text in s.assumptions)),
        }
    )
