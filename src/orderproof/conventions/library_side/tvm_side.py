"""The attention operator of TVM's Relax, compiled for a processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

PACKAGE = "tvm"
REQUIREMENTS = ("apache-tvm==0.27.0.post1", "ml-dtypes==0.6.0", "numpy==2.4.6")
ARRAYS = "numpy"


def _run(arrays: dict[str, Any], node: Any) -> Any:
    variables = {name: relax.Var(name, relax.TensorType(x.shape, x.dtype.name)) for name, x in arrays.items()}
    builder = relax.BlockBuilder()
    with builder.function("main", list(variables.values())):
        with builder.dataflow():
            output = builder.emit_output(node(variables))
        builder.emit_func_output(output)
    machine = relax.VirtualMachine(tvm.compile(builder.get(), target="llvm"), tvm.cpu())
    return machine["main"](*(tvm.runtime.tensor(np.ascontiguousarray(x)) for x in arrays.values())).numpy()


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    arrays = {name: x.transpose(0, 2, 1, 3) for name, x in (("query", query), ("key", key), ("value", value))}
    arrays |= {"bias": options["mask"]} if "mask" in options else {}
    causal = {"causal_mask": options["causal"]} if "causal" in options else {}
    scale = {"scale": tvm.tirx.FloatImm("float32", options["scale"])} if "scale" in options else {}
    window = {"window_size": options["window"]} if "window" in options else {}

    def node(x: dict[str, Any]) -> Any:
        more = {**causal, **scale, **window}
        return relax.op.nn.attention(x["query"], x["key"], x["value"], x.get("bias"), **more)

    return _run(arrays, node).transpose(0, 2, 1, 3)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""

    def aligned(corner: str) -> Any:
        def attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
            given = {**options, "causal": corner} if options.pop("causal", False) else options
            return _attend(query, key, value, **given)

        return attend

    axes, flags = "[row, token, head, width]", "mask causal scale window"
    return {
        "attention_top_left": ("attention", flags, axes, aligned("TopLeft")),
        "attention_bottom_right": ("attention", flags, axes, aligned("BottomRight")),
    }
