"""llama.cpp through xllamacpp, in an environment of its own: its wheels are built, so that it needs no compiler."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="xllamacpp",
    title="llama.cpp (xllamacpp)",
    distribution="xllamacpp",
    abilities=frozenset({"prefill", "chunks", "greedy", "prefix"}),
    requirements=Requirements(
        "xllamacpp",
        "2026.10.11549",
        (
            "torch==2.13.0",
            "transformers==5.23.0",
            "sentencepiece==0.2.3",
            "protobuf==7.36.2",
            "pyyaml==6.0.4",
            "numpy==2.4.6",
        ),
        source=("thirdparty/llama.cpp", ("convert_hf_to_gguf.py", "conversion", "gguf-py/gguf")),
        gigabytes=1.5,
    ),
    side="xllamacpp_side.py",
)
