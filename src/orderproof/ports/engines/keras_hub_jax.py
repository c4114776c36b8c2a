"""KerasHub on the backend jax, in an environment of its own: a checkpoint of torch, converted and run by JAX."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="keras-hub-jax",
    title="KerasHub on JAX",
    distribution="keras-hub",
    abilities=frozenset({"prefill", "chunks", "batch", "greedy"}),
    requirements=Requirements(
        "keras-hub", "0.32.0", ("keras==3.15.1", "jax==0.10.2", "safetensors==0.8.0", "numpy==2.4.6"), gigabytes=3.0,
    ),
    side="keras_hub_side.py",
    variables={"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
)  # fmt: skip
