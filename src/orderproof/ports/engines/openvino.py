"""OpenVINO through optimum-intel, in an environment of its own: its exporter needs an older transformers."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="openvino",
    title="OpenVINO (optimum-intel)",
    distribution="openvino",
    abilities=frozenset({"prefill", "chunks", "batch", "greedy"}),
    encoder_abilities=frozenset({"prefill", "batch"}),
    requirements=Requirements(
        "openvino",
        "2026.4.1",
        ("optimum-intel==2.2.0", "optimum==2.3.0", "transformers==5.5.4", "torch==2.13.0", "numpy==2.4.6"),
        left_out=("torchvision",),  # it may be of another torch
        gigabytes=2.5,
    ),
    side="openvino_side.py",
    exported="openvino_model.xml",
    note="openvino:FOLDER for a folder that optimum-intel exported",
)
