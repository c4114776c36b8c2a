"""Attention and rotations give what ONNX Runtime gives, on random attributes and odd sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from orderproof import prove
from tests.models.onnx_file.graphs import Array, model_of
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


def prompt(draw: Draw) -> Drawn:
    """Heads that share keys, together in one input or not, rotated or not, with a window, a soft cap or a bias."""
    tokens, heads, groups, width = int(draw.integers(1, 6)), 4, int(draw.choice([1, 2, 4])), 16
    sizes = [heads * width, groups * width, groups * width]
    qkv = [real(draw, 2, tokens, size) for size in sizes]
    inputs: list[Array | None] = [np.concatenate(qkv, -1), None, None] if draw.integers(2) else [*qkv]
    inputs += [real(draw, 2, groups, 0, width)] * 2 if draw.integers(2) else [None, None]
    inputs += [draw.integers(0, tokens, 2).astype(np.int32), np.array(tokens, np.int32)]
    turned = int(draw.integers(2))
    inputs += [real(draw, 9, width // 2), real(draw, 9, width // 2)] if turned else [None, None]
    inputs += [None, maybe(draw, real(draw, 1, 1, tokens, tokens))]
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups, "do_rotary": turned}
    attributes |= {"rotary_interleaved": int(draw.integers(2))} if turned else {}
    attributes |= ({}, {"local_window_size": 2}, {"softcap": 0.7}, {"scale": 0.3})[draw.integers(4)]
    return inputs, attributes, ("y", "key", "value")


@pytest.mark.parametrize("seed", range(16))
def test_a_prompt_has_the_outputs_of_the_runtime_at_its_tokens(seed: int) -> None:
    arrays, attributes, outputs = prompt(np.random.default_rng(seed))
    lengths = arrays[5]
    assert lengths is not None
    (found, expected), *caches = both_results(
        "GroupQueryAttention", arrays, attributes, domain=MICROSOFT, outputs=outputs
    )
    check_same([(found[row, : last + 1], expected[row, : last + 1]) for row, last in enumerate(lengths)])
    check_same(caches)


@pytest.mark.parametrize("name", ["MultiHeadAttention", "GroupQueryAttention"])
def test_a_file_of_a_fused_operator_has_a_theorem(name: str, tmp_path: Path) -> None:
    weights = {key: np.random.default_rng(0).normal(size=(32, 32)).astype(np.float32) for key in "qkv"}
    nodes = [helper.make_node("MatMul", ["x", key], [f"own_{key}"], name=key) for key in "qkv"]
    attributes: dict[str, Any] = {"num_heads": 2, "unidirectional": 1}
    names = ["own_q", "own_k", "own_v"]
    if name == "GroupQueryAttention":
        attributes = {"num_heads": 2, "kv_num_heads": 2}
        names += ["", "", "lengths", "count"]
        nodes += [
            helper.make_node("Shape", ["x"], ["rows"], end=1),
            helper.make_node("Shape", ["x"], ["size"], start=1, end=2),
            helper.make_node("Sub", ["size", "one"], ["last"]), helper.make_node("Expand", ["last", "rows"], ["wide"]),
            helper.make_node("Cast", ["wide"], ["lengths"], to=onnx.TensorProto.INT32),
            helper.make_node("Cast", ["size"], ["count"], to=onnx.TensorProto.INT32),
        ]  # fmt: skip
    nodes.append(helper.make_node(name, names, ["y", "key", "value"], domain=MICROSOFT, **attributes))
    inputs = {"x": (onnx.TensorProto.FLOAT, ["batch", "sequence", 32])}
    model = model_of(nodes, inputs, ["y"], {**weights, "one": np.array([1])})
    model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    onnx.save(model, tmp_path / "model.onnx")
    finding = prove(str(tmp_path / "model.onnx"), "causal")
    assert finding.verdict == "proved"
    assert finding.theorem is not None
