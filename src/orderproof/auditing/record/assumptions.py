"""Assumptions of proofs about recorded calls, in words."""

from __future__ import annotations

from collections.abc import Sequence

TWIN_ASSUMPTION = "the recorded branch is the one that runs: checked on a tiny twin, not at this size"
SHOWN_NAMES = 4


def change_assumptions(changed: Sequence[str]) -> list[str]:
    """The assumption of a proof about a call that changes these parts of the state; empty if it changes none."""
    return [f"of one call: the call changes {first_names(changed)}"] if changed else []


def first_names(names: Sequence[str]) -> str:
    """The first few names."""
    return ", ".join(names[:SHOWN_NAMES])
