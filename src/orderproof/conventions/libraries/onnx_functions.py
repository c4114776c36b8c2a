"""The reference evaluator of the package onnx: what the standard says, as code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderproof.conventions import onnx_node
from orderproof.conventions.library import AnyFunction, Library


def _run(model: Any, arrays: Mapping[str, Any]) -> Any:
    from onnx.reference import ReferenceEvaluator

    found: Any = ReferenceEvaluator(model).run(None, dict(arrays))
    return found[0]


def _functions() -> tuple[AnyFunction, ...]:
    import onnx

    return onnx_node.functions(_run, f"onnx {onnx.__version__}", (23, 24))


LIBRARY = Library("onnx", "onnx", _functions)
