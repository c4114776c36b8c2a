"""Engines that are missing, refuse, crash, hang or return something else: one line each, and the others stand."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import torch

from orderproof import audit
from orderproof.errors import SubjectError, UsageError
from orderproof.optional_packages import install_command
from orderproof.ports.engine_pair import EnginePair
from orderproof.ports.engines.engine import EngineError
from orderproof.ports.load import load_reference
from orderproof.ports.older_config import older_keys
from orderproof.ports.source_package import source_folder
from orderproof.ports.tokenizer import write_tokenizer
from tests.ports.planted_engine import FewLabelsEngine, MisbehavingEngine, PlantedEngine, TiedHeadEngine

LAWS = ["loads_checkpoint", "same_prefill", "same_cached_decoding"]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("crashes", "misbehaving ended its process, which was ended by SIGSEGV"),
        ("aborts", "misbehaving ended its process, which was ended by SIGABRT: model.cpp:7: ASSERT(n > 0) failed"),
        ("hangs", "misbehaving was not done after 2 s: give it more with --timeout"),
        ("exits", "misbehaving raised SystemExit: 3"),
        ("shape", "misbehaving: it returned scores of shape [11, 99] for 12 tokens"),
        ("vocabulary", "misbehaving: it returned 90 numbers for each token; the reference has 99"),
        ("nan", "misbehaving: it returned a value that is not finite, first at token 2 of row 0"),
    ],
)
def test_a_call_that_fails_costs_its_law_only(how: str, reason: str) -> None:
    timeout = 2.0 if how == "hangs" else 60.0
    began = time.monotonic()
    report = audit("arch:llama", against=MisbehavingEngine(how=how), laws=LAWS, timeout=timeout)
    assert time.monotonic() - began < 50
    loaded, prefill, decoding = report.findings
    assert (loaded.verdict, decoding.verdict) == ("held", "held")
    assert prefill.verdict == ("refuted" if how == "nan" else "undecided")
    assert reason in prefill.reason
    assert report.exit_code == (1 if how == "nan" else 3)


@pytest.mark.parametrize(("factor", "names"), [(1.0, True), (1.1, False)])
def test_an_engine_that_takes_a_tied_head_only_is_named_if_it_computes_that(factor: float, names: bool) -> None:
    (finding,) = audit("arch:llama", against=TiedHeadEngine(factor=factor), laws=LAWS[:1]).findings
    assert finding.verdict == "refuted"
    assert finding.port is not None
    assert finding.port.explained == names, finding.reason
    assert ("tie_word_embeddings: False in the reference, True in tied" in finding.reason) == names
    pair = audit("arch:llama", against=EnginePair(TiedHeadEngine(factor=factor), PlantedEngine()), laws=LAWS[:1])
    assert [bool(each.port and each.port.explained) for each in pair.findings] == [names]


def test_an_engine_that_refuses_the_checkpoint_fails_one_law_and_the_other_engine_stands() -> None:
    report = audit("arch:llama", against=[MisbehavingEngine(how="refuses"), PlantedEngine()], laws=LAWS)
    refused, others = report.findings[:3], report.findings[3:]
    assert [finding.verdict for finding in refused] == ["refuted", "undecided", "undecided"]
    assert "raised ValueError: unknown key 'rope_parameters'" in refused[0].reason
    assert refused[1].reason == "misbehaving does not load the checkpoint"
    assert [finding.verdict for finding in others] == ["held"] * 3


def test_an_engine_that_is_not_installed_is_undecided_with_the_command_that_installs_it() -> None:
    engine = PlantedEngine(name="absent", packages=("no_such_package",), extra="absent")
    report = audit("arch:llama", against=[engine, PlantedEngine()], laws=LAWS)
    missing, *others = report.findings
    assert (missing.law, missing.verdict, missing.output) == ("loads_checkpoint", "undecided", "absent")
    assert missing.reason == f"no_such_package is not installed: {install_command('absent')}"
    assert [finding.verdict for finding in others] == ["held"] * 3


def test_the_source_package_of_a_distribution_that_is_not_installed_is_an_error_of_the_engine() -> None:
    with pytest.raises(EngineError, match="no-such-distribution is not installed"):
        source_folder("no-such-distribution", "vendor", ())


def test_an_engine_that_fails_beyond_the_window_violates_the_law() -> None:
    laws = ["same_prefill", "same_past_window", "same_far_positions"]
    report = audit("arch:mistral", against=MisbehavingEngine(how="at most 6"), laws=laws)
    within, beyond, far = report.findings
    assert [finding.verdict for finding in report.findings] == ["held", "refuted", "refuted"]
    assert beyond.reason == (
        "misbehaving takes 6 tokens and not 7, beyond sliding_window: misbehaving raised ValueError: buffer to copy is "
        "of size 20"
    )
    assert beyond.remedy.startswith("Return the logits of every token")
    assert (within.same_cause_as, beyond.same_cause_as, far.same_cause_as) == ("", "", "OP606")


def test_an_engine_may_refuse_a_text_beyond_the_trained_context() -> None:
    context = load_reference("arch:llama").port_model.context
    assert context is not None
    for most in (context, context - 1):  # one that generates a token after each prompt takes one token less
        finding = audit("arch:llama", against=MisbehavingEngine(how=f"at most {most}"), laws=["same_past_context"])
        assert finding.findings[0].verdict == "not_applicable"
        assert f"takes {most} tokens and not {context + 1}, beyond the trained context" in finding.findings[0].reason


def test_an_engine_may_refuse_a_text_beyond_the_stated_context_with_its_scaling() -> None:
    scaled = 'arch:llama?max_position_embeddings=40&rope_parameters={"rope_type":"yarn","factor":4.0,'
    scaled += '"rope_theta":10000.0,"original_max_position_embeddings":10}'
    (finding,) = audit(scaled, against=MisbehavingEngine(how="at most 39"), laws=["same_far_positions"]).findings
    assert finding.verdict == "not_applicable"
    assert "takes 39 tokens and not 41, beyond max_position_embeddings" in finding.reason


def test_a_far_position_in_a_table_leaves_one_to_a_generated_token() -> None:
    (finding,) = audit(
        "arch:gpt2?n_positions=64", against=MisbehavingEngine(how="at most 63"), laws=["same_far_positions"]
    ).findings
    assert (finding.verdict, finding.scope.length) == ("held", 63), finding.reason


def test_a_failure_at_any_other_length_says_if_a_short_prompt_works() -> None:
    for how, short in (("at most 3", "works"), ("exits", "fails too")):
        finding = audit("arch:llama", against=MisbehavingEngine(how=how), laws=["same_prefill"]).findings[0]
        assert finding.verdict == "undecided"
        assert finding.reason.endswith(f"; a prompt of 2 tokens {short}")


def test_an_engine_that_takes_fewer_tokens_than_the_context_has_is_said_to() -> None:
    (finding,) = audit("arch:llama", against=MisbehavingEngine(how="at most 20"), laws=["same_past_context"]).findings
    assert finding.verdict == "undecided"
    assert finding.reason.endswith("; a prompt of 2 tokens works, one of the trained context (70) does not")


def test_an_engine_that_needs_the_keys_of_older_versions_is_given_them_by_name() -> None:
    pytest.importorskip("mlx_lm")
    finding = audit("arch:ernie4_5", against="mlx", laws=["loads_checkpoint"]).findings[0]
    assert finding.verdict == "refuted"
    assert "the version of the configuration is the cause" in finding.reason
    assert finding.remedy.startswith('Add {"rope_theta": 500000.0, ')


def test_the_keys_of_older_versions_have_the_values_of_today() -> None:
    rope = {"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0}
    keys = older_keys({"dtype": "float32", "rope_parameters": rope, "hidden_size": 64, "num_attention_heads": 4})
    assert keys["torch_dtype"] == "float32"
    assert (keys["rope_theta"], keys["head_dim"]) == (5e5, 16)
    assert keys["rope_scaling"] == {"rope_type": "linear", "type": "linear", "factor": 2.0}
    assert older_keys({"dtype": None, "n_positions": None}) == {}


def test_log_probabilities_of_some_labels_are_compared_with_those_of_the_same_labels() -> None:
    report = audit("arch:llama", against=FewLabelsEngine(), laws=["same_prefill"])
    finding = report.findings[0]
    assert finding.verdict == "held", finding.reason
    assert "it returns 50 of 99 log-probabilities for each token" in finding.scope.assumptions[0]


def test_an_architecture_that_an_engine_does_not_have_is_not_applicable() -> None:
    report = audit("arch:bert", against="mlx", laws=LAWS)
    assert {finding.verdict for finding in report.findings} == {"not_applicable"}
    assert "has no implementation of bert" in report.findings[0].reason


def test_subjects_without_logits_are_refused_in_one_line() -> None:
    with pytest.raises(SubjectError, match="arch:vit: transformers has no causal language model for it"):
        load_reference("arch:vit")
    with pytest.raises(UsageError, match="expected arch:NAME, a checkpoint folder or a transformers model"):
        load_reference(3)
    headless = load_reference("arch:llama").model.model
    with pytest.raises(UsageError, match="LlamaModel, which has no head"):
        load_reference(headless)


def test_a_checkpoint_folder_is_read_as_it_is_and_stays_as_it_is(tmp_path: Path) -> None:
    reference = load_reference("arch:qwen2")
    reference.save(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    report = audit(str(tmp_path), against=["mlx", PlantedEngine()], laws=["same_prefill"])
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert [finding.verdict for finding in report.findings] == ["refuted", "held"]
    port = report.findings[0].port
    assert port is not None
    assert port.with_older_keys is not None
    assert port.with_older_keys < 1e-5
    assert 'Or add {"rope_theta": 10000.0' in report.findings[0].remedy


def test_a_model_in_memory_is_compared_and_not_changed() -> None:
    model = load_reference("arch:llama").model.to(torch.bfloat16)
    report = audit(model, against=PlantedEngine(), laws=["same_prefill"])
    assert report.exit_code == 0
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_llama_cpp_with_a_wrong_converter_says_what_it_expects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLAMA_CPP_CONVERTER", str(tmp_path / "absent.py"))
    finding = audit("arch:llama", against="llamacpp", laws=["loads_checkpoint"]).findings[0]
    assert finding.verdict == "undecided"
    assert re.search(
        r"expected LLAMA_CPP_CONVERTER=PATH of convert_hf_to_gguf.py|llama_cpp is not installed: pip install",
        finding.reason,
    )


def test_every_text_of_its_words_has_one_token_for_each(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    write_tokenizer(tmp_path, 99, special_words=False)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("t1 t12 t0 t98 t2")["input_ids"] == [1, 12, 0, 98, 2]
