"""mistral.rs, in an environment of its own."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="mistralrs",
    title="mistral.rs",
    distribution="mistralrs",
    abilities=frozenset({"prefill", "greedy", "prefix"}),
    requirements=Requirements("mistralrs", "0.9.5", ("numpy==2.4.6",), gigabytes=0.3),
    side="mistralrs_side.py",
    variables={"MISTRALRS_CPU_KV_F32": "1"},  # its cache is in float16 otherwise, also with float32
)
