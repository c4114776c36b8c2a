"""A translation agrees with ONNX Runtime if rounding explains the difference, and only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import ModelProto, TensorProto, helper

from orderproof.errors import SubjectError
from orderproof.models import load
from orderproof.models.onnx_file import load_file
from orderproof.models.onnx_file.agreement import check_agreement
from orderproof.models.onnx_file.module import OnnxModule
from orderproof.models.onnx_file.operators import elementwise
from tests.models.onnx_file.graphs import model_of

node = helper.make_node
WIDTH = 512


def cancelling() -> ModelProto:
    """A product minus the same product in another order: nothing but rounding is left, times a large number."""
    draw = np.random.default_rng(0)
    order = draw.permutation(WIDTH)
    weight = draw.normal(size=(WIDTH, 4)).astype(np.float32)
    stored = {"a": weight, "b": weight[order], "order": order, "large": np.array(1e6, np.float32)}
    nodes = [
        node("MatMul", ["x", "a"], ["first"]), node("Gather", ["x", "order"], ["turned"], axis=2),
        node("MatMul", ["turned", "b"], ["second"]), node("Sub", ["first", "second"], ["rest"]),
        node("Mul", ["rest", "large"], ["y"]),
    ]  # fmt: skip
    return model_of(nodes, {"x": (TensorProto.FLOAT, ["batch", "sequence", WIDTH])}, ["y"], stored)


def test_a_difference_that_rounding_explains_is_none(tmp_path: Path) -> None:
    onnx.save(cancelling(), tmp_path / "model.onnx")
    assert any("computes what ONNX Runtime computes" in note for note in load(str(tmp_path / "model.onnx")).notes)


def test_rounding_of_the_results_is_measured_on_the_graph() -> None:
    graph, x = OnnxModule(cancelling(), "test.onnx"), torch.randn(2, 3, WIDTH)
    found = graph(x)
    check_agreement("test.onnx", graph, [x], found, [found["y"].numpy() + 1])
    with pytest.raises(SubjectError, match="1e\\+05 apart, where rounding explains"):
        check_agreement("test.onnx", graph, [x], found, [found["y"].numpy() + 1e5])


def test_a_sigmoid_near_zero_may_differ_by_units_of_one(tmp_path: Path) -> None:
    """The runtime computes it as 0.5 and an odd function: 6.0e-08 for 1.1e-07, as at the end of a speech detector."""
    nodes = [node("Sub", ["x", "far"], ["low"]), node("Sigmoid", ["low"], ["y"])]
    model = model_of(
        nodes, {"x": (TensorProto.FLOAT, ["batch", "sequence", 8])}, ["y"], {"far": np.array(16, np.float32)}
    )
    onnx.save(model, tmp_path / "model.onnx")
    assert any("computes what ONNX Runtime computes" in note for note in load(str(tmp_path / "model.onnx")).notes)


def test_rows_of_a_quantized_layer_are_compared_on_one_thread(tmp_path: Path) -> None:
    """On two, the runtime quantizes the states of each half of the rows with a scale of their own."""
    draw = np.random.default_rng(0)
    stored: dict[str, np.ndarray] = {
        "w": draw.integers(-127, 128, (1, 4, 32)).astype(np.int8),
        "r": draw.integers(-127, 128, (1, 8, 32)).astype(np.int8),
        "scale": np.array([0.02], np.float32), "zero": np.array([0], np.int8), "axis": np.array([1]),
    }  # fmt: skip
    names = ["turned", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"]
    nodes = [
        node("Transpose", ["x"], ["turned"], perm=[1, 0, 2]),
        node("DynamicQuantizeLSTM", names, ["states"], domain="com.microsoft", hidden_size=8),
        node("Squeeze", ["states", "axis"], ["flat"]), node("Transpose", ["flat"], ["y"], perm=[1, 0, 2]),
    ]  # fmt: skip
    model = model_of(nodes, {"x": (TensorProto.FLOAT, ["batch", "sequence", 4])}, ["y"], stored)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, tmp_path / "model.onnx")
    assert any("computes what ONNX Runtime computes" in note for note in load(str(tmp_path / "model.onnx")).notes)


def test_a_small_difference_without_rounding_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of([node("Exp", ["x"], ["y"])], {"x": (TensorProto.FLOAT, ["batch", "sequence", 8])}, ["y"])
    onnx.save(model, tmp_path / "model.onnx")
    load(str(tmp_path / "model.onnx"))
    monkeypatch.setitem(elementwise._UNARY, "Exp", lambda x: torch.exp(x) * 1.0001)
    with pytest.raises(SubjectError, match="another output 'y' than ONNX Runtime"):
        load(str(tmp_path / "model.onnx"))


def test_optimizations_that_change_outputs_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime fuses quantized operators, which round in another place: the graph as written decides."""
    model = model_of([node("Exp", ["x"], ["y"])], {"x": (TensorProto.FLOAT, ["batch", "sequence", 8])}, ["y"])
    onnx.save(model, tmp_path / "model.onnx")
    plain, levels = load_file._run, onnxruntime.GraphOptimizationLevel
    monkeypatch.setattr(
        load_file, "_run", lambda *given: [x + 0.5 * (given[-1] == levels.ORT_ENABLE_ALL) for x in plain(*given)]
    )
    notes = " ".join(load(str(tmp_path / "model.onnx")).notes)
    assert "without its graph optimizations, which change an output by 0.5" in notes


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_equal_values_that_are_no_numbers_agree(value: float) -> None:
    graph = OnnxModule(cancelling(), "test.onnx")
    found = {"y": torch.tensor([value, 1.0])}
    check_agreement("test.onnx", graph, [], found, [np.array([value, 1.0], np.float32)])


def test_positions_that_are_real_numbers_are_not_changed() -> None:
    """An id computed as a real number would be another id after a change of its last place."""
    nodes = [node("Cast", ["x"], ["real"], to=TensorProto.FLOAT), node("Cast", ["real"], ["y"], to=TensorProto.INT64)]
    graph, x = OnnxModule(model_of(nodes, {"x": (TensorProto.INT64, ["n"])}, ["y"]), "test.onnx"), torch.arange(9)
    with pytest.raises(SubjectError, match="1 apart, where rounding explains 0"):
        check_agreement("test.onnx", graph, [x], graph(x), [np.arange(9) + 1])
