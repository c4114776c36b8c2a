"""Models of one node of ONNX, for the reference evaluator and for ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.library import AnyFunction
from orderproof.conventions.positions.function import LENGTH, PositionTable
from orderproof.conventions.positions.function import WIDTH as TABLE_WIDTH
from orderproof.conventions.rotation.function import RotaryFunction
from orderproof.errors import UnsupportedCallError

BASE = 10_000.0
Run = Callable[[Any, Mapping[str, Any]], Any]  # (model, arrays by name) -> the first output
_FLAGS = frozenset({"mask", "causal", "scale", "soft_cap", "grouped"})


def functions(run: Run, version: str, opsets: Sequence[int]) -> tuple[AnyFunction, ...]:
    """Attention of some opsets, rotations and `Gather` of the first, as an implementation of ONNX runs them."""
    axes = "[row, head, token, width]"
    attention = (
        AttentionFunction(
            f"attention_{opset}", f"{version}, opset {opset}", axes,
            _FLAGS | {"lengths"} if opset > opsets[0] else _FLAGS, partial(_attend, run, opset),
        )
        for opset in opsets
    )  # fmt: skip
    rotary = (
        RotaryFunction(name, f"{version}, opset {opsets[0]}", axes, partial(_rotate, run, opsets[0], interleaved))
        for name, interleaved in (("rotary", 0), ("rotary_interleaved", 1))
    )
    table = torch.randn(LENGTH, TABLE_WIDTH, generator=torch.Generator().manual_seed(0))

    def gather(positions: Tensor) -> Tensor:
        if positions.is_floating_point():
            raise UnsupportedCallError("indices are integers")
        return _of_node(run, opsets[0], "Gather", {"table": table, "positions": positions}, {"axis": 0})

    gathered = PositionTable("gather", f"{version}, opset {opsets[0]}", "[token, width]", gather)
    return (*attention, *rotary, gathered)


def _attend(run: Run, opset: int, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    lengths = options.get("lengths")
    given = {"Q": query, "K": key, "V": value, "mask": options.get("mask"), "past_key": None, "past_value": None}
    given |= {"lengths": lengths} if lengths is not None else {}
    own = {"is_causal": int(options.get("causal", False)), "scale": options.get("scale")}
    own |= {"softcap": options["soft_cap"]} if "soft_cap" in options else {}
    return _of_node(run, opset, "Attention", given, {key: value for key, value in own.items() if value is not None})


def _rotate(run: Run, opset: int, interleaved: int, x: Tensor, positions: Tensor) -> Tensor:
    """The caches of cosines and sines are given: they have the usual angles."""
    width = x.shape[-1]
    speeds = BASE ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.arange(int(positions.max()) + 1)[:, None] * speeds
    given = {"X": x, "cos": angles.cos().to(x.dtype), "sin": angles.sin().to(x.dtype)}
    given["positions"] = positions.expand(x.shape[0], -1).contiguous()
    return _of_node(run, opset, "RotaryEmbedding", given, {"interleaved": interleaved})


def _of_node(run: Run, opset: int, operator: str, given: Mapping[str, Tensor | None], own: Mapping[str, Any]) -> Tensor:
    from onnx import helper

    arrays = {name: _array(x) for name, x in given.items() if x is not None}
    names = [name if name in arrays else "" for name in given]
    while not names[-1]:
        names.pop()
    kinds = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in arrays.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], x.shape) for name, x in arrays.items()]
    output = helper.make_tensor_value_info("Y", kinds[names[0]], None)
    graph = helper.make_graph([helper.make_node(operator, names, ["Y"], **own)], "node", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    return torch.from_numpy(np.asarray(run(model, arrays)).astype(np.float32))


def _array(x: Tensor) -> Any:
    if x.dtype is not torch.bfloat16:
        return x.detach().contiguous().numpy()
    import ml_dtypes

    return x.detach().contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
