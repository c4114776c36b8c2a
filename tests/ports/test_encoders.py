"""Encoders are compared by embeddings: planted differences are found and named, and each checkpoint has its calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from orderproof import audit
from orderproof.ports.load import load_reference
from orderproof.ports.pooling import Pooling, read_pooling, write_pooling
from orderproof.records.audit import Finding
from tests.ports import planted_encoder as planted
from tests.ports.planted_encoder import PlantedEncoderEngine
from tests.ports.planted_engine import PlantedEngine

ENCODER_LAWS = {
    "loads_checkpoint", "same_prefill", "same_padded_batch", "same_far_positions", "same_pooled_embedding"
}  # fmt: skip


class Case(NamedTuple):
    subject: str
    engine: PlantedEncoderEngine
    law: str
    setting: str
    assumed: str


def faults(*each: str) -> PlantedEncoderEngine:
    return PlantedEncoderEngine(faults=frozenset(each))


def plants(*each: planted.Plant) -> PlantedEncoderEngine:
    return PlantedEncoderEngine(plants=each)


CASES = {
    "the second token type": Case("arch:bert", plants(planted.second_type), "same_prefill", "token type", "1"),
    "positions without the offset of RoBERTa": Case(
        "arch:roberta", faults("positions from 0"), "same_prefill", "first position id", "0"
    ),
    "attention that is causal": Case("arch:bert", plants(planted.causal), "same_prefill", "attention", "causal"),
    "attention to pads": Case(
        "arch:nomic_bert", faults("pads attended to"), "same_padded_batch", "pads on the right", "attended to"
    ),
    "a mean over pads": Case(
        "arch:bert",
        PlantedEncoderEngine(pool=lambda hidden, length: hidden.mean(0) / hidden.mean(0).norm()),
        "same_pooled_embedding", "pooling", "the mean of the tokens, with pads, divided by its length",
    ),
    "the first token for the mean": Case(
        "arch:bert", PlantedEncoderEngine(pool=lambda hidden, length: hidden[0] / hidden[0].norm()),
        "same_pooled_embedding", "pooling", "the first token, divided by its length",
    ),
    "a mean that is not divided by its length": Case(
        "arch:bert", PlantedEncoderEngine(pool=lambda hidden, length: hidden[:length].mean(0)),
        "same_pooled_embedding", "pooling", "the mean of the tokens",
    ),
    "a window of other width": Case(
        "arch:modernbert", plants(planted.exact_window(6)), "same_past_window", "local_attention", "6"
    ),
    "another epsilon": Case(
        "arch:modernbert", plants(lambda model: [setattr(part, "eps", 1e-3) for part in model.modules()
                                                 if isinstance(part, torch.nn.LayerNorm)] and None),
        "same_prefill", "norm_eps", "0.001",
    ),
}  # fmt: skip


def findings(subject: str, engine: PlantedEncoderEngine | PlantedEngine) -> dict[str, Finding]:
    return {each.law: each for each in audit(subject, against=engine).findings}


@pytest.mark.parametrize("name", CASES)
def test_a_planted_difference_is_found_and_its_setting_named(name: str) -> None:
    case = CASES[name]
    finding = findings(case.subject, case.engine)[case.law]
    assert finding.verdict == "refuted", finding.reason
    assert finding.port is not None
    assert [(each.setting, each.assumed) for each in finding.port.causes] == [(case.setting, case.assumed)]
    assert finding.port.explained


@pytest.mark.parametrize("subject", ["arch:bert", "arch:roberta", "arch:gte"])
def test_an_engine_that_equals_the_reference_passes_every_law_of_encoders(subject: str) -> None:
    found = findings(subject, PlantedEncoderEngine())
    assert {law for law, each in found.items() if each.verdict == "held"} >= ENCODER_LAWS
    assert found["same_cached_decoding"].reason == "an encoder keeps no cache and generates nothing"
    assert not [each for each in found.values() if each.verdict in ("refuted", "undecided")]


def test_a_language_model_has_no_law_of_pooling() -> None:
    found = audit("arch:llama", against=PlantedEngine(), laws=["same_prefill", "same_pooled_embedding"]).findings
    assert [each.verdict for each in found] == ["held", "not_applicable"]


def checkpoint(folder: Path, pooling: Pooling | None) -> None:
    """A checkpoint with a head for masked tokens, as most encoders are saved."""
    from transformers import BertForMaskedLM

    model = BertForMaskedLM(load_reference("arch:bert", may_be_encoder=True).config)
    model.save_pretrained(folder)
    if pooling is not None:
        write_pooling(folder, pooling, model.config.hidden_size)


def test_a_checkpoint_with_a_head_is_read_without_it(tmp_path: Path) -> None:
    checkpoint(tmp_path, Pooling("mean", normalised=False))
    before = sorted(path.name for path in tmp_path.iterdir())
    found = findings(str(tmp_path), PlantedEncoderEngine(pool=lambda hidden, length: hidden[:length].mean(0)))
    assert {law for law, each in found.items() if each.verdict == "held"} == ENCODER_LAWS
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    reference = load_reference(str(tmp_path), may_be_encoder=True)
    reference.save(tmp_path / "without")
    assert json.loads((tmp_path / "without" / "config.json").read_text())["architectures"] == ["BertModel"]


def test_a_checkpoint_without_a_stated_pooling_is_not_asked_for_embeddings_of_texts(tmp_path: Path) -> None:
    checkpoint(tmp_path, None)
    finding = findings(str(tmp_path), PlantedEncoderEngine())["same_pooled_embedding"]
    assert (finding.verdict, finding.reason) == ("not_applicable", "the checkpoint states no pooling in modules.json")


@pytest.mark.parametrize("pooling", [Pooling("mean"), Pooling("cls", normalised=False), Pooling("lasttoken")])
def test_a_pooling_is_read_as_it_was_written(tmp_path: Path, pooling: Pooling) -> None:
    write_pooling(tmp_path, pooling, 8)
    assert read_pooling(tmp_path) == pooling


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}),
        ("1_Pooling/config.json", {"pooling_mode": "weightedmean"}),
        ("modules.json", [{"path": "", "type": "sentence_transformers.models.Dense"}]),
    ],
)
def test_a_pooling_of_another_kind_is_not_compared(tmp_path: Path, file: str, values: object) -> None:
    write_pooling(tmp_path, Pooling(), 8)
    (tmp_path / file).write_text(json.dumps(values))
    assert read_pooling(tmp_path) is None
