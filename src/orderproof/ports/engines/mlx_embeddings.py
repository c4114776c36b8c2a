"""The encoders of mlx-embeddings, in an environment of its own."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="mlx-embeddings",
    title="mlx-embeddings",
    distribution="mlx-embeddings",
    abilities=frozenset(),
    encoder_abilities=frozenset({"prefill", "batch", "pooled"}),
    requirements=Requirements(
        "mlx-embeddings", "0.1.0", ("mlx[cpu]==0.32.4", "mlx-vlm==0.7.10", "transformers==5.23.0", "numpy==2.4.6"),
        gigabytes=1.5,
    ),
    side="mlx_embeddings_side.py",
)  # fmt: skip
