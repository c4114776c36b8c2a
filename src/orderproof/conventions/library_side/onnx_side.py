"""The reference evaluator of the package onnx: what the standard says, as code."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from onnx import defs
from onnx.reference import ReferenceEvaluator

PACKAGE = "onnx"
ENVIRONMENT = "onnx-reference"  # an engine has the name of the library
REQUIREMENTS = ("onnx==1.23.2", "ml-dtypes==0.6.0", "numpy==2.4.6")
ARRAYS = "numpy"
FIRST, LATEST = 23, 25  # opsets with another operator


def _run(model: Any, arrays: Mapping[str, Any]) -> Any:
    found: Any = ReferenceEvaluator(model).run(None, dict(arrays))
    return found[0]


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    spec: Any = spec_from_file_location("onnx_node", Path(__file__).with_name("onnx_node.py"))
    node = module_from_spec(spec)
    spec.loader.exec_module(node)
    last = min(LATEST, defs.onnx_opset_version())
    found: dict[str, Any] = node.standard_functions(_run, tuple(range(FIRST, last + 1)))
    return found
