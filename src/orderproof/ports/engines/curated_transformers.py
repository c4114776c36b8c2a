"""curated-transformers, in an environment of its own."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="curated-transformers",
    title="curated-transformers",
    distribution="curated-transformers",
    abilities=frozenset({"prefill", "chunks", "batch"}),
    requirements=Requirements(
        "curated-transformers",
        "2.0.1",
        ("torch==2.13.0", "safetensors==0.8.0", "numpy==2.4.6", "requests==2.34.2"),  # requests is not among its own
        gigabytes=1.5,
    ),
    side="curated_transformers_side.py",
)
