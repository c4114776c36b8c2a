"""Fused operators of transformers give what ONNX Runtime gives, on random attributes and odd sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orderproof.errors import SubjectError
from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.runtime import both_results, check_same

Draw = np.random.Generator
Drawn = tuple[list[Array | None], dict[str, Any], tuple[str, ...]]  # inputs, attributes, outputs
MICROSOFT = "com.microsoft"


def real(draw: Draw, *shape: int) -> Array:
    """Numbers from a normal distribution."""
    return draw.normal(size=shape).astype(np.float32)


def maybe(draw: Draw, array: Array) -> Array | None:
    """The array, or None."""
    return array if draw.integers(2) else None


def _epsilon(draw: Draw) -> dict[str, Any]:
    return {"epsilon": float(draw.choice([1e-12, 1e-3]))} if draw.integers(2) else {}


def skip_norm(draw: Draw, *, simple: bool) -> Drawn:
    """A sum of two or three parts; `skip` may be broadcast over rows."""
    tokens, width = int(draw.integers(1, 6)), int(draw.integers(1, 9))
    skip = real(draw, *((tokens, width), (1, tokens, width), (2, tokens, width))[draw.integers(3)])
    weights = [real(draw, width)] if simple else [real(draw, width), maybe(draw, real(draw, width))]
    bias = maybe(draw, real(draw, width))
    outputs = ("y", "", "", "sum") if draw.integers(2) else ("y",)
    return [real(draw, 2, tokens, width), skip, *weights, bias], _epsilon(draw), outputs


def embedding(draw: Draw) -> Drawn:
    """Ids of tokens, of segments and of positions, each with a table, and a mask."""
    rows, tokens, width = 2, int(draw.integers(1, 6)), 4
    segments = bool(draw.integers(2))
    ids = draw.integers(0, 9, (rows, tokens)).astype(np.int32)
    kinds = draw.integers(0, 2, (rows, tokens)).astype(np.int32)
    mask = maybe(draw, (np.arange(tokens) < draw.integers(1, tokens + 1, (rows, 1))).astype(np.int32))
    places = maybe(draw, draw.integers(0, 7, (rows, tokens)).astype(np.int32))
    tables = [real(draw, 9, width), real(draw, 7, width), real(draw, 2, width) if segments else None]
    weights = [real(draw, width), real(draw, width)]
    outputs = ("y", "count", "sum") if draw.integers(2) else ("y", "count")
    return [ids, kinds if segments else None, *tables, *weights, mask, places], _epsilon(draw), outputs


def fused_product(draw: Draw) -> Drawn:
    """Factors that are transposed over batches, over matrices, or not."""
    shapes, attributes = {}, {"alpha": float(draw.uniform(-1, 2))}
    for key, (rows, columns) in {"A": (3, 5), "B": (5, 2)}.items():
        flip, batch = int(draw.integers(2)), int(draw.integers(2))
        matrix = (columns, rows) if flip else (rows, columns)
        shapes[key] = (matrix[0], 4, matrix[1]) if batch else (4, *matrix)
        attributes |= {f"trans{key}": flip, f"transBatch{key}": batch}
    return [real(draw, *shapes["A"]), real(draw, *shapes["B"])], attributes, ("y",)


def gelu(draw: Draw, *, bias: bool | None) -> Drawn:
    """A GELU of a tensor, plus a bias."""
    width = int(draw.integers(1, 9))
    own = real(draw, width)
    return [real(draw, 2, 3, width), own if bias else maybe(draw, own) if bias is None else None], {}, ("y",)


def rms_norm(draw: Draw) -> Drawn:
    """A normalization over the last axes."""
    shape, axis = (2, 3, 5), int(draw.integers(-3, 3))
    return [real(draw, *shape), real(draw, *shape[axis % 3 :])], {"axis": axis, **_epsilon(draw)}, ("y",)


OPERATORS: dict[tuple[str, str], Callable[[Draw], Drawn]] = {
    (MICROSOFT, "SkipLayerNormalization"): lambda draw: skip_norm(draw, simple=False),
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): lambda draw: skip_norm(draw, simple=True),
    (MICROSOFT, "EmbedLayerNormalization"): embedding,
    (MICROSOFT, "FusedMatMul"): fused_product,
    (MICROSOFT, "BiasGelu"): lambda draw: gelu(draw, bias=True),
    (MICROSOFT, "FastGelu"): lambda draw: gelu(draw, bias=None),
    (MICROSOFT, "Gelu"): lambda draw: gelu(draw, bias=False),
    (MICROSOFT, "QuickGelu"): lambda draw: (
        [real(draw, 3, 5)], {"alpha": float(draw.uniform(0.5, 2))} if draw.integers(2) else {}, ("y",)
    ),
    ("", "SimplifiedLayerNormalization"): rms_norm,
    ("", "RMSNormalization"): rms_norm,
}  # fmt: skip


@pytest.mark.parametrize(("domain", "name"), OPERATORS)
@pytest.mark.parametrize("seed", range(8))
def test_a_fused_operator_gives_what_the_runtime_gives(domain: str, name: str, seed: int) -> None:
    arrays, attributes, outputs = OPERATORS[domain, name](np.random.default_rng(seed))
    check_same(both_results(name, arrays, attributes, domain=domain, version=23, outputs=outputs))


def test_the_mean_of_a_skipped_normalization_is_refused() -> None:
    arrays, attributes, _ = skip_norm(np.random.default_rng(0), simple=False)
    with pytest.raises(SubjectError, match="not supported with the mean and the deviation as outputs"):
        both_results("SkipLayerNormalization", arrays, attributes, domain=MICROSOFT, outputs=("y", "mean"))
