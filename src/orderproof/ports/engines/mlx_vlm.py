"""The language models of mlx-vlm, in an environment of its own."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="mlx-vlm",
    title="mlx-vlm",
    distribution="mlx-vlm",
    abilities=frozenset({"prefill", "chunks", "batch", "greedy"}),
    requirements=Requirements(
        "mlx-vlm", "0.7.10", ("mlx[cpu]==0.32.4", "transformers==5.23.0", "numpy==2.4.6"), gigabytes=1.5,
    ),
    side="mlx_vlm_side.py",
)  # fmt: skip
