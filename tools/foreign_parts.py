"""The parts of an audit that processor time goes to, for the slowest modules of `foreign.py`."""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from typing import Any

PLACES = {  # the part, and the functions whose time it is: module, class or empty, name
    "recording": [
        ("orderproof.auditing.record.open_calls", "", "record_open"),
        ("orderproof.auditing.record.recorded_call", "", "capture"),
    ],
    "theorem": [
        ("orderproof.auditing.record.open_calls", "", "prove_agreement"),
        ("orderproof.auditing.record.open_calls", "", "prove_equivariance"),
        ("orderproof.auditing.record.open_calls", "", "map_entries"),
    ],
    "recheck": [("orderproof.auditing.decide.theorem_certificates", "", "check_theorem")],
    "proof at one length": [("orderproof.auditing.decide.relation", "", "walk_graph")],
    "runs": [
        ("orderproof.auditing.record.execution", "SubjectExecution", "outputs"),
        ("orderproof.auditing.record.open_calls", "", "disagreement"),
    ],
}


class Parts:
    """The processor seconds of each part. Time in a part that is entered from another one is its own."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PLACES, 0.0)
        self._open: list[str] = []
        self._since = time.process_time()

    def watch(self) -> None:
        """Measure the functions of all parts from now on."""
        for part, places in PLACES.items():
            for module, owner, name in places:
                holder: Any = importlib.import_module(module)
                holder = getattr(holder, owner) if owner else holder
                setattr(holder, name, self._timed(part, getattr(holder, name)))
        self._since = time.process_time()

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            self._switch()
            self._open.append(part)
            try:
                return function(*args, **options)
            finally:
                self._switch()
                self._open.pop()

        return call

    def _switch(self) -> None:
        now = time.process_time()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now
