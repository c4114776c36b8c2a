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

    def lines(self) -> list[str]:
        """The result as text: what is accepted, then what is given and what is assumed."""
        of = f"{self.output} in {self.subject}, {self.steps} steps"
        if self.theorem:
            first = [f"accepted: theorem about {of}, {self.obligations} implications", f"  {self.theorem}"]
        else:
            first = [f"accepted: {self.law} of {of}, {self.weights} weights"]
        given = [f"  given {text}" for text in self.premises]
        return [*first, *given, *(f"  assuming {text}" for text in self.assumptions)]
