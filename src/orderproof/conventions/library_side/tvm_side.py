"""The attention operator of TVM's Relax, compiled for a processor."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import tvm
from tvm import relax

PACKAGE = "tvm"
REQUIREMENTS = ("apache-tvm==0.27.0.post1", "ml-dtypes==0.6.0", "numpy==2.4.6")
ARRAYS = "numpy"


@cache  # a question may be asked again, and compiling is most of its time
def _machine(arrays: tuple[tuple[str, tuple[int, ...], str], ...], options: tuple[tuple[str, Any], ...]) -> Any:
    """Attention of arrays (name, shape, dtype), compiled."""
    variables = {name: relax.Var(name, relax.TensorType(shape, dtype)) for name, shape, dtype in arrays}
    own: dict[str, Any] = dict(options)
    if "scale" in own:
        own["scale"] = tvm.tirx.FloatImm("float32", own["scale"])
    builder = relax.BlockBuilder()
    with builder.function("main", list(variables.values())):
        with builder.dataflow():
            output = builder.emit_output(relax.op.nn.attention(*variables.values(), **own))
        builder.emit_func_output(output)
    return relax.VirtualMachine(tvm.compile(builder.get(), target="llvm"), tvm.cpu())


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    arrays = {name: x.transpose(0, 2, 1, 3) for name, x in (("query", query), ("key", key), ("value", value))}
    arrays |= {"bias": options["mask"]} if "mask" in options else {}
    named = {"causal": "causal_mask", "scale": "scale", "window": "window_size"}
    own = tuple((named[name], x) for name, x in sorted(options.items()) if name in named)
    machine = _machine(tuple((name, x.shape, x.dtype.name) for name, x in arrays.items()), own)
    given = (tvm.runtime.tensor(np.ascontiguousarray(x)) for x in arrays.values())
    return machine["main"](*given).numpy().transpose(0, 2, 1, 3)


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
