"""KerasHub on the backend torch, in an environment of its own."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="keras-hub",
    title="KerasHub on torch",
    distribution="keras-hub",
    abilities=frozenset({"prefill", "chunks", "batch", "greedy"}),
    requirements=Requirements(
        "keras-hub", "0.32.0", ("keras==3.15.1", "torch==2.13.0", "safetensors==0.8.0", "numpy==2.4.6"), gigabytes=4.0,
    ),
    side="keras_hub_side.py",
    variables={"KERAS_BACKEND": "torch"},
)  # fmt: skip
