"""The result of an accepted certificate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecheckResult:
    """The theorem that an accepted certificate proves, and its assumptions. Every text comes from the certificate."""

    law: str
    output: str
    subject: str
    theorem: str  # in words, from its data
    steps: int
    obligations: int  # implications that were decided, each once
    premises: tuple[str, ...]  # buffers whose stored values a step reads
    assumptions: tuple[str, ...]

    def lines(self) -> list[str]:
        """The result as text: what is accepted, then what is given and what is assumed."""
        size = f"{self.steps} steps, {self.obligations} implications"
        first = [f"accepted: theorem about {self.output} in {self.subject}, {size}", f"  {self.theorem}"]
        given = [f"  given {text}" for text in self.premises]
        return [*first, *given, *(f"  assuming {text}" for text in self.assumptions)]
