"""Attention and rotations give what ONNX Runtime gives, on random attributes and odd sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from orderproof import prove
from orderproof.errors import SubjectError
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


def standard(draw: Draw) -> Drawn:
    """Heads that share keys, flat inputs, a cache, masks of both kinds, a soft cap and a causal flag."""
    queries, new, past, width = (int(draw.integers(1, 6)) for _ in range(4))
    heads, groups = (4, int(draw.choice([1, 2, 4])))
    cache = bool(draw.integers(2))
    new = queries if cache else new
    total, flat = new + past * cache, bool(draw.integers(2))
    shapes = [(2, heads, queries, width), (2, groups, new, width), (2, groups, new, width)]
    q, k, v = (real(draw, *shape) for shape in shapes)
    if flat:
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (q, k, v))
    mask_shape = ((queries, total), (2, 1, queries, total), (2, heads, queries, total))[draw.integers(3)]
    mask = (None, draw.integers(0, 2, mask_shape).astype(bool), real(draw, *mask_shape))[draw.integers(3)]
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": groups} if flat else {}
    attributes["is_causal"] = int(draw.integers(2))
    attributes |= {"softcap": 0.7} if draw.integers(2) else {}
    attributes |= {"scale": 0.3} if draw.integers(2) else {}
    caches = [real(draw, 2, groups, past, width) for _ in range(2)] if cache else [None, None]
    return [q, k, v, mask, *caches], attributes, ("y", "key", "value") if cache else ("y",)


def with_lengths(draw: Draw) -> Drawn:
    """Keys of rows up to a length, of version 24."""
    queries, keys = int(draw.integers(1, 5)), int(draw.integers(1, 6))
    inputs = [real(draw, 2, 2, n, 3) for n in (queries, keys, keys)]
    mask = maybe(draw, draw.integers(0, 2, (queries, keys)).astype(bool))
    return [*inputs, mask, None, None, draw.integers(1, keys + 1, 2)], {}, ("y",)


def _mask(draw: Draw, queries: int, keys: int) -> Array | None:
    forms = [
        None,
        draw.integers(1, keys + 1, 2),
        (np.arange(keys) < draw.integers(1, keys + 1, (2, 1))),
        np.maximum(
            draw.integers(0, 2, (2, queries, keys)), np.arange(keys) == 0
        ),  # -10000 leaves few digits of a score
    ]
    form = forms[draw.integers(4)]
    return None if form is None else form.astype(np.int32)


def _options(draw: Draw, heads: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": int(draw.integers(2))}
    attributes |= {"scale": 0.3} if draw.integers(2) else {}
    return attributes | ({"mask_filter_value": -5.0} if draw.integers(3) == 0 else {})


def projected(draw: Draw) -> Drawn:
    """Attention with its projection, a mask of each form, a cache and a bias of scores."""
    tokens, past, heads, width = int(draw.integers(1, 6)), int(draw.integers(1, 4)), 2, 3
    cache, hidden = bool(draw.integers(2)), 6
    total = tokens + past * cache
    inputs = [real(draw, 2, tokens, 5), real(draw, 5, 3 * hidden), real(draw, 3 * hidden), _mask(draw, tokens, total)]
    inputs += [real(draw, 2, 2, heads, past, width) if cache else None]
    inputs += [None if cache else maybe(draw, real(draw, 2, heads, tokens, total))]
    return inputs, _options(draw, heads), ("y", "present") if cache else ("y",)


def multi_head(draw: Draw) -> Drawn:
    """Attention of projected queries, keys and values."""
    queries, new, past, heads, width = *(int(draw.integers(1, 6)) for _ in range(3)), 2, 3
    cache = bool(draw.integers(2))
    new = queries if cache else new
    total = new + past * cache
    inputs: list[Array | None] = [real(draw, 2, n, heads * width) for n in (queries, new, new)]
    inputs += [maybe(draw, real(draw, 3 * heads * width)), _mask(draw, queries, total)]
    inputs += [maybe(draw, real(draw, (1, 2)[draw.integers(2)], heads, queries, total))]
    inputs += [real(draw, 2, heads, past, width) for _ in range(2)] if cache else []
    return inputs, _options(draw, heads), ("y", "key", "value") if cache else ("y",)


def rotation(draw: Draw, *, fused: bool) -> Drawn:
    """Rotation of all of a head or a part of it, of pairs of neighbours or of halves."""
    tokens, heads, width = int(draw.integers(1, 6)), 2, 8
    part = int(draw.choice([0, 4]))
    flat, pairs = bool(draw.integers(2)), (part or width) // 2
    x = real(draw, 2, tokens, heads * width) if flat else real(draw, 2, heads, tokens, width)
    attributes: dict[str, Any] = {"interleaved": int(draw.integers(2))}
    attributes |= {"num_heads": heads} if flat or part else {}
    attributes |= {"rotary_embedding_dim": part} if part else {}
    given = fused or bool(draw.integers(2))
    positions = draw.integers(0, 9, (2, tokens))
    if fused and draw.integers(2):
        positions = np.array([3])
    shape = (9, pairs) if given else (2, tokens, pairs)
    tables = [real(draw, *shape), real(draw, *shape)]
    return [x, positions, *tables] if fused else [x, *tables, positions if given else None], attributes, ("y",)


OPERATORS: dict[tuple[str, str, int], Callable[[Draw], Drawn]] = {
    ("", "Attention", 23): standard,
    ("", "Attention", 24): with_lengths,
    (MICROSOFT, "Attention", 21): projected,
    (MICROSOFT, "MultiHeadAttention", 21): multi_head,
    ("", "RotaryEmbedding", 23): lambda draw: rotation(draw, fused=False),
    (MICROSOFT, "RotaryEmbedding", 21): lambda draw: rotation(draw, fused=True),
}


@pytest.mark.parametrize(("domain", "name", "version"), OPERATORS)
@pytest.mark.parametrize("seed", range(16))
def test_an_operator_of_attention_gives_what_the_runtime_gives(domain: str, name: str, version: int, seed: int) -> None:
    arrays, attributes, outputs = OPERATORS[domain, name, version](np.random.default_rng(seed))
    check_same(both_results(name, arrays, attributes, domain=domain, version=version, outputs=outputs))


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


def test_the_scores_as_an_output_are_refused() -> None:
    arrays = [real(np.random.default_rng(0), 2, 2, 3, 4)] * 3
    with pytest.raises(SubjectError, match="Attention is not supported with the scores as an output"):
        both_results("Attention", arrays, {}, version=23, outputs=("y", "", "", "scores"))


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
