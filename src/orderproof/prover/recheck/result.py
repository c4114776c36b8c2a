"""The result of an accepted certificate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecheckResult:
    """The claim that an accepted certificate proves, and its assumptions. Every text comes from the certificate."""

    law: str
    output: str
    subject: str
    steps: int
    assumptions: tuple[str, ...]
    weights: str  # "all" or "these"
    premises: tuple[str, ...]  # token axes, inputs that are equal in both runs, the document or row that is replaced
    theorem: str = ""  # the theorem in words, from its data; empty for a proof at one length
    obligations: int = 0  # implications that were decided, each once
