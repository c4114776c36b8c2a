"""ONNX Runtime: the graph that `torch.onnx.export` writes, with dynamic batch and length, or `onnx:FILE`.

A file has the input `input_ids`, optionally `attention_mask` and `position_ids`, and the output `logits`, or one
output. Inputs named `past_key_values...`, as Optimum writes them, get a cache without tokens.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orderproof.errors import UsageError
from orderproof.ports.engines.engine import EngineError, InferenceEngine, LoadedModel, Row, Scores

_DTYPES = {
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32, "tensor(float16)": np.float16,
}  # fmt: skip
EXPORT_ROWS, EXPORT_LENGTH = 2, 5  # of the example inputs; both axes are dynamic


class FixedSizesError(ValueError):
    """The exporter wrote a graph for one batch size or one length."""


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
        wanted = self.session.get_inputs()
        if any(pads) and "attention_mask" not in {entry.name for entry in wanted}:
            raise EngineError("its graph takes no attention_mask, so that rows of different lengths need no pads")
        outputs = [entry.name for entry in self.session.get_outputs()]
        name = "logits" if "logits" in outputs else outputs[0]
        (output,) = self.session.run([name], {entry.name: _input(entry, inputs) for entry in wanted})
        return [Scores(each[pad:]) for pad, each in zip(pads, output, strict=True)]

    def prefill(self, row: Row) -> Scores:
        return self.batch([row])[0]


def _input(entry: Any, inputs: Mapping[str, NDArray[np.int64]]) -> Any:
    """The value of an input of the graph; a cache is empty."""
    dtype = _DTYPES.get(entry.type)
    if entry.name in inputs and dtype is not None:
        return inputs[entry.name].astype(dtype)
    if not entry.name.startswith("past_key_values") or dtype is None:
        raise EngineError(
            f"its graph has an input {entry.name} of {entry.type}; expected {', '.join(inputs)} and a cache"
        )
    rows = len(inputs["input_ids"])
    sizes = [rows, *(size if isinstance(size, int) else 0 for size in entry.shape[1:])]
    return np.zeros(sizes, dtype)


class OnnxRuntimeEngine(InferenceEngine):
    """The engine of this module."""

    def for_target(self, target: str) -> InferenceEngine:
        file = Path(target).expanduser()
        if not file.is_file():
            raise UsageError(f"expected engine {self.name} with a file, {self.name}:model.onnx; no file {target}")
        return replace(self, name=f"{self.name}:{target}", target=str(file))

    def load(self, folder: Path) -> LoadedModel:
        if self.target:
            return _OnnxModel(open_session(Path(self.target)))
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "model.onnx"
            _export(folder, file)
            session = open_session(file)
            check_axes(session)
            return _OnnxModel(session)


def open_session(file: Path) -> Any:
    """A session of ONNX Runtime on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _export(folder: Path, file: Path) -> None:
    """Write the graph of the model in a checkpoint folder."""
    import torch
    from transformers import AutoModelForCausalLM

    from orderproof.library_messages import suppress_warnings
    from orderproof.models.hf.build_subject import use_batched_experts

    with suppress_warnings():
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
        check_weights(model, folder)
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


def check_weights(model: Any, folder: Path) -> None:
    """Raise `EngineError` if transformers loaded a weight with other values than the checkpoint has.

    The graph is then not of this checkpoint. Some models of transformers initialise the embedding of the pad again.
    """
    import torch
    from safetensors import safe_open

    loaded = model.state_dict()
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as stored:
            for name in sorted(loaded.keys() & set(stored.keys())):
                value, found = stored.get_tensor(name).to(loaded[name].dtype), loaded[name]
                if value.shape == found.shape and not torch.allclose(value, found, 0, 0, equal_nan=True):
                    raise EngineError(f"transformers loads {name} with other values than the checkpoint has")


def check_axes(session: Any) -> None:
    """Raise `FixedSizesError` if a size of the example inputs became a constant of the graph."""
    fixed = {entry.name: entry.shape for entry in session.get_inputs() if any(isinstance(n, int) for n in entry.shape)}
    if fixed:
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in fixed.items())
        raise FixedSizesError(f"torch.onnx.export was asked for dynamic axes and wrote fixed ones: {shapes}")


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
    note="onnx:FILE for a graph that you exported",
)
