"""Files that a user exported or converted: `onnx:FILE` and `mlx:FOLDER`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from transformers import AutoModelForCausalLM, MistralConfig

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.ports.engines import onnx_runtime
from orderproof.ports.engines.engine import EngineError
from orderproof.ports.engines.registry import find_engine
from tests.ports.planted_engine import PlantedEngine

LAWS = ["same_prefill", "same_padded_batch", "same_past_window"]
needs_onnx = pytest.mark.skipif(not find_engine("onnx").is_installed, reason="ONNX Runtime is not installed")
needs_mlx = pytest.mark.skipif(not find_engine("mlx").is_installed, reason="MLX is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with a sliding window of 16 tokens."""
    config = MistralConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=16, max_position_embeddings=64,
    )  # fmt: skip
    place = tmp_path_factory.mktemp("checkpoints") / "mistral"
    AutoModelForCausalLM.from_config(config).save_pretrained(place)
    return place


def without_window(folder: Path, target: Path) -> Path:
    """The same weights without a window."""
    AutoModelForCausalLM.from_pretrained(folder, sliding_window=None).save_pretrained(target)
    return target


def found(folder: Path, engine: str) -> list[str]:
    """The verdicts of the three laws, and that a window is the reason for a difference past it."""
    findings = audit(str(folder), against=engine, laws=LAWS).findings
    assert {finding.output for finding in findings} == {engine}
    port = findings[-1].port
    assert port is not None
    assert [cause.cause for cause in port.causes] == (["window"] if findings[-1].verdict == "refuted" else [])
    return [finding.verdict for finding in findings]


@pytest.mark.slow
@needs_onnx
def test_a_file_that_a_user_exported_is_compared(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    onnx_runtime._export(folder, file)
    assert found(folder, f"onnx:{file}") == ["held"] * 3
    onnx_runtime._export(without_window(folder, tmp_path / "other"), file)
    assert found(folder, f"onnx:{file}") == ["held", "refuted", "refuted"]


@needs_mlx
def test_a_folder_that_a_user_converted_is_compared(folder: Path, tmp_path: Path) -> None:
    assert found(without_window(folder, tmp_path / "other"), f"mlx:{folder}") == ["held", "held", "not_applicable"]
    assert found(folder, f"mlx:{folder}") == ["held", "refuted", "refuted"]  # mlx-lm's Mistral has no window


class Session:
    """A graph with these inputs, whose logits are the positions of its tokens."""

    def __init__(self, inputs: Sequence[tuple[str, list[Any], str]], outputs: Sequence[str] = ("logits",)) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.given: dict[str, Any] = {}

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name=name, shape=shape, type=type_) for name, shape, type_ in self.inputs]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in self.outputs]

    def run(self, names: list[str], given: dict[str, Any]) -> list[Any]:
        assert names == ["logits"]
        self.given = given
        return [np.zeros((*given["input_ids"].shape, 3), np.float32)]


TOKENS = ("input_ids", ["batch", "length"], "tensor(int32)")
CACHE = ("past_key_values.0.key", ["batch", 2, "past", 8], "tensor(float16)")


def test_a_cache_of_optimum_is_empty_and_other_outputs_are_ignored() -> None:
    session = Session([TOKENS, CACHE], ["present.0.key", "logits"])
    scores = onnx_runtime._OnnxModel(session).prefill([4, 5, 6])
    assert scores.values.shape == (3, 3)
    assert session.given["input_ids"].dtype == np.int32
    cache = session.given["past_key_values.0.key"]
    assert (cache.shape, cache.dtype) == ((1, 2, 0, 8), np.float16)


def test_a_graph_without_a_mask_takes_no_pads() -> None:
    model = onnx_runtime._OnnxModel(Session([TOKENS]))
    assert len(model.batch([[1, 2], [3, 4]])) == 2
    with pytest.raises(EngineError, match="its graph takes no attention_mask"):
        model.batch([[1, 2], [3]])


def test_an_input_of_another_meaning_is_named() -> None:
    image = ("pixel_values", ["batch", 3, 8, 8], "tensor(float)")
    with pytest.raises(EngineError, match=r"has an input pixel_values of tensor\(float\)"):
        onnx_runtime._OnnxModel(Session([TOKENS, image])).prefill([1, 2])


def test_a_file_that_is_missing_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected engine onnx with a file, onnx:model.onnx; no file none.onnx"):
        find_engine("onnx:none.onnx")
    with pytest.raises(UsageError, match=r"expected engine mlx with a folder .* no config.json in "):
        find_engine(f"mlx:{tmp_path}")


def test_a_path_that_is_given_as_an_engine_says_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.touch()
    with pytest.raises(UsageError, match=f"the name of an engine stands before its file: 'onnx:{file}'"):
        find_engine(str(file))
    with pytest.raises(UsageError, match=f"a folder is the subject, or stands after the name of .*'mlx:{tmp_path}'"):
        find_engine(str(tmp_path))


@pytest.mark.slow
def test_the_file_of_another_checkpoint_is_suspected_before_a_setting() -> None:
    def other_words(model: Any) -> None:
        model.get_input_embeddings().weight.data.normal_()

    engine = PlantedEngine(name="onnx:other.onnx", target="other.onnx", plants=(other_words,))
    finding = audit("arch:gpt2", against=engine, laws=["same_prefill"]).findings[0]
    assert finding.remedy.startswith("Check first that onnx:other.onnx was made from this checkpoint. No setting")


@needs_onnx
def test_why_a_file_is_not_loaded_is_said_where_loading_is_no_law_of_the_audit(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no graph")
    against = f"onnx:{tmp_path / 'broken.onnx'}"
    finding = audit(str(folder), against=against, laws=["same_prefill"]).findings[0]
    assert re.search("does not load the checkpoint: raised InvalidProtobuf: .*Protobuf parsing failed", finding.reason)
