"""What one run has made so far: several grounds ask of the same subject, which is made and recorded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orderproof.auditing.api import as_subject, examination, one_law
from orderproof.auditing.examine import Examination
from orderproof.auditing.pictures import swap_and_maps
from orderproof.errors import UsageError
from orderproof.record import Finding, Swap
from orderproof.subjects import Subject


class Bench:
    """What has been made, recorded and found so far."""

    def __init__(self) -> None:
        self._exams: dict[Callable[[], Any], Examination] = {}
        self._findings: dict[tuple[Callable[[], Any], str], tuple[Finding, ...]] = {}
        self._swaps: dict[Callable[[], Any], Swap | None] = {}

    def examination(self, make: Callable[[], Any]) -> Examination:
        """The examination of a subject: a module, a module with its inputs, or a `Subject`."""
        if make not in self._exams:
            made = make()
            module, inputs = made if isinstance(made, tuple) else (made, None)
            subject = module if isinstance(module, Subject) else as_subject(module, inputs=inputs)
            self._exams[make] = examination(subject)
        return self._exams[make]

    def finding(self, make: Callable[[], Any], law: str, output: str | None = None) -> Finding:
        """What one law says of one output, the first by default."""
        if (make, law) not in self._findings:
            self._findings[make, law] = one_law(self.examination(make), law).findings
        for finding in self._findings[make, law]:
            if output in (None, finding.output):
                return finding
        names = ", ".join(f.output for f in self._findings[make, law])
        raise UsageError(f"expected an output, one of {names}; got {output!r}")

    def swap(self, make: Callable[[], Any]) -> Swap | None:
        """Two sentences with the same words, with positions and without; None of a subject that reads no text."""
        if make not in self._swaps:
            made = swap_and_maps(self.examination(make).subject)
            self._swaps[make] = made[0] if made is not None else None
        return self._swaps[make]
