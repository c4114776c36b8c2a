"""The models of Flax that transformers had before version 5, in an environment of their own: torch against JAX."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="transformers-flax",
    title="Flax in transformers 4",
    distribution="transformers",
    abilities=frozenset({"prefill", "chunks", "batch", "greedy"}),
    requirements=Requirements(
        "transformers", "4.53.3", ("jax==0.4.38", "flax==0.10.2", "safetensors==0.8.0", "numpy==2.4.6"), gigabytes=2.0,
    ),
    side="transformers_flax_side.py",
    variables={"JAX_PLATFORMS": "cpu"},
)  # fmt: skip
