"""ONNX files as subjects: what is proved of them, which numbers count as weights, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper

from orderproof import audit, prove
from orderproof.errors import CheckpointError, SubjectError, UsageError
from orderproof.models import load
from orderproof.models.onnx_file import load_file
from orderproof.models.onnx_file.module import OnnxModule
from orderproof.models.stored_weights import is_weight
from orderproof.subject_spec import Layout
from tests.models.onnx_file.graphs import attention_model, model_of


@pytest.fixture
def saved(tmp_path: Path):
    def save(model: onnx.ModelProto, name: str = "model.onnx") -> str:
        onnx.save(model, tmp_path / name)
        return str(tmp_path / name)

    return save


def test_a_mask_in_the_file_is_read_and_weights_are_not(saved) -> None:
    path = saved(attention_model(causal=True))
    finding = prove(path, "causal")
    assert finding.verdict == "proved"
    assert finding.scope.weights == "all"
    assert finding.scope.tensors_read == ("hidden",)
    notes = load(path).notes
    assert "2 tensors of the file count as weights" in " ".join(notes)
    assert any("computes what ONNX Runtime computes" in note for note in notes)


def test_a_refutation_names_the_node(saved) -> None:
    report = audit(saved(attention_model(causal=False)), laws=("causal", "permutation", "batch"))
    verdicts = {finding.law: finding for finding in report.findings}
    assert verdicts["causal"].verdict == "refuted"
    assert "layer/MatMul_3" in verdicts["causal"].reason
    assert verdicts["permutation"].verdict == "proved"
    assert verdicts["batch"].verdict == "proved"


@pytest.mark.filterwarnings("ignore")
def test_an_exported_module_has_a_theorem_for_every_length(tmp_path: Path) -> None:
    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.key = torch.nn.Embedding(50, 16), torch.nn.Linear(16, 16)

        def forward(self, ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            x = self.table(ids)
            count = ids.shape[1]
            visible = torch.ones(count, count, dtype=torch.bool).tril() & attention_mask[:, None].bool()
            return (x @ self.key(x).transpose(1, 2)).masked_fill(~visible, -torch.inf).softmax(-1) @ x

    path, ids = str(tmp_path / "attention.onnx"), torch.randint(50, (2, 5))
    axes = {name: {0: "batch", 1: "sequence"} for name in ("ids", "attention_mask")}
    torch.onnx.export(
        Attention(), (ids, torch.ones_like(ids)), path, dynamo=False, input_names=list(axes), dynamic_axes=axes
    )
    (finding,) = audit(path, laws=("causal",)).findings
    assert finding.verdict == "proved"
    assert finding.theorem is not None
    assert finding.theorem.proved
    assert "every attention mask with pads on the right (at its real tokens)" in finding.theorem.covers
    assert load(path).input_roles[1].role.startswith("padding mask, 1 at real tokens, for pads on the right")
    assert int(load(path).sample(30, 0).inputs[0].max()) > 10  # ids up to the size of the table


def test_sizes_that_the_file_fixes_stay_fixed(saved) -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"])
    model = model_of([node], {"x": (1, [2, 7, 4])}, ["y"], {"axis": np.array(1)})
    with pytest.raises(ValueError, match="axis 1 of input 'x' has 7 entries in the file; got 8"):
        OnnxModule(model, "test.onnx")(torch.zeros(2, 8, 4))
    assert prove(saved(model), "causal").scope.length == 7


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.randn(4, 4), True),
        (torch.ones(4), True),
        (torch.zeros(4), True),
        (torch.randn(1, 4, 1), True),
        (torch.tensor(0.5), False),
        (torch.tensor([0.5]), False),
        (torch.arange(4), False),
        (torch.ones(4, 4).tril(), False),
        (torch.full((4, 4), -torch.inf).triu(1), False),
        (torch.randn(4, 4).tril(), False),
        (torch.tensor([-1e9, 0.5]), False),
    ],
)
def test_which_tensors_count_as_weights(tensor: torch.Tensor, expected: bool) -> None:
    assert is_weight(tensor) is expected


def test_what_cannot_be_read_is_refused(tmp_path: Path, saved) -> None:
    with pytest.raises(CheckpointError, match=r"missing\.onnx: no such file"):
        load(str(tmp_path / "missing.onnx"))
    (tmp_path / "damaged.onnx").write_bytes(b"no protobuf")
    with pytest.raises(SubjectError, match="cannot be read as an ONNX file"):
        load(str(tmp_path / "damaged.onnx"))
    with pytest.raises(UsageError, match="attention can be chosen for transformers models only"):
        load(saved(attention_model(causal=True)), attention="eager")


def test_a_translation_that_differs_from_the_runtime_is_refused(saved, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(attention_model(causal=True))
    monkeypatch.setattr(OnnxModule, "forward", lambda self, x: {"y": x + 1})
    with pytest.raises(SubjectError, match="another output 'y' than ONNX Runtime"):
        load(path)


def test_inputs_and_axes_can_be_stated(saved) -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"])
    path = Path(saved(model_of([node], {"x": (1, ["a", "b", "c"])}, ["y"], {"axis": np.array(2)})))
    subject = load_file.load_onnx(path, inputs=(torch.randn(2, 4, 9),), layout=Layout(token_axis=2))
    assert subject.token_axes == (2,)
    assert prove(str(path), "causal", token_axis=2).verdict == "proved"


def test_a_cache_has_no_tokens_and_a_mask_shows_all(saved) -> None:
    real, integer = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    inputs = {
        "x": (real, ["batch", "sequence_length", 8]),
        "past_key_values.0.key": (real, ["batch", "past_sequence_length", 8]),
        "attention_mask": (integer, ["batch", "past_sequence_length + sequence_length"]),
    }
    nodes = [
        helper.make_node("Concat", ["past_key_values.0.key", "x"], ["all"], axis=1),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=real),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["all", "column"], ["masked"]),
        helper.make_node("CumSum", ["masked", "axis"], ["y"]),
    ]
    path = saved(model_of(nodes, inputs, ["y"], {"axis": np.array(1), "last": np.array([2])}))
    subject = load(path)
    assert len(subject.token_axes) == 1
    assert "computed for each number of tokens: past_key_values.0.key (zeros)" in subject.notes
    found = audit(path, laws=("causal", "batch")).findings
    assert [(finding.verdict, finding.theorem.proved) for finding in found] == [("proved", True)] * 2


QUANTIZED = {"scale": np.array(0.01, np.float32), "zero": np.array(3, np.uint8)}


@pytest.mark.parametrize(
    "nodes",
    [
        [
            helper.make_node("Gather", ["table", "ids"], ["small"]),
            helper.make_node("DequantizeLinear", ["small", "scale", "zero"], ["y"]),
        ],
        [
            helper.make_node("DequantizeLinear", ["table", "scale", "zero"], ["real"]),
            helper.make_node("Gather", ["real", "ids"], ["y"]),
        ],
        [
            helper.make_node("Unsqueeze", ["ids", "last"], ["column"]),
            helper.make_node("Squeeze", ["column", "last"], ["row"]),
            helper.make_node("DequantizeLinear", ["table", "scale", "zero"], ["real"]),
            helper.make_node("Transpose", ["real"], ["turned"]),
            helper.make_node("Gather", ["turned", "row"], ["found"], axis=1),
            helper.make_node("Transpose", ["found"], ["y"], perm=[1, 2, 0]),
        ],
    ],
    ids=["quantized rows", "quantized table", "columns of a turned table"],
)
def test_ids_use_all_rows_of_a_quantized_table(saved, nodes: list[onnx.NodeProto]) -> None:
    table = np.random.default_rng(0).integers(0, 255, (500, 8)).astype(np.uint8)
    stored = {"table": table, "last": np.array([2]), **QUANTIZED}
    path = saved(model_of(nodes, {"ids": (onnx.TensorProto.INT64, ["batch", "sequence"])}, ["y"], stored))
    ids = load(path).sample(40, 0).inputs[0]
    assert 400 < int(ids.max()) < 500


def test_ids_of_a_fused_embedding_use_all_rows(saved) -> None:
    generator, shapes = np.random.default_rng(0), {"words": (300, 8), "places": (64, 8), "weight": (8,), "bias": (8,)}
    stored = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    names = ["ids", "", "words", "places", "", "weight", "bias"]
    node = helper.make_node("EmbedLayerNormalization", names, ["y", "count"], domain="com.microsoft")
    model = model_of([node], {"ids": (onnx.TensorProto.INT32, ["batch", "sequence"])}, ["y"], stored)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    ids = load(saved(model)).sample(40, 0).inputs[0]
    assert 240 < int(ids.max()) < 300


def test_ids_that_are_real_numbers_use_all_rows_of_their_table(saved) -> None:
    """As converters from TensorFlow write them: a cast to integers before the look-up."""
    table = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["ids"], ["whole"], to=onnx.TensorProto.INT32),
        helper.make_node("Gather", ["table", "whole"], ["y"]),
    ]
    path = saved(model_of(nodes, {"ids": (onnx.TensorProto.FLOAT, ["batch", "sequence"])}, ["y"], {"table": table}))
    ids = load(path).sample(40, 0).inputs[0]
    assert 400 < int(ids.max()) < 500
    assert prove(path, "causal").verdict == "proved"
