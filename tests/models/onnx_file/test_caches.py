"""Decoders with past keys and values, and layers with a state, as files: laws of caches on the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import ModelProto, NodeProto, TensorProto, helper

from orderproof import audit, prove
from orderproof.errors import UnsupportedCallError
from orderproof.models import load
from orderproof.models.onnx_file.cache import file_cache
from orderproof.models.onnx_file.entries import Entry
from orderproof.records.audit import Finding
from orderproof.subject_spec import Layout
from tests.models.onnx_file.graphs import model_of
from tests.models.onnx_file.runtime import both_results, check_same

WIDTH = 8
CACHE = ("past_key_values.0.key", "past_key_values.0.value")


def _joined(*, merged: bool) -> list[NodeProto]:
    """Keys and values after those of the cache, in a branch if two exports are merged."""
    pairs = [(CACHE[0], "own_key", "present.0.key"), (CACHE[1], "x", "present.0.value")]
    if not merged:
        return [helper.make_node("Concat", [past, new], [out], axis=1) for past, new, out in pairs]
    branches = {}
    for name in ("then_branch", "else_branch"):
        nodes = [
            helper.make_node("Concat", [past, new], [f"{name}_{out}"], axis=1)
            if name == "then_branch"
            else helper.make_node("Identity", [new], [f"{name}_{out}"])
            for past, new, out in pairs
        ]
        outputs = [helper.make_tensor_value_info(f"{name}_{out}", TensorProto.FLOAT, None) for _, _, out in pairs]
        branches[name] = helper.make_graph(nodes, name, [], outputs)
    return [helper.make_node("If", ["use_cache_branch"], [out for _, _, out in pairs], **branches)]


def decoder(*, counts_on: bool = True, merged: bool = False) -> ModelProto:
    """A layer of attention over a cache; its positions begin at zero in every call unless it counts on."""
    generator = np.random.default_rng(0)
    stored = {
        "words": generator.normal(size=(50, WIDTH)).astype(np.float32),
        "places": generator.normal(size=(400, WIDTH)).astype(np.float32),
        **{name: generator.normal(size=(WIDTH, WIDTH)).astype(np.float32) for name in ("query", "key", "head")},
        "zero": np.array(0), "step": np.array(1), "one": np.array(1.0, np.float32), "low": np.array(-1e9, np.float32),
        "none": np.array(0.0, np.float32), "axis": np.array([1]),
    }  # fmt: skip
    make = helper.make_node
    nodes = [
        make("Shape", ["input_ids"], ["sizes"]), make("Gather", ["sizes", "step"], ["new"]),
        make("Shape", ["attention_mask"], ["mask_sizes"]), make("Gather", ["mask_sizes", "step"], ["total"]),
        make("Sub", ["total", "new"], ["cached"]), make("Range", ["cached", "total", "step"], ["rows"]),
        make("Range", ["zero", "new", "step"], ["restarted"]), make("Range", ["zero", "total", "step"], ["keys"]),
        make("Gather", ["words", "input_ids"], ["embedded"]),
        make("Gather", ["places", "rows" if counts_on else "restarted"], ["placed"], name="/Positions"),
        make("Add", ["embedded", "placed"], ["x"]), make("MatMul", ["x", "query"], ["q"]),
        make("MatMul", ["x", "key"], ["own_key"]),
        *_joined(merged=merged),
        make("Transpose", ["present.0.key"], ["turned"], perm=[0, 2, 1]), make("MatMul", ["q", "turned"], ["scores"]),
        make("Unsqueeze", ["rows", "axis"], ["column"]), make("Greater", ["keys", "column"], ["later"]),
        make("Where", ["later", "low", "none"], ["causal"]),
        make("Cast", ["attention_mask"], ["real"], to=TensorProto.FLOAT), make("Sub", ["one", "real"], ["pads"]),
        make("Mul", ["pads", "low"], ["hidden"]), make("Unsqueeze", ["hidden", "axis"], ["bias"]),
        make("Add", ["scores", "causal"], ["some"]), make("Add", ["some", "bias"], ["all"]),
        make("Softmax", ["all"], ["weights"]), make("MatMul", ["weights", "present.0.value"], ["mixed"], name="/Mix"),
        make("MatMul", ["mixed", "head"], ["logits"]),
    ]  # fmt: skip
    integer = TensorProto.INT64
    inputs: dict[str, Any] = {
        "input_ids": (integer, ["batch_size", "sequence_length"]),
        "attention_mask": (integer, ["batch_size", "past_sequence_length + sequence_length"]),
        **{name: (TensorProto.FLOAT, ["batch_size", "past_sequence_length", WIDTH]) for name in CACHE},
    }
    if merged:
        inputs["use_cache_branch"] = (TensorProto.BOOL, [1])
    return model_of(nodes, inputs, ["logits", "present.0.key", "present.0.value"], stored)


def cache_laws(model: ModelProto, path: Path) -> dict[str, Finding]:
    onnx.save(model, path)
    subject = load(str(path), assume={"model_kind": "causal_lm"})
    assert {role.name: role.known_by for role in subject.input_roles}["past_key_values"].startswith("calls: ")
    assert any("computes on one example, and on the cache of that call" in note for note in subject.notes)
    return {f.law: f for f in audit(subject, laws=("cached_decoding", "chunked_prefill")).findings}


@pytest.mark.parametrize("merged", [False, True], ids=["one export", "two exports merged"])
def test_laws_of_caches_hold_on_the_file(merged: bool, tmp_path: Path) -> None:
    path = tmp_path / "decoder.onnx"
    assert {f.verdict for f in cache_laws(decoder(merged=merged), path).values()} == {"held"}
    finding = prove(str(path), "causal")
    assert (finding.verdict, finding.output) == ("proved", "logits")  # the cache is no output
    assert finding.theorem is not None
    assert finding.theorem.proved


def test_what_is_no_cache_of_the_file_is_refused(tmp_path: Path) -> None:
    onnx.save(decoder(), tmp_path / "decoder.onnx")
    subject = load(str(tmp_path / "decoder.onnx"))
    module = subject.module.get_submodule(subject.wrapped_path.rpartition(".")[0])
    with pytest.raises(UnsupportedCallError, match="expected the cache that a call of the file returned.*; got list"):
        module(past_key_values=[torch.zeros(2, 3, WIDTH)])


def test_positions_that_restart_in_each_call_fail_at_their_node(tmp_path: Path) -> None:
    found = cache_laws(decoder(counts_on=False), tmp_path / "decoder.onnx")
    assert {f.verdict for f in found.values()} == {"refuted"}
    assert "Range_restarted" in found["cached_decoding"].witness.first_violating_module


@pytest.mark.parametrize("size", ["batch", None])
def test_a_recurrent_layer_goes_on_from_its_state(size: str | None, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    stored = {
        name: generator.normal(size=(1, 15, 5)).astype(np.float32) / 4 for name in ("input_weight", "state_weight")
    }
    stored["axis"] = np.array([1])
    nodes = [
        helper.make_node("GRU", ["x", "input_weight", "state_weight", "", "", "state"], ["all", "stateN"],
            hidden_size=5),
        helper.make_node("Squeeze", ["all", "axis"], ["y"]),
    ]  # fmt: skip
    inputs = {"x": (TensorProto.FLOAT, ["time", size, 5]), "state": (TensorProto.FLOAT, [1, None, 5])}
    onnx.save(model_of(nodes, inputs, ["y", "stateN"], stored), tmp_path / "gru.onnx")
    roles = {r.name: r.role for r in load(str(tmp_path / "gru.onnx"), layout=Layout(token_axis=0)).input_roles}
    assert roles["states"].startswith("cache")


def entry(name: str) -> Entry:
    return Entry(name, torch.float32, ("batch", 4), "zeros")


@pytest.mark.parametrize(
    ("given", "back"),
    [
        ("past_key_values.3.decoder.key", "present.3.decoder.key"),
        ("past_key_values.3.value", "present_key_values.3.value"),
        ("past_3", "present_3"),
        ("state", "stateN"),
        ("h0", "hn"),
        ("c_in", "c_out"),
        ("cached_key_0", "new_cached_key_0"),
    ],
)
def test_the_output_that_gives_an_input_back_is_known_by_its_name(given: str, back: str) -> None:
    cache = file_cache([entry("x"), entry(given)], ["logits", back])
    assert cache is not None
    assert cache.outputs == {given: back}
    assert file_cache([entry("x"), entry(given)], ["logits", "last_hidden_state"]) is None


@pytest.mark.parametrize("seed", range(4))
def test_grouped_attention_on_a_cache_is_that_of_the_runtime(seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows, new = (3, 1) if seed % 2 else (1, 4)
    past = int(generator.integers(4, 9))
    lengths = generator.integers(2, past, rows) if rows > 1 else np.array([past])

    def real(*shape: int) -> np.ndarray:
        return generator.normal(size=shape).astype(np.float32)

    attributes = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": seed // 2, "local_window_size": (-1, 3)[seed // 2]}
    arrays = [
        real(rows, new, 64), real(rows, new, 32), real(rows, new, 32), real(rows, 2, past, 16), real(rows, 2, past, 16),
        (lengths + new - 1).astype(np.int32), np.array(past + new, np.int32), real(40, 8), real(40, 8),
    ]  # fmt: skip
    outputs = ("y", "key", "value")
    (found, expected), *caches = both_results(
        "GroupQueryAttention", arrays, attributes, domain="com.microsoft", outputs=outputs
    )
    check_same([(found, expected)])
    ends = list(enumerate(lengths + new))
    check_same([(a[row, :, :end], b[row, :, :end]) for a, b in caches for row, end in ends])


def test_a_window_of_samples_keeps_a_state_between_calls(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Pad", ["samples", "pads", "", "axes"], ["longer"], mode="reflect"),
        helper.make_node("ReduceMean", ["longer", "axes"], ["mean"]),
        helper.make_node("Equal", ["sr", "rate"], ["known"]),
        helper.make_node("If", ["known"], ["gained"], then_branch=helper.make_graph(
            [helper.make_node("Identity", ["mean"], ["as_it_is"])], "then", [],
            [helper.make_tensor_value_info("as_it_is", TensorProto.FLOAT, None)]),
            else_branch=helper.make_graph([helper.make_node("Concat", ["mean", "mean"], ["twice"], axis=1)], "else", [],
            [helper.make_tensor_value_info("twice", TensorProto.FLOAT, None)])),
        helper.make_node("Add", ["gained", "state"], ["stateN"]), helper.make_node("Tanh", ["stateN"], ["y"]),
    ]  # fmt: skip
    inputs: dict[str, Any] = {
        "samples": (TensorProto.FLOAT, ["batch", "time"]), "state": (TensorProto.FLOAT, ["batch", 1]),
        "sr": (TensorProto.INT64, []),
    }  # fmt: skip
    stored = {"pads": np.array([0, 3]), "axes": np.array([1]), "rate": np.array(16000)}
    onnx.save(model_of(nodes, inputs, ["y", "stateN"], stored), tmp_path / "window.onnx")
    subject = load(str(tmp_path / "window.onnx"), layout=Layout(token_axis=1))
    assert "computed for each number of tokens: sr (16000)" in subject.notes  # the number that the graph knows
    assert any("on one example, and on the cache of that call" in note for note in subject.notes)
