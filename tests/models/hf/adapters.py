"""Adapters of tiny transformers models, and findings of measured laws."""

from __future__ import annotations

from orderproof.auditing.decide.measurement import measure_law
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.measured_law import MeasuredLaw
from orderproof.models import load
from orderproof.models.hf.adapter import HFAdapter
from orderproof.records.audit import Finding


def tiny_adapter(name: str) -> HFAdapter:
    """The adapter of a tiny architecture."""
    build = load(f"arch:{name}", tiny=True).build_adapter
    assert build is not None
    adapter = build()
    assert isinstance(adapter, HFAdapter)
    return adapter


def measure(adapter: HFAdapter, law_name: str, *, kind: str = "causal_lm") -> Finding:
    """The finding of a measured law."""
    law = find_law(law_name)
    assert isinstance(law, MeasuredLaw)
    return measure_law(adapter, law, CachedCalls(adapter), kind=kind)
