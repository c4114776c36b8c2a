"""Planted differences: each is found, and its setting is named."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch

from orderproof import audit
from orderproof.laws.ports import PortCall
from orderproof.ports.causes.registry import candidates
from orderproof.ports.load import tiny_reference
from orderproof.records.audit import Finding
from tests.pairs import one_in
from tests.ports import planted_engine as planted
from tests.ports import planted_masks as masks
from tests.ports.planted_engine import PlantedEngine


class Case(NamedTuple):
    subject: str
    engine: PlantedEngine
    law: str
    causes: tuple[tuple[str, str], ...]  # cause and the value that the engine has


def plants(*each: planted.Plant) -> PlantedEngine:
    return PlantedEngine(plants=each)


def faults(*each: str) -> PlantedEngine:
    return PlantedEngine(faults=frozenset(each))


LINEAR = 'arch:llama?rope_parameters={"rope_type":"linear","factor":4.0,"rope_theta":10000.0}'
YARN = (
    'arch:llama?rope_parameters={"rope_type":"yarn","factor":4.0,"rope_theta":10000.0,'
    '"original_max_position_embeddings":16}'
)
WHOLE_PROMPT = "shows each token of a prompt the whole prompt"
CASES: dict[str, Case] = {
    "no window": Case("arch:mistral", plants(masks.window(1 << 20)), "same_past_window", (("window", "no window"),)),
    "window + 1": Case("arch:mistral", plants(masks.window(7)), "same_past_window", (("window", "7"),)),
    "window - 1": Case("arch:mistral", plants(masks.window(5)), "same_past_window", (("window", "5"),)),
    "window in the other layer": Case(
        "arch:gemma2", plants(masks.window_in_layer(1, 6)), "same_past_window", (("window", "shifted by a layer"),)
    ),
    "window of the chunks of a prompt": Case(
        "arch:mistral", plants(masks.window_of_chunks(6, prompt=19)), "same_greedy_tokens",
        (("window", "in a prompt, from the start of the chunk of 6 before"),),
    ),
    "window of the cache, and none in a chunk": Case(
        "arch:mistral",
        PlantedEngine(
            plants=(masks.window_before_chunks(6, (0, 4, 14)),), faults=frozenset({"chunks_in_one_call"})
        ),
        "same_chunked_prefill", (("window", "in a chunk, from 6 tokens before its start"),),
    ),
    "base replaced": Case(
        "arch:llama", plants(planted.base(1e6)), "same_prefill", (("rotary base", "1e+06"),)
    ),
    "layout swapped": Case(
        "arch:llama", plants(planted.interleaved_weights), "same_prefill", (("rotary layout", "interleaved pairs"),)
    ),
    "layout of an indexer swapped": Case(
        "arch:deepseek_v32", plants(planted.interleaved_indexer), "same_prefill",
        (("rotary layout", "interleaved pairs"),),
    ),
    "mask added as numbers": Case(
        "arch:llama", plants(masks.mask_as_numbers), "same_prefill",
        (("mask or pads", "added to the scores as 0 and 1"),),
    ),
    "each token of a prompt sees the whole prompt": Case(
        "arch:llama", plants(masks.whole_prompt()), "same_prefill",
        (("mask or pads", WHOLE_PROMPT),),
    ),
    "the same beyond a window": Case(
        "arch:gemma2", plants(masks.whole_prompt()), "same_past_window",
        (("mask or pads", WHOLE_PROMPT),),
    ),
    "the same of a model that is told so": Case(
        "arch:hrm_text", plants(masks.whole_prompt()), "same_cached_decoding",
        (("mask or pads", WHOLE_PROMPT),),
    ),
    "the same before tokens that are generated": Case(
        "arch:mistral", plants(masks.whole_prompt(20)), "same_greedy_tokens",
        (("mask or pads", WHOLE_PROMPT),),
    ),
    "all features rotated": Case(
        "arch:phi", plants(planted.whole_rotation), "same_prefill", (("partial rotary", "1"),)
    ),
    "linear scaling dropped": Case(LINEAR, plants(planted.base(1e4)), "same_prefill", (("scaling", "no scaling"),)),
    "yarn without its attention factor": Case(
        YARN, plants(planted.attribute("attention_scaling", 1.0)), "same_prefill", (("scaling", "1.0"),)
    ),
    "attention softcap dropped": Case(
        "arch:gemma2?attn_logit_softcapping=2.0", plants(planted.attribute("attn_logit_softcapping", None)),
        "same_prefill", (("softcap", "no softcap"),),
    ),
    "final softcap dropped": Case(
        "arch:gemma2", plants(planted.no_final_softcap), "same_prefill", (("softcap", "no softcap"),)
    ),
    "final softcap of another model": Case(
        "arch:gemma4_text", plants(planted.final_softcap(30.0)), "same_prefill", (("softcap", "30"),)
    ),
    "sinks dropped": Case("arch:gpt_oss", plants(planted.no_sinks), "same_prefill", (("sinks", "no sinks"),)),
    "positions off by one after a cache": Case(
        "arch:llama", faults("cache_plus_one"), "same_cached_decoding", (("cache offset", "one too large"),)
    ),
    "positions restart in each call": Case(
        "arch:llama", faults("cache_restart"), "same_chunked_prefill", (("cache offset", "from 0 in each call"),)
    ),
    "pads attended to": Case(
        "arch:llama", faults("pads_attended"), "same_padded_batch", (("mask or pads", "attended to"),)
    ),
    "pads counted": Case(
        "arch:gpt2", faults("pads_counted"), "same_padded_batch", (("mask or pads", "from the first pad"),)
    ),
    "ALiBi slopes of 8 heads": Case(
        "arch:bloom", plants(planted.slopes_of(8)), "same_prefill", (("other", "of 8 heads"),)
    ),
    "another epsilon": Case(
        "arch:llama", plants(planted.attribute("variance_epsilon", 1e-5)), "same_prefill",
        (("norm or constant precision", "1e-05"),),
    ),
    "angles in bfloat16": Case(
        "arch:llama", plants(planted.tables_in(torch.bfloat16)), "same_far_positions",
        (("norm or constant precision", "in bfloat16"),),
    ),
    "scale of embeddings in bfloat16": Case(
        "arch:gemma3_text?hidden_size=48", plants(planted.attribute("embed_scale", torch.tensor(6.9375))),
        "same_prefill", (("norm or constant precision", "in bfloat16"),),
    ),
    "exact GELU": Case(
        "arch:gemma", plants(planted.activation(torch.nn.GELU())), "same_prefill", (("other", "gelu"),)
    ),
    "exact GELU where no key states it": Case(
        "arch:bloom", plants(planted.activation_of_kind("BloomGelu", torch.nn.GELU())), "same_prefill",
        (("other", "gelu"),),
    ),
    "parameters of the activation in bfloat16": Case(
        "arch:apertus", plants(planted.activation_in(torch.bfloat16)), "same_prefill",
        (("norm or constant precision", "in bfloat16"),),
    ),
    "GELU from a table in float16": Case(
        "arch:gemma", plants(planted.gelu_table), "same_prefill",
        (("norm or constant precision", "from a table in float16"),),
    ),
    "epsilon of inner norms": Case(
        "arch:deepseek_v3?rms_norm_eps=1e-03", plants(planted.attribute("variance_epsilon", 1e-3)), "same_prefill",
        (("norm or constant precision", "0.001"),),
    ),
    "time steps not clamped": Case(
        "arch:nemotron_h?time_step_min=0.5", plants(planted.attribute("time_step_limit", (0.0, math.inf))),
        "same_prefill", (("other", "none"),),
    ),
    "a table of embeddings that is not read": Case(
        "arch:gemma3n_text", plants(planted.no_embeddings("embed_tokens_per_layer")), "same_prefill",
        (("other", "not read"),),
    ),
    "a factor that is not applied": Case(
        "arch:gemma3n_text", plants(planted.attribute("router_input_scale", torch.tensor(1.0))), "same_prefill",
        (("other", "not applied"),),
    ),
    "half of the features rotated": Case(
        "arch:solar_open", plants(planted.rotated_in_part(8)), "same_prefill", (("partial rotary", "0.5"),)
    ),
    "a window where the configuration has none": Case(
        "arch:laguna", plants(planted.layers_of(["full_attention", "sliding_attention"])), "same_prefill",
        (("window", "full attention in layer 0"),),
    ),
    "two flags at once": Case(
        "arch:afmoe", plants(planted.scaled_embeddings, planted.undivided_expert_weights), "same_prefill",
        (("other", "sigmoid scores as they are"), ("other", "True")),
    ),
    "two of a program that reads no key for them": Case(
        "arch:olmo?clip_qkv=0.5", plants(planted.no_mean, planted.no_clipping), "same_prefill",
        (("other", "without the mean subtracted"), ("other", "absent")),
    ),
    "softmax scores of experts": Case(
        "arch:lfm2_moe", plants(planted.softmax_of_experts(1.0)), "same_prefill", (("other", "softmax"),)
    ),
    "two at once: base and window": Case(
        "arch:mistral", plants(planted.base(1e6), masks.window(1 << 20)), "same_past_window",
        (("rotary base", "1e+06"), ("window", "no window")),
    ),
}  # fmt: skip


def found(case: Case) -> Finding:
    return audit(case.subject, against=case.engine, laws=[case.law]).findings[0]


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_a_planted_difference_is_found_and_named(name: str) -> None:
    case = CASES[name]
    finding = found(case)
    assert (finding.verdict, finding.outcome) == ("refuted", "fail"), finding.reason
    assert finding.port is not None
    assert finding.port.explained, finding.reason
    assert tuple((cause.cause, cause.assumed) for cause in finding.port.causes) == case.causes, finding.reason


@pytest.mark.slow
def test_scores_of_experts_with_a_temperature_are_no_known_scores() -> None:
    case = Case("arch:lfm2_moe", plants(planted.softmax_of_experts(1.5)), "same_prefill", ())
    finding = found(case)
    assert finding.port is not None
    assert not finding.port.explained, finding.reason


def test_a_prompt_that_is_seen_as_a_whole_is_by_design_where_the_configuration_says_so() -> None:
    finding = found(Case("arch:hrm_text", plants(masks.whole_prompt()), "same_prefill", ()))
    assert "by design" in finding.remedy
    assert "hides later tokens without token_type_ids in the reference" in finding.reason
    reference = tiny_reference("arch:hrm_text")
    call = PortCall("prefill", (tuple(range(3, 15)),))
    (shown,) = (each.change for each in candidates(reference, {}) if each.assumed == WHOLE_PROMPT)
    tokens = torch.tensor(call.rows)
    logits = reference.model(tokens, token_type_ids=torch.ones_like(tokens)).logits[0]
    assert np.allclose(reference.outputs(call, [shown])[0], logits.detach().numpy(), atol=1e-5)


@pytest.mark.slow
def test_a_token_that_sees_the_next_one_does_not_see_the_whole_prompt() -> None:
    finding = found(Case("arch:llama", plants(masks.next_token), "same_prefill", ()))
    assert finding.verdict == "refuted"
    assert finding.port is not None
    assert not finding.port.explained, finding.reason
    assert not finding.port.causes, finding.reason


AGREEING = (
    "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi", "phi3", "starcoder2", "stablelm",
    "gpt2", "gpt_neox", "bloom", "falcon", "glm", "olmo2", "cohere", "granite", "mixtral", "gptj", "opt",
)  # fmt: skip


SOON = {"llama", "mistral", "gemma2", "phi", "gpt2", "gpt_neox", "bloom", "falcon"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SOON else pytest.mark.slow) for name in AGREEING]
)
def test_an_engine_that_agrees_raises_no_alarm(name: str) -> None:
    laws = ["same_prefill", "same_cached_decoding", "same_padded_batch", "same_past_window", "same_greedy_tokens"]
    report = audit(f"arch:{name}", against=PlantedEngine(), laws=laws)
    refuted = [finding.reason for finding in report.findings if finding.verdict in ("refuted", "undecided")]
    assert not refuted
    assert report.exit_code == 0
    assert sum(finding.verdict == "held" for finding in report.findings) >= 4


def test_a_table_that_explains_a_prompt_does_not_hide_that_the_last_tokens_miss_a_window() -> None:
    engine = plants(planted.gelu_table, masks.window_with_cache(1 << 20))
    laws = ["same_prefill", "same_chunked_prefill"]
    prompt, chunked = audit("arch:gemma2?sliding_window=48", against=engine, laws=laws).findings
    assert prompt.port is not None
    assert [cause.setting for cause in prompt.port.causes] == ["activation"], prompt.reason
    assert chunked.port is not None
    assert chunked.port.explained, chunked.reason
    assert {cause.setting for cause in chunked.port.causes} == {"activation", "sliding_window"}, chunked.reason


def test_the_text_of_a_finding_says_from_which_token_on_and_what_explains_it() -> None:
    finding = found(CASES["no window"])
    assert finding.port is not None
    assert finding.port.first_token == 6
    assert "differs from token 6 on" in finding.reason
    assert "sliding_window: 6 in the reference, no window in planted" in finding.reason
    assert "with that change the reference equals planted to" in finding.reason
    assert finding.port.rounding is not None
    assert finding.port.causes[0].remaining < 16 * finding.port.rounding


@pytest.mark.slow
def test_a_difference_without_a_known_setting_is_not_explained() -> None:
    def scramble(model: torch.nn.Module) -> None:
        with torch.no_grad():
            next(model.parameters()).add_(torch.randn(next(model.parameters()).shape))

    finding = audit("arch:llama", against=PlantedEngine(plants=(scramble,)), laws=["same_prefill"]).findings[0]
    assert finding.verdict == "refuted"
    assert finding.port is not None
    assert not finding.port.explained
    assert "no setting was found that explains it" in finding.reason


def test_an_engine_may_equal_either_output_of_a_reference_whose_own_cached_calls_differ() -> None:
    finding = audit("arch:jamba", against=PlantedEngine(), laws=["same_chunked_prefill"]).findings[0]
    assert finding.verdict == "held", finding.reason
    assert "the reference itself differs between calls with a cache and one call" in finding.scope.assumptions[0]
    other = plants(planted.attribute("variance_epsilon", 1e-2))
    finding = audit("arch:jamba", against=other, laws=["same_chunked_prefill"]).findings[0]
    assert finding.verdict == "undecided"
    assert "planted differs from both" in finding.reason
