"""The installed engines on tiny models, and the trial's table: each difference with the setting that explains it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, save

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.laws.ports import PortCall
from orderproof.optional_packages import install_command
from orderproof.ports.causes.mask_or_pads import CAUSE
from orderproof.ports.engines import onnx_runtime
from orderproof.ports.engines.engine import EngineError
from orderproof.ports.engines.registry import engines, find_engine
from orderproof.ports.load import load_reference, tiny_reference
from orderproof.ports.older_config import older_keys
from orderproof.records.audit import Finding, Report


def by_law(report: Report) -> dict[str, Finding]:
    return {finding.law: finding for finding in report.findings}


def causes(finding: Finding) -> list[tuple[str, str, str]]:
    assert finding.port is not None
    return [(cause.cause, cause.setting, cause.assumed) for cause in finding.port.causes]


def test_every_engine_is_listed_with_its_extra() -> None:
    own = {name for name, engine in engines().items() if engine.has_environment}
    assert {"mlx", "onnx", "ctranslate2", "llamacpp", "serve", "server"} == set(engines()) - own
    for engine in engines().values():
        assert engine.needs_target or engine.has_environment or engine.how_to_install == install_command(engine.extra)
    with pytest.raises(UsageError, match="expected an engine; got 'mxl'; did you mean 'mlx'"):
        find_engine("mxl")


@pytest.mark.parametrize("engine", ["mlx", pytest.param("onnx", marks=pytest.mark.slow), "ctranslate2"])
def test_llama_is_the_same_in_every_engine(engine: str) -> None:
    report = audit("arch:llama?num_hidden_layers=1", against=engine)
    assert report.exit_code == 0
    held = {finding.law for finding in report.findings if finding.verdict == "held"}
    expected = {"loads_checkpoint", "same_prefill", "same_padded_batch", "same_past_context", "same_far_positions"}
    assert held >= expected, [finding.reason for finding in report.findings if finding.verdict != "held"]
    skipped = {finding.law for finding in report.findings if finding.verdict == "not_applicable"}
    assert held | skipped == set(by_law(report))
    assert any(engine in name or name.startswith(engine) for name in report.versions)


@pytest.mark.slow
def test_onnx_leaves_positions_to_a_model_that_counts_from_another_number() -> None:
    report = audit(
        "arch:camembert?num_hidden_layers=1",
        against="onnx",
        laws=["loads_checkpoint", "same_prefill", "same_padded_batch"],
    )
    assert [finding.verdict for finding in report.findings] == ["held"] * 3, [each.reason for each in report.findings]


@pytest.mark.skipif(not find_engine("serve").is_installed, reason=find_engine("serve").how_to_install)
@pytest.mark.slow
def test_transformers_serve_is_started_and_ended_by_its_adapter() -> None:
    laws = ["loads_checkpoint", "same_prefill", "same_far_positions", "same_greedy_tokens"]
    report = audit("arch:mistral", against="serve", laws=laws)
    assert [finding.verdict for finding in report.findings] == ["held"] * 4, [each.reason for each in report.findings]
    assert report.findings[1].scope.assumptions == ()  # all log-probabilities, and not rounded
    commands = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if os.access(file, os.R_OK)]
    assert not [command for command in commands if b"orderproof_serve_" in command]


def test_ctranslate2_refuses_prompts_longer_than_the_window_and_the_others_stand() -> None:
    laws = ["same_prefill", "same_past_window"]
    report = audit("arch:mistral", against=["ctranslate2", "mlx"], laws=laws)
    first, second = report.findings[:2], report.findings[2:]
    assert [finding.verdict for finding in first] == ["held", "refuted"]
    assert first[1].reason.startswith("ctranslate2 takes 6 tokens and not 7, beyond sliding_window: ")
    assert "buffer to copy" in first[1].reason
    assert [finding.verdict for finding in second] == ["held", "refuted"]


class Row(NamedTuple):
    """A row of the trial: the first token that differs past the window, and the causes in their order."""

    causes: tuple[tuple[str, str, str], ...] = ()
    first: int | None = None
    older: bool = False  # the engine loads it with the keys of older versions only


WINDOW = ("window", "sliding_window", "no window")
BASE = ("rotary base", "rope_parameters.rope_theta")
TRIAL: dict[str, Row] = {
    **dict.fromkeys(("llama", "qwen3", "olmo2", "nemotron", "hunyuan_v1_dense", "seed_oss"), Row()),
    **dict.fromkeys(("mistral", "mixtral", "gemma2", "phi3"), Row((WINDOW,), 6)),
    "qwen2": Row(((*BASE, "1e+06, its own default"),), 1),
    "phi": Row((("partial rotary", "rope_parameters.partial_rotary_factor", "0.4, its own default"),), 1),
    "cohere": Row(((*BASE, "8e+06, its own default"),), 1),
    "starcoder2": Row(
        ((*BASE, "100000, its own default"), WINDOW, ("other", "hidden_act", "gelu")), 0
    ),
    **dict.fromkeys(("granite", "helium", "glm4", "stablelm", "ernie4_5"), Row(older=True)),
    **dict.fromkeys(("exaone4", "olmo3", "apertus"), Row(older=True)),
    "gpt_neox": Row((("other", "hidden_act", "gelu_pytorch_tanh"),), 0, older=True),
    "gemma": Row((("other", "hidden_act", "gelu"),), 0),
}  # fmt: skip


# The others have the cause of one of these. docs/evidence/ports/ports.md, which the tests compare with its rows, lists
# them all.
QUICK = ("llama", "phi", "glm4")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in TRIAL]
)
def test_the_trial_is_reproduced_and_explained_to_the_setting(name: str) -> None:
    row = TRIAL[name]
    found = by_law(audit(f"arch:{name}", against="mlx", laws=["loads_checkpoint", "same_prefill", "same_past_window"]))
    assert found["loads_checkpoint"].verdict == ("refuted" if row.older else "held")
    finding: Any = found["same_past_window"]
    finding = finding if finding.verdict != "not_applicable" else found["same_prefill"]
    assert finding.port.first_token == row.first, finding.reason
    assert sorted(causes(finding)) == sorted(row.causes), finding.reason
    assert finding.port.explained == bool(row.causes)
    assert finding.port.needs_older_keys == row.older


def test_exaone4_needs_its_pattern_of_layers_in_letters() -> None:
    finding = audit("arch:exaone4", against="mlx", laws=["loads_checkpoint"]).findings[0]
    assert finding.verdict == "refuted"
    assert "missing 3 required positional arguments: 'rope_theta', 'head_dim', and 'rope_scaling'" in finding.reason
    assert "it loads with rope_theta, " in finding.reason
    assert "sliding_window_pattern added to config.json, as transformers wrote them before version 5" in finding.reason
    assert '"sliding_window_pattern": "' in finding.remedy


@pytest.mark.slow
def test_caches_of_recurrent_layers_take_left_padded_rows() -> None:
    finding = audit("arch:lfm2_moe", against="mlx", laws=["same_padded_batch"]).findings[0]
    assert finding.verdict == "held", finding.reason
    finding = audit("arch:mamba", against="mlx", laws=["same_padded_batch"]).findings[0]
    assert causes(finding) == [("mask or pads", "pads on the left", "attended to")], finding.reason


def test_a_graph_of_one_length_is_refused(tmp_path: Path) -> None:
    shapes = {"input_ids": ["row", 5], "attention_mask": ["row", "token"]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in shapes.items()]
    nodes = [helper.make_node("Identity", [name], [f"{name}_again"]) for name in shapes]
    outputs = [
        helper.make_tensor_value_info(f"{name}_again", TensorProto.INT64, shape) for name, shape in shapes.items()
    ]
    model = helper.make_model(helper.make_graph(nodes, "graph", inputs, outputs), ir_version=10)
    save(model, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match=re.escape("wrote fixed ones: input_ids ['row', 5]")):
        onnx_runtime.check_axes(onnx_runtime.open_session(tmp_path / "model.onnx"))


def test_a_checkpoint_that_transformers_loads_otherwise_is_not_compared(tmp_path: Path) -> None:
    reference = tiny_reference("youtu")  # whose embedding of the pad is initialised again after it is loaded
    reference.save(tmp_path)
    with pytest.raises(EngineError, match="transformers loads model.embed_tokens.weight with other values"):
        onnx_runtime.check_weights(type(reference.model).from_pretrained(tmp_path), tmp_path)
    onnx_runtime.check_weights(reference.model, tmp_path)


def test_positions_that_a_model_counts_itself_explain_a_padded_batch() -> None:
    reference = tiny_reference("roformer")  # takes no position ids
    tokens = [int(token) for token in reference.port_model.tokens(9)]
    call = PortCall("batch", (tuple(tokens), tuple(tokens[:4])))
    with torch.no_grad():
        rows, mask = torch.tensor([tokens, [0] * 5 + tokens[:4]]), torch.tensor([[1] * 9, [0] * 5 + [1] * 4])
        padded = reference.model(rows, attention_mask=mask).logits[1, 5:].double().numpy()
    (candidate,) = [c for c in CAUSE.candidates(reference, {}) if c.setting == "positions of padded rows"]
    assert np.allclose(reference.outputs(call, [candidate.change])[1], padded, atol=1e-5)
    assert not np.allclose(reference.outputs(call)[1], padded, atol=1e-3)


def test_keys_of_older_versions_remove_a_difference_of_the_base() -> None:
    finding = audit("arch:qwen2", against="mlx", laws=["same_prefill"]).findings[0]
    assert finding.port is not None
    assert finding.port.with_older_keys is not None
    assert finding.measurement is not None
    assert finding.port.with_older_keys < finding.measurement.tolerance
    assert "rope_theta" in finding.port.older_keys
    assert "as older versions of transformers wrote them: equal to" in finding.reason


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("llama", {"hidden_size": 128}),
        ("deepseek_v3", {"kv_lora_rank": 512, "qk_head_dim": 128}),
        ("falcon", {"ffn_hidden_size": 512}),
        ("falcon_h1", {"num_attention_heads": 4}),
    ],
)
def test_a_tiny_model_has_the_widths_that_kernels_take(name: str, sizes: dict[str, int]) -> None:
    config = load_reference(f"arch:{name}", head_width=32).config
    assert {key: getattr(config, key) for key in sizes} == sizes


def test_keys_of_earlier_versions_have_the_values_of_today() -> None:
    assert older_keys({"model_type": "xlm-roberta"}) == {"position_embedding_type": "absolute"}
    assert older_keys({"model_type": "lfm2", "hidden_size": 64}) == {"block_dim": 64, "conv_dim": 64}
