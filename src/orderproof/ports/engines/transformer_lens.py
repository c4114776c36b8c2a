"""TransformerLens, in an environment of its own."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="transformer-lens",
    title="TransformerLens",
    distribution="transformer-lens",
    abilities=frozenset({"prefill", "chunks", "batch"}),
    requirements=Requirements(
        "transformer-lens", "4.3.0", ("torch==2.13.0", "transformers==5.23.0", "numpy==2.4.6"), gigabytes=3.0,
    ),
    side="transformer_lens_side.py",
)  # fmt: skip
