"""orderproof: prove what a sequence model knows about the order of its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # the names below are imported when they are first used: `import orderproof` is quick
    from orderproof import encodings as encodings
    from orderproof import positions as positions
    from orderproof.auditing import audit as audit
    from orderproof.auditing import prove as prove
    from orderproof.driver import Answer as Answer
    from orderproof.driver import Driver as Driver
    from orderproof.encodings import attention as attention
    from orderproof.errors import OrderproofError as OrderproofError
    from orderproof.record import Finding as Finding
    from orderproof.record import Report as Report

_PLACES = {
    "audit": "orderproof.auditing",
    "prove": "orderproof.auditing",
    "attention": "orderproof.encodings",
    "Answer": "orderproof.driver",
    "Driver": "orderproof.driver",
    "OrderproofError": "orderproof.errors",
    "Finding": "orderproof.record",
    "Report": "orderproof.record",
}
_MODULES = ("auditing", "blocks", "claims", "encodings", "laws", "positions", "prover", "report", "subjects")

__all__ = [
    "Answer", "Driver", "Finding", "OrderproofError", "Report", "attention", "audit", "encodings", "positions", "prove",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    import importlib

    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"orderproof.{name}")
    raise AttributeError(f"module 'orderproof' has no attribute {name!r}")
