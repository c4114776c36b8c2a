"""ONNX Runtime on a processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderproof.conventions import onnx_node
from orderproof.conventions.library import AnyFunction, Library


def _run(model: Any, arrays: Mapping[str, Any]) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(arrays))[0]


def _functions() -> tuple[AnyFunction, ...]:
    import onnxruntime

    return onnx_node.functions(_run, f"onnxruntime {onnxruntime.__version__}", (23, 24))


LIBRARY = Library("onnxruntime", "onnxruntime", _functions)
