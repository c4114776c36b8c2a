"""The operators of OpenVINO on a processor: scaled dot product attention of opset 13, and `Gather`."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13

PACKAGE = "openvino"
ENVIRONMENT = "openvino-core"  # an engine has the name of the library
REQUIREMENTS = ("openvino==2026.4.1", "numpy==2.4.6")
LENGTH, WIDTH = 16, 8  # of a table
KINDS = {
    "float16": ov.Type.f16, "float32": ov.Type.f32, "bool": ov.Type.boolean,
    "int64": ov.Type.i64, "int32": ov.Type.i32,
}  # fmt: skip


def array(given: Any) -> Any:
    """The numbers with their dtype: a model is made for each call."""
    return given


def numbers(found: Any) -> Any:
    """Numbers in float32, and their dtype: a result is converted in the model."""
    return found


def _run(given: dict[str, Any], node: Any) -> Any:
    wide = {name: "float32" if x.dtype == "bfloat16" else x.dtype for name, x in given.items()}
    inputs = {name: opset13.parameter(list(x.values.shape), KINDS[wide[name]]) for name, x in given.items()}
    narrow = {
        name: opset13.convert(inputs[name], "bf16") if x.dtype == "bfloat16" else inputs[name]
        for name, x in given.items()
    }
    output = node(narrow)
    dtype = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}[output.get_output_element_type(0).get_type_name()]
    model = ov.Model([opset13.convert(output, "f32")], list(inputs.values()))
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    arrays = [np.ascontiguousarray(x.values.astype(wide[name])) for name, x in given.items()]
    return np.array(next(iter(compiled(arrays).values()))), dtype


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    given = {"query": query, "key": key, "value": value}
    given |= {"mask": options["mask"]} if "mask" in options else {}
    more = {"scale": opset13.constant(np.float32(options["scale"]))} if "scale" in options else {}

    def node(x: dict[str, Any]) -> Any:
        if more:
            more["scale"] = opset13.convert_like(more["scale"], x["query"])
            if "mask" not in x:
                x["mask"] = opset13.convert_like(opset13.constant(np.float32(0)), x["query"])
        return opset13.scaled_dot_product_attention(
            x["query"], x["key"], x["value"], x.get("mask"), causal=options.get("causal", False), **more
        )

    return _run(given, node)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    table = np.random.default_rng(0).standard_normal((LENGTH, WIDTH)).astype(np.float32)

    def look_up(positions: Any) -> Any:
        return _run({"positions": positions}, lambda x: opset13.gather(opset13.constant(table), x["positions"], 0))

    axes = "[row, head, token, width]"
    return {
        "attention_13": ("attention", "mask causal scale grouped", axes, _attend),
        "gather": ("positions", "", "[token, width]", look_up),
    }
