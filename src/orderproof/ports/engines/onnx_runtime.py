"""ONNX Runtime: the graph that `torch.onnx.export` writes, with dynamic batch and length."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orderproof.ports.engines.engine import InferenceEngine, LoadedModel, Row, Scores

EXPORT_ROWS, EXPORT_LENGTH = 2, 5  # of the example inputs; both axes are dynamic


class _OnnxModel(LoadedModel):
    def __init__(self, session: Any) -> None:
        self.session = session

    def batch(self, rows: Sequence[Row]) -> list[Scores]:
        longest = max(map(len, rows))
        pads = [longest - len(row) for row in rows]
        tokens = np.array([[0] * pad + list(row) for pad, row in zip(pads, rows, strict=True)], np.int64)
        mask = (np.arange(longest) >= np.array(pads)[:, None]).astype(np.int64)
        inputs = {
            "input_ids": tokens, "attention_mask": mask, "position_ids": np.maximum(mask.cumsum(-1) - 1, 0),
        }  # fmt: skip
        wanted = {entry.name for entry in self.session.get_inputs()}
        (output,) = self.session.run(None, {name: value for name, value in inputs.items() if name in wanted})
        return [Scores(each[pad:]) for pad, each in zip(pads, output, strict=True)]

    def prefill(self, row: Row) -> Scores:
        return self.batch([row])[0]


class OnnxRuntimeEngine(InferenceEngine):
    """The engine of this module."""

    def load(self, folder: Path) -> LoadedModel:
        import onnxruntime

        with tempfile.TemporaryDirectory() as target:
            file = Path(target) / "model.onnx"
            _export(folder, file)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        return _OnnxModel(session)


def _export(folder: Path, file: Path) -> None:
    """Write the graph of the model in a checkpoint folder."""
    import torch
    from transformers import AutoModelForCausalLM

    from orderproof.library_messages import suppress_warnings
    from orderproof.models.hf.build_subject import use_batched_experts

    with suppress_warnings():
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
        use_batched_experts(model)  # ONNX has no operator for grouped products
        names = _input_names(model)

        class Logits(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
                logits: torch.Tensor = self.model(**dict(zip(names, inputs, strict=True)), use_cache=False).logits
                return logits

        shape = (EXPORT_ROWS, EXPORT_LENGTH)
        values = {
            "input_ids": torch.ones(shape, dtype=torch.long), "attention_mask": torch.ones(shape, dtype=torch.long),
            "position_ids": torch.arange(EXPORT_LENGTH).expand(shape).contiguous(),
        }  # fmt: skip
        axes = {0: torch.export.Dim("row"), 1: torch.export.Dim("token")}
        torch.onnx.export(
            Logits(), tuple(values[name] for name in names), str(file), input_names=names, dynamo=True, verbose=False,
            dynamic_shapes=((axes,) * len(names),), external_data=False,
        )  # fmt: skip


def _input_names(model: Any) -> list[str]:
    """The inputs of the graph; without position ids if the model itself counts them from another number than 0."""
    import inspect

    import torch

    accepted = inspect.signature(model.forward).parameters
    names = [name for name in ("input_ids", "attention_mask") if name in accepted]
    if "position_ids" in accepted:
        tokens = torch.arange(3, 3 + EXPORT_LENGTH)[None]
        with torch.no_grad():
            usual = model(tokens, use_cache=False).logits
            counted = model(tokens, position_ids=torch.arange(EXPORT_LENGTH)[None], use_cache=False).logits
        if torch.allclose(usual, counted, rtol=0, atol=1e-4 * float(usual.abs().max())):
            names.append("position_ids")
    return names


ENGINE = OnnxRuntimeEngine(
    name="onnx",
    title="ONNX Runtime (torch.onnx.export)",
    packages=("onnxruntime", "onnx", "onnxscript"),
    distribution="onnxruntime",
    extra="onnx",
    abilities=frozenset({"prefill", "batch"}),
    reads_config=False,
)
