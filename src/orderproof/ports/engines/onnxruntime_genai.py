"""ONNX Runtime generate() with its own model builder, in an environment of its own."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="onnxruntime-genai",
    title="ONNX Runtime generate()",
    distribution="onnxruntime-genai",
    abilities=frozenset({"prefill", "chunks", "greedy"}),
    requirements=Requirements(
        "onnxruntime-genai",
        "0.18.0",
        (
            "onnxruntime==1.32.0",
            "torch==2.13.0",
            "transformers==5.23.0",
            "onnx==1.23.2",
            "onnx-ir==1.1.0",
            "numpy==2.4.6",
        ),
        gigabytes=1.5,
    ),
    side="onnxruntime_genai_side.py",
    head_width=32,  # its kernel takes no narrower rotation than 16 features
)
