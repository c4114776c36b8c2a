"""orderproof: check how a sequence model uses the order of its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orderproof._version import __version__ as __version__

if TYPE_CHECKING:  # the names below are imported on first use, so that `import orderproof` is fast
    from orderproof import encodings as encodings
    from orderproof import positions as positions
    from orderproof.adapter import ModelAdapter as ModelAdapter
    from orderproof.adapter import ModelOutput as ModelOutput
    from orderproof.assertions import assert_conforms as assert_conforms
    from orderproof.assertions import assert_law as assert_law
    from orderproof.auditing import audit as audit
    from orderproof.auditing import prove as prove
    from orderproof.encodings import attention as attention
    from orderproof.errors import OrderproofError as OrderproofError
    from orderproof.records.audit import Finding as Finding
    from orderproof.records.audit import Report as Report
    from orderproof.reproduction import reproduce as reproduce

_EXPORTS = {
    "audit": "orderproof.auditing",
    "prove": "orderproof.auditing",
    "assert_conforms": "orderproof.assertions",
    "assert_law": "orderproof.assertions",
    "attention": "orderproof.encodings",
    "ModelOutput": "orderproof.adapter",
    "ModelAdapter": "orderproof.adapter",
    "OrderproofError": "orderproof.errors",
    "Finding": "orderproof.records.audit",
    "Report": "orderproof.report",
    "reproduce": "orderproof.reproduction",
}
_SUBMODULES = (
    "auditing",
    "blocks",
    "claims",
    "diagnosis",
    "encodings",
    "laws",
    "models",
    "positions",
    "recording",
    "records",
    "registry",
    "report",
    "reproduction",
    "theorems",
    "training",
)

__all__ = [
    "Finding",
    "ModelAdapter",
    "ModelOutput",
    "OrderproofError",
    "Report",
    "assert_conforms",
    "assert_law",
    "attention",
    "audit",
    "encodings",
    "positions",
    "prove",
    "reproduce",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    import importlib

    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    if name in _SUBMODULES:
        return importlib.import_module(f"orderproof.{name}")
    raise AttributeError(f"module 'orderproof' has no attribute {name!r}")
