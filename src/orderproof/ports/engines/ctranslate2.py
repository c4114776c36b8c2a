"""CTranslate2 with its own converter from transformers.

The installed version runs here; another one, as ctranslate2@4.6.0, in an environment of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orderproof.ports.engines.engine import InferenceEngine
from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ABILITIES = frozenset({"prefill", "batch", "greedy"})
OTHER_VERSION = EnvironmentEngine(
    name="ctranslate2", title="CTranslate2", distribution="ctranslate2", abilities=ABILITIES,
    side="ctranslate2_side.py",
    requirements=Requirements(
        "ctranslate2", "4.8.5", ("torch==2.13.0", "transformers==5.23.0", "numpy==2.4.6"), gigabytes=1.5,
    ),
)  # fmt: skip


class CTranslate2Engine(InferenceEngine):
    """The engine of this module."""

    def for_version(self, version: str) -> InferenceEngine:
        return OTHER_VERSION.for_version(version)

    def load(self, folder: Path) -> Any:
        from orderproof.ports.engine_side import ctranslate2_side

        return ctranslate2_side.load(folder)

    def knows(self, model_type: str) -> bool:
        from orderproof.ports.engine_side import ctranslate2_side

        return ctranslate2_side.knows(model_type)


ENGINE = CTranslate2Engine(
    name="ctranslate2",
    title="CTranslate2",
    packages=("ctranslate2",),
    distribution="ctranslate2",
    extra="ctranslate2",
    abilities=ABILITIES,
)
