"""Why a call of an engine failed: it is longer than the engine takes, or the engine fails on a short prompt too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orderproof.laws.ports import PortCall
from orderproof.laws.ports.port_law import PortModel
from orderproof.records.audit import Verdict

WINDOW, CONTEXT, STATED = "sliding_window", "the trained context", "max_position_embeddings"
REMEDY = "Return the logits of every token of a text that is longer than sliding_window, not those of its end."
_TIMEOUT = "was not done "  # other calls may take as long
_SENTENCES = ("raised ", "ended ", _TIMEOUT)  # failures whose subject is the engine


@dataclass(frozen=True)
class CallFailure:
    """A failed call, with its cause."""

    verdict: Verdict
    reason: str
    boundary: str = ""  # beyond which the engine fails: WINDOW, CONTEXT, STATED, or empty


def explained_failure(
    engine: str, failure: str, call: PortCall, model: PortModel, takes: Callable[[int], bool]
) -> CallFailure:
    """The verdict on a call that failed; `takes` says if the engine takes a prompt of this length [tokens].

    A window bounds what a token sees and not how long a text is: an engine that fails beyond it violates the law. It
    may refuse a text beyond the context that the model was trained on, or that its configuration states. Of any other
    failure nothing is concluded.
    """
    said = f"{engine}{' ' if failure.startswith(_SENTENCES) else ': '}{failure}"
    if failure.startswith(_TIMEOUT):
        return CallFailure("undecided", said)
    boundaries: tuple[tuple[str, int | None, Verdict], ...] = (
        (WINDOW, model.window, "refuted"),
        (CONTEXT, model.context, "not_applicable"),
        (STATED, model.stated, "not_applicable"),
    )
    for name, size, verdict in boundaries:
        if not size or size >= call.length or takes(size + 1):
            continue
        # an engine that generates a token after each prompt takes one token less of a context
        if longest := next((n for n in (size, size - (name != WINDOW)) if takes(n)), 0):
            reason = f"{engine} takes {longest} tokens and not {size + 1}, beyond {name}: {said}"
            return CallFailure(verdict, reason, name)
        if name != WINDOW and takes(2):
            return CallFailure("undecided", f"{said}; a prompt of 2 tokens works, one of {name} ({size}) does not")
    short = "a prompt of 2 tokens works" if takes(2) else "a prompt of 2 tokens fails too"
    return CallFailure("undecided", f"{said}; {short}")
