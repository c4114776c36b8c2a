"""MLX through mlx-lm: Apple's array library, whose wheels also run on the CPU of Linux.

The installed version runs here; another one, as mlx@0.30.0, in an environment of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orderproof.errors import UsageError
from orderproof.ports.engines.engine import InferenceEngine
from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ABILITIES = frozenset({"prefill", "chunks", "batch", "greedy"})
OTHER_VERSION = EnvironmentEngine(
    name="mlx", title="MLX (mlx-lm)", distribution="mlx-lm", abilities=ABILITIES, side="mlx_side.py",
    requirements=Requirements(
        "mlx-lm", "0.32.2", ("mlx[cpu]==0.32.4", "transformers==5.23.0", "numpy==2.4.6"), gigabytes=1.0,
    ),
)  # fmt: skip


class MlxEngine(InferenceEngine):
    """The engine of this module."""

    def for_version(self, version: str) -> InferenceEngine:
        return OTHER_VERSION.for_version(version)

    def for_target(self, target: str) -> InferenceEngine:
        folder = Path(target).expanduser()
        if not (folder / "config.json").is_file():
            raise UsageError(
                f"expected engine {self.name} with a folder that mlx-lm wrote, {self.name}:FOLDER; "
                f"no config.json in {target}"
            )
        return replace(self, name=f"{self.name}:{target}", target=str(folder), reads_config=False)

    def load(self, folder: Path) -> Any:
        from orderproof.ports.engine_side import mlx_side

        return mlx_side.load(Path(self.target) if self.target else folder)

    def knows(self, model_type: str) -> bool:
        from orderproof.ports.engine_side import mlx_side

        return mlx_side.knows(model_type)

    def defaults(self, model_type: str) -> Mapping[str, Any]:
        from orderproof.ports.engine_side import mlx_side

        return mlx_side.defaults(model_type)


ENGINE = MlxEngine(
    name="mlx",
    title="MLX (mlx-lm)",
    packages=("mlx", "mlx_lm"),
    distribution="mlx-lm",
    extra="mlx",
    abilities=ABILITIES,
    note="mlx:FOLDER for a checkpoint that mlx-lm converted",
)
