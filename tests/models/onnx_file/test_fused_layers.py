"""Layers with an activation or padding, quantized attention and writes into a cache give what ONNX Runtime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.module import OnnxModule
from tests.models.onnx_file.graphs import Array, model_of
from tests.models.onnx_file.runtime import both_results, check_same

Draw = np.random.Generator
Drawn = tuple[list[Array | None], dict[str, Any], tuple[str, ...]]  # inputs, attributes, outputs
MICROSOFT = "com.microsoft"
ACTIVATIONS: dict[str, list[float]] = {
    "Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.3], "Clip": [-0.2, 0.5], "HardSigmoid": [0.3, 0.4],
}  # fmt: skip


def real(draw: Draw, *shape: int) -> Array:
    """Numbers from a normal distribution."""
    return draw.normal(size=shape).astype(np.float32)


def maybe(draw: Draw, array: Array) -> Array | None:
    """The array, or None."""
    return array if draw.integers(2) else None


def convolution(draw: Draw) -> Drawn:
    """One or two axes, no row or more, and a tensor that is added before the activation."""
    rank, rows, group = int(draw.integers(1, 3)), int(draw.integers(3)), int(draw.choice([1, 2]))
    x, weight = real(draw, rows, 4, *draw.integers(5, 9, rank)), real(draw, 6, 4 // group, *[3] * rank)
    attributes: dict[str, Any] = {"group": group, "kernel_shape": [3] * rank, "pads": [1] * 2 * rank}
    if name := str(draw.choice([*ACTIVATIONS, ""])):
        attributes |= {"activation": name}
        attributes |= {"activation_params": ACTIVATIONS[name]} if ACTIVATIONS[name] else {}
    added = maybe(draw, real(draw, rows, 6, *x.shape[2:]))
    return [x, weight, maybe(draw, real(draw, 6)), added], attributes, ("y",)


def product(draw: Draw) -> Drawn:
    """Factors that may be transposed, no row or more, a bias and an activation."""
    flips, rows = {key: int(draw.integers(2)) for key in ("transA", "transB")}, int(draw.integers(4))
    a = real(draw, *((5, rows) if flips["transA"] else (rows, 5)))
    b = real(draw, *((4, 5) if flips["transB"] else (5, 4)))
    names = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "HardSigmoid", "Softplus", "Softsign")
    attributes = {**flips, "alpha": float(draw.choice([1, 0.5])), "beta": float(draw.choice([1, 0.5]))}
    numbers = {"activation_alpha": 0.3, "activation_beta": 0.4}
    return [a, b, maybe(draw, real(draw, 4))], attributes | {"activation": str(draw.choice(names)), **numbers}, ("y",)


def turned_product(draw: Draw) -> Drawn:
    """Factors that may be transposed, times a number."""
    attributes = {"transA": int(draw.integers(2)), "transB": int(draw.integers(2)), "alpha": 0.5}
    return [real(draw, 2, 3, 3), real(draw, 3, 3)], attributes, ("y",)


def cache_write(draw: Draw) -> Drawn:
    """No row or more, no new token or as many as the cache holds, in the middle or over the end."""
    kind = draw.choice([np.float32, np.float16, np.float64, np.int64, np.uint8, np.bool_])
    rank = int(draw.integers(2, 5))
    axis, size = int(draw.integers(1, rank)), int(draw.integers(1, 7))
    count, rows, circular = int(draw.integers(size + 1)), int(draw.integers(3)), bool(draw.integers(2))
    shapes = [[rows, *(int(n) for n in draw.integers(1, 4, rank - 1))] for _ in range(2)]
    shapes[1] = list(shapes[0])
    shapes[0][axis], shapes[1][axis] = size, count
    first = draw.integers(0, size if circular else size - count + 1, rows)
    attributes = {"axis": axis - rank * int(draw.integers(2)), "mode": "circular" if circular else "linear"}
    arrays: list[Array | None] = [draw.integers(0, 200, shape).astype(kind) for shape in shapes]
    return [*arrays, maybe(draw, first)], attributes, ("y",)


def quantized_attention(draw: Draw) -> Drawn:
    """Projections of integers of each kind, with one scale or one for each column, a mask and a cache."""
    tokens, past, heads, width = int(draw.integers(1, 6)), int(draw.integers(1, 4)), 2, 3
    rows, cache, kind = int(draw.integers(1, 3)), bool(draw.integers(2)), draw.choice([np.uint8, np.int8])
    total, columns = tokens + past * cache, 3 * heads * width
    wide = (columns,) if draw.integers(2) else ()
    limits = np.iinfo(kind)

    def own(*shape: int) -> Array:
        return draw.integers(limits.min, limits.max + 1, shape).astype(kind)

    masks = (None, draw.integers(1, total + 1, rows), np.arange(total) < draw.integers(1, total + 1, (rows, 1)))
    mask = masks[draw.integers(3)]
    x, zero = (draw.integers(0, 256, shape).astype(np.uint8) for shape in ((rows, tokens, 5), ()))
    scales = [np.array(0.01, np.float32), draw.uniform(0.005, 0.02, wide).astype(np.float32)]
    arrays = [x, own(5, columns), real(draw, columns), *scales, None if mask is None else mask.astype(np.int32)]
    arrays += [maybe(draw, zero), maybe(draw, own(*wide)), real(draw, 2, rows, heads, past, width) if cache else None]
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": int(draw.integers(2))}
    attributes |= {"scale": 0.3} if draw.integers(2) else {}
    return arrays, attributes, ("y", "present") if cache else ("y",)


def pooled(draw: Draw, *, mean: bool) -> Drawn:
    """Windows of one to three axes, with padding that may differ before and after; no row or more."""
    rank = int(draw.integers(1, 4))
    kernel, strides = ([int(n) for n in draw.integers(1, most, rank)] for most in (4, 3))
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    same = str(draw.choice(["SAME_UPPER", "SAME_LOWER"])) if max(strides) == 1 else "VALID"
    pads = [int(draw.integers(n)) for n in kernel * 2]
    attributes |= ({"auto_pad": same}, {"pads": pads}, {})[draw.integers(3)]
    attributes |= {"count_include_pad": int(draw.integers(2))} if mean else {}
    return [real(draw, int(draw.integers(3)), 3, *draw.integers(4, 8, rank))], attributes, ("y",)


def turned_convolution(draw: Draw) -> Drawn:
    """Padding that may differ before and after."""
    rank = int(draw.integers(1, 3))
    kernel, strides = ([int(n) for n in draw.integers(1, most, rank)] for most in (4, 3))
    attributes = {"pads": [int(draw.integers(n)) for n in kernel * 2], "strides": strides}
    return [real(draw, 2, 4, *draw.integers(3, 7, rank)), real(draw, 4, 3, *kernel)], attributes, ("y",)


OPERATORS: dict[tuple[str, str], Callable[[Draw], Drawn]] = {
    (MICROSOFT, "FusedConv"): convolution,
    (MICROSOFT, "FusedGemm"): product,
    (MICROSOFT, "TransposeMatMul"): turned_product,
    (MICROSOFT, "QAttention"): quantized_attention,
    ("", "TensorScatter"): cache_write,
    ("", "MaxPool"): lambda draw: pooled(draw, mean=False),
    ("", "AveragePool"): lambda draw: pooled(draw, mean=True),
    ("", "ConvTranspose"): turned_convolution,
}


@pytest.mark.parametrize(("domain", "name"), OPERATORS)
@pytest.mark.parametrize("seed", range(16))
def test_a_layer_gives_what_the_runtime_gives(domain: str, name: str, seed: int) -> None:
    arrays, attributes, outputs = OPERATORS[domain, name](np.random.default_rng(seed))
    version = 24 if name == "TensorScatter" else 21
    check_same(both_results(name, arrays, attributes, domain=domain, version=version, outputs=outputs))


def test_an_activation_that_is_not_known_is_refused() -> None:
    draw = np.random.default_rng(0)
    arrays = [real(draw, 1, 4, 5), real(draw, 6, 4, 3)]
    with pytest.raises(SubjectError, match="FusedConv is not supported with activation 'Mystery'"):
        both_results("FusedConv", arrays, {"activation": "Mystery"}, domain=MICROSOFT)


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.7}])
def test_a_gated_value_is_that_of_the_reference(attributes: dict[str, float]) -> None:
    """ONNX Runtime 1.32 has no kernel for it on a processor."""
    arrays = {key: real(np.random.default_rng(0), 2, 3) for key in "ab"}
    node = onnx.helper.make_node("SwiGLU", ["a", "b"], ["y"], **attributes)
    model = model_of([node], {key: (onnx.TensorProto.FLOAT, [2, 3]) for key in arrays}, ["y"], version=28)
    found = OnnxModule(model, "test.onnx")(*(torch.from_numpy(x) for x in arrays.values()))["y"]
    np.testing.assert_allclose(found.numpy(), ReferenceEvaluator(model).run(None, arrays)[0], atol=1e-6)
