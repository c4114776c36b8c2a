"""Masks of ONNX files: a file that leaves its mask out of a layer fails padding, its corrected twin passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from orderproof import audit
from orderproof.models import load
from tests.models.onnx_file.graphs import model_of

WIDTH = 8
KINDS = {  # the name of the mask, its type, and its value at real tokens
    "attention_mask": (TensorProto.INT64, 1),
    "keep": (TensorProto.INT32, 1),
    "padding_mask": (TensorProto.BOOL, True),
    "input_mask": (TensorProto.FLOAT, 1.0),
}


def _layer(k: int, given: str, *, masked: bool) -> list[NodeProto]:
    """Attention of tokens to tokens, with the mask or without it."""
    scores = [helper.make_node("Add", [f"raw{k}", "bias"], [f"scores{k}"], name=f"/layer{k}/Add")] if masked else []
    return [
        helper.make_node("MatMul", [given, f"layer{k}.query"], [f"q{k}"]),
        helper.make_node("Transpose", [given], [f"kt{k}"], perm=[0, 2, 1]),
        helper.make_node("MatMul", [f"q{k}", f"kt{k}"], [f"raw{k}"]),
        *scores,
        helper.make_node("Softmax", [f"scores{k}" if masked else f"raw{k}"], [f"weights{k}"]),
        helper.make_node("MatMul", [f"weights{k}", given], [f"y{k}"], name=f"/layer{k}/Mix"),
    ]


def encoder(name: str, *, right: bool, positions: bool = False) -> ModelProto:
    """Two layers of attention, the second with the mask only if `right`."""
    generator = np.random.default_rng(0)
    stored = {
        "words": generator.normal(size=(60, WIDTH)).astype(np.float32),
        "places": generator.normal(size=(512, WIDTH)).astype(np.float32),
        "one": np.array(1.0, np.float32), "low": np.array(-1e9, np.float32), "axis": np.array([1]),
        **{f"layer{k}.query": generator.normal(size=(WIDTH, WIDTH)).astype(np.float32) for k in (0, 1)},
    }  # fmt: skip
    placed = [
        helper.make_node("Gather", ["places", "position_ids"], ["placed"]),
        helper.make_node("Add", ["embedded", "placed"], ["x"]),
    ]
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["embedded" if positions else "x"]),
        *(placed if positions else []),
        helper.make_node("Cast", [name], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "real"], ["pad"]),
        helper.make_node("Mul", ["pad", "low"], ["hidden"]),
        helper.make_node("Unsqueeze", ["hidden", "axis"], ["bias"]),
        *_layer(0, "x", masked=True),
        *_layer(1, "y0", masked=right),
    ]
    sizes = ["batch", "sequence"]
    inputs = {"input_ids": (TensorProto.INT64, sizes), name: (KINDS[name][0], sizes)}
    inputs |= {"position_ids": (TensorProto.INT64, sizes)} if positions else {}
    return model_of(nodes, inputs, ["y1"], stored)


@pytest.mark.parametrize("positions", [False, True], ids=["ids only", "with position ids"])
@pytest.mark.parametrize("name", KINDS)
def test_a_layer_without_the_mask_fails_and_its_twin_passes(name: str, positions: bool, tmp_path: Path) -> None:
    verdicts = {}
    for right in (False, True):
        onnx.save(encoder(name, right=right, positions=positions), tmp_path / f"{right}.onnx")
        report = audit(str(tmp_path / f"{right}.onnx"), laws=("padding", "batch_composition"), kind="encoder")
        verdicts[right] = {f.law: f for f in report.findings}
    assert {law: f.verdict for law, f in verdicts[False].items()} == {
        "padding": "refuted", "batch_composition": "refuted",
    }  # fmt: skip
    assert "layer1/Mix" in verdicts[False]["padding"].entries[0].module
    assert {law: f.verdict for law, f in verdicts[True].items()} == {"padding": "proved", "batch_composition": "held"}


def test_the_inputs_of_a_file_have_roles(tmp_path: Path) -> None:
    onnx.save(encoder("keep", right=True, positions=True), tmp_path / "model.onnx")
    roles = {role.name: role.role for role in load(str(tmp_path / "model.onnx")).input_roles}
    assert roles == {
        "input_ids": "tokens: ids", "keep": "padding mask, 1 at real tokens", "position_ids": "position ids",
    }  # fmt: skip


def test_eight_bits_with_one_scale_for_the_batch_fail_batch(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    stored = {"weight": generator.integers(-100, 100, (WIDTH, WIDTH)).astype(np.int8), "zero": np.array(0, np.int8)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["small", "scale", "centre"]),
        helper.make_node("MatMulInteger", ["small", "weight", "centre", "zero"], ["product"]),
        helper.make_node("Cast", ["product"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["y"]),
    ]
    inputs = {"x": (TensorProto.FLOAT, ["batch", "sequence", WIDTH])}
    onnx.save(model_of(nodes, inputs, ["y"], stored), tmp_path / "model.onnx")
    (finding,) = audit(str(tmp_path / "model.onnx"), laws=("batch",)).findings
    assert finding.verdict == "refuted"


@pytest.mark.parametrize("right", [True, False])
def test_rows_without_a_visible_key_give_zeros_as_exporters_write_them(right: bool, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    stored = {
        "words": generator.normal(size=(60, WIDTH)).astype(np.float32), "axis": np.array([1]),
        "none": np.array(0.0, np.float32), "low": np.array(-np.inf, np.float32), "zero": np.array(0),
        "step": np.array(1),
    }  # fmt: skip
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["x"]),
        helper.make_node("Transpose", ["x"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "turned"], ["scores"]),
        helper.make_node("Cast", ["attention_mask"], ["real"], to=TensorProto.BOOL),
        helper.make_node("Shape", ["input_ids"], ["size"], start=1), helper.make_node("Squeeze", ["size"], ["count"]),
        helper.make_node("Range", ["zero", "count", "step"], ["keys"]),
        helper.make_node("Unsqueeze", ["keys", "axis"], ["queries"]),
        helper.make_node("LessOrEqual", ["keys", "queries"], ["earlier"]),
        helper.make_node("Unsqueeze", ["real", "axis"], ["row"]),
        helper.make_node("And", ["row", "earlier"], ["shown"]),
        helper.make_node("Where", ["shown", "none", "low"], ["bias"]),
        helper.make_node("Add", ["scores", "bias"], ["all"]),
        helper.make_node("Softmax", ["all"], ["weights"], axis=-1),
        helper.make_node("IsNaN", ["weights"], ["empty"]),
        helper.make_node("Where", ["empty", "none", "weights"], ["safe"]),
        helper.make_node("MatMul", ["safe", "x"], ["mixed"]),
        helper.make_node("Relu", ["mixed"], ["y"]) if right else helper.make_node("CumSum", ["mixed", "axis"], ["y"]),
    ]  # fmt: skip
    sizes = (TensorProto.INT64, ["batch", "sequence"])
    model = model_of(nodes, {"input_ids": sizes, "attention_mask": sizes}, ["y"], stored)
    onnx.save(model, tmp_path / "model.onnx")
    (finding,) = audit(str(tmp_path / "model.onnx"), laws=("padding",), kind="encoder").findings
    assert finding.verdict == ("proved" if right else "refuted")
