"""One node as a file, run by ONNX Runtime and by its translation to torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnx import helper

from orderproof.models.onnx_file.module import OnnxModule
from tests.models.onnx_file.graphs import Array, model_of

onnxruntime.set_default_logger_severity(4)


def both_results(
    operator: str, arrays: Sequence[Array | None], attributes: dict[str, Any], *, domain: str = "", version: int = 21,
    outputs: Sequence[str] = ("y",), stored: Sequence[int] = (),
) -> list[tuple[Array, Array]]:  # fmt: skip
    """Each output of the translation, and of the runtime. `stored` are the inputs that the file holds."""
    names = ["" if array is None else f"x{k}" for k, array in enumerate(arrays)]
    while not names[-1]:
        names.pop()
    given = {name: array for name, array in zip(names, arrays, strict=False) if array is not None}
    held = {f"x{k}": given.pop(f"x{k}") for k in stored if f"x{k}" in given}
    node = helper.make_node(operator, names, list(outputs), name="node", domain=domain, **attributes)
    kinds = {k: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in given.items()}
    model = model_of([node], kinds, [name for name in outputs if name], held, version)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    found = OnnxModule(model, "test.onnx")(*(torch.from_numpy(array) for array in given.values()))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, given)
    return [(found[name].numpy(), np.asarray(y)) for name, y in zip([n for n in outputs if n], expected, strict=True)]


def check_same(results: Sequence[tuple[Array, Array]], tolerance: float = 2e-5) -> None:
    """Assert equal shapes, equal integers and numbers that differ by rounding."""
    for found, expected in results:
        assert found.shape == expected.shape
        if not np.issubdtype(expected.dtype, np.floating):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=0, atol=tolerance)
