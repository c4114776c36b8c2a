"""Models of one node of ONNX, for the reference evaluator and for ONNX Runtime; it needs the package onnx."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from onnx import helper

BASE = 10_000.0
LENGTH, WIDTH = 16, 8  # of a table
IR_VERSION = 11
Run = Callable[[Any, Mapping[str, Any]], Any]  # (model, arrays by name) -> the first output


def standard_functions(run: Run, opsets: tuple[int, ...]) -> dict[str, Any]:
    """Attention of some opsets, rotations and `Gather` of the first, as an implementation of ONNX runs them."""
    axes, flags = "[row, head, token, width]", "mask causal scale soft_cap grouped past"
    table = np.random.default_rng(0).standard_normal((LENGTH, WIDTH)).astype(np.float32)

    def gather(positions: Any) -> Any:
        if positions.dtype.kind != "i":
            raise TypeError("indices are integers")
        return run_node(run, opsets[0], "Gather", {"table": table, "positions": positions}, {"axis": 0})

    attention = {
        f"attention_{opset}": (
            "attention", flags if opset == 23 else f"{flags} lengths", axes, partial(_attend, run, opset)
        )
        for opset in opsets
    }  # fmt: skip
    return {
        **attention,
        "rotary": ("rotation", "rows table", axes, partial(_rotate, run, opsets[0], 0)),
        "rotary_interleaved": ("rotation", "rows table", axes, partial(_rotate, run, opsets[0], 1)),
        "gather": ("positions", "", "[token, width]", gather),
    }


def _attend(run: Run, opset: int, query: Any, key: Any, value: Any, **options: Any) -> Any:
    past = options.get("past", (None, None))
    given = {"Q": query, "K": key, "V": value, "mask": options.get("mask"), "past_key": past[0], "past_value": past[1]}
    given |= {"lengths": options["lengths"]} if "lengths" in options else {}
    own = {"is_causal": int(options.get("causal", False)), "scale": options.get("scale")}
    own |= {"softcap": options["soft_cap"]} if "soft_cap" in options else {}
    stated = {key: value for key, value in own.items() if value is not None}
    outputs = 1 if past[0] is None else 3  # the keys and values that it keeps
    return run_node(run, opset, "Attention", given, stated, outputs=outputs)


def _rotate(run: Run, opset: int, interleaved: int, x: Any, positions: Any, *, table: int | None = None) -> Any:
    """The caches of cosines and sines are given: they have the usual angles."""
    cos, sin = caches(x, table or int(positions.max()) + 1)
    rows = np.ascontiguousarray(np.broadcast_to(positions, (x.shape[0], positions.shape[-1])))
    given = {"X": x, "cos": cos, "sin": sin, "positions": rows}
    return run_node(run, opset, "RotaryEmbedding", given, {"interleaved": interleaved})


def caches(x: Any, length: int) -> tuple[Any, Any]:
    """Cosines and sines [position, pair] in the dtype of vectors."""
    speeds = BASE ** (-np.arange(0, x.shape[-1], 2, dtype=np.float32) / np.float32(x.shape[-1]))
    angles = np.arange(length, dtype=np.float32)[:, None] * speeds
    return np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)


def run_node(
    run: Run, opset: int, operator: str, given: Mapping[str, Any], own: Mapping[str, Any], domain: str = "",
    outputs: int = 1,
) -> Any:  # fmt: skip
    """The first output of a node; inputs that are None are left out."""
    arrays = {name: x for name, x in given.items() if x is not None}
    names = [name if name in arrays else "" for name in given]
    while not names[-1]:
        names.pop()
    kinds = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in arrays.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], x.shape) for name, x in arrays.items()]
    output = helper.make_tensor_value_info("Y", kinds[names[0]], None)
    results = ["Y", *(f"Y{k}" for k in range(1, outputs))]
    node = helper.make_node(operator, names, results, domain=domain, **own)
    graph = helper.make_graph([node], "node", inputs, [output])
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return run(helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION), arrays)
