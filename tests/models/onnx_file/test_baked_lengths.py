"""Files of torch's exporter: a length that is kept from the example is found at its node, an open one passes.

The dynamic quantization of ONNX Runtime has one scale for the batch, so a row depends on the others.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import SubjectError
from orderproof.models import load
from orderproof.records.audit import Finding
from orderproof.subject_spec import Layout
from tests.models.onnx_file.graphs import model_of

LENGTH = 8  # of the example


class Encoder(nn.Module):
    """Attention with positions; `kept` says how the outputs are cut."""

    def __init__(self, kept: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.kept = kept
        self.words, self.places = nn.Embedding(60, 16), nn.Embedding(256, 16)
        self.mix, self.head = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        tokens = int(input_ids.shape[1]) if self.kept == "number" else input_ids.shape[1]
        number = int(input_ids.shape[1])
        x = self.words(input_ids) + self.places.weight[: number if self.kept == "table" else input_ids.shape[1]]
        mixed = self.mix(x)
        q, k, v = (mixed.reshape(-1, number, 48) if self.kept == "shape" else mixed).chunk(3, -1)
        seen = attention_mask.bool()[:, None]
        seen = seen & torch.ones(number, number, dtype=torch.bool).tril() if self.kept == "mask" else seen
        x = x + (q @ k.transpose(-1, -2) / 4).masked_fill(~seen, -1e9).softmax(-1) @ v
        return self.head(x)[:, :tokens] if self.kept != "first" else self.head(x[:, :LENGTH])


def exported(folder: Path, kept: str) -> Path:
    path = folder / f"{kept}.onnx"
    given = (torch.randint(60, (2, LENGTH)), torch.ones(2, LENGTH, dtype=torch.long))
    names = ["input_ids", "attention_mask"]
    axes = {name: {0: "batch", 1: "sequence"} for name in (*names, "last_hidden_state")}
    torch.onnx.export(
        Encoder(kept).eval(), given, str(path), input_names=names, output_names=["last_hidden_state"],
        dynamic_axes=axes, dynamo=False, opset_version=17,
    )  # fmt: skip
    return path


def failures(path: Path) -> dict[str, Finding]:
    report = audit(load(str(path), assume={"model_kind": "encoder"}))
    return {f.law: f for f in report.findings if f.outcome == "fail"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kept", ["number", "first"])
def test_length_of_the_example_is_found_at_its_node(tmp_path: Path, kept: str) -> None:
    found = failures(exported(tmp_path, kept))
    assert list(found) == ["context_length"]
    assert "Slice" in found["context_length"].witness.first_violating_module
    assert "dynamic axis" in found["context_length"].remedy


@pytest.mark.filterwarnings("ignore")
def test_open_length_passes(tmp_path: Path) -> None:
    assert not failures(exported(tmp_path, "open"))


def test_one_row_that_is_kept_is_found_at_its_node(tmp_path: Path) -> None:
    """A shape [token, 1, width] with the one row of the example, as the attention of torch exports it."""
    nodes = [
        onnx.helper.make_node("Shape", ["x"], ["tokens"], start=1, end=2),
        onnx.helper.make_node("Concat", ["tokens", "rest"], ["sizes"], axis=0),
        onnx.helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0, 2]),
        onnx.helper.make_node("Reshape", ["turned", "sizes"], ["split"], name="view"),
        onnx.helper.make_node("Transpose", ["split"], ["y"], perm=[1, 0, 2]),
    ]
    inputs = {"x": (onnx.TensorProto.FLOAT, ["batch", "sequence", 8])}
    onnx.save(model_of(nodes, inputs, ["y"], {"rest": np.array([1, 8])}), tmp_path / "model.onnx")
    with pytest.raises(SubjectError, match="node 'view' fails for 2 rows and not for one"):
        load(str(tmp_path / "model.onnx"))
    assert load(str(tmp_path / "model.onnx"), layout=Layout(shapes={"x": [1, 7, 8]})).default_length == 7


@pytest.mark.filterwarnings("ignore")
def test_one_scale_for_the_batch_is_found(tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    path = tmp_path / "int8.onnx"
    quantization.quantize_dynamic(str(exported(tmp_path, "open")), str(path), weight_type=quantization.QuantType.QInt8)
    assert {"batch", "batch_composition"} <= failures(path).keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kept", "node"), [("shape", "Reshape"), ("table", "Add"), ("mask", "And")])
def test_a_call_of_another_length_names_the_node_that_keeps_one(tmp_path: Path, kept: str, node: str) -> None:
    path = exported(tmp_path, kept)
    with pytest.raises(SubjectError, match=rf"node '{node}' keeps the length 8 of .*; --length 8 audits this length"):
        load(str(path))
    assert load(str(path), length=LENGTH).default_length == LENGTH
