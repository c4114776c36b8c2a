"""An engine in another interpreter: the protocol, its limits, and planted differences that are found and named."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from orderproof import audit
from orderproof.ports import engine_side
from orderproof.ports.engine_side import serving
from tests.ports.numpy_engine import numpy_engine

LAWS = ["loads_checkpoint", "same_prefill", "same_cached_decoding"]
ALL = "same_far_positions"
LINEAR = 'arch:llama?rope_parameters={"rope_type":"linear","factor":4.0,"rope_theta":10000.0}'
LLAMA3 = (
    'arch:llama?rope_parameters={"rope_type":"llama3","factor":4.0,"rope_theta":10000.0,"low_freq_factor":1.0,'
    '"high_freq_factor":4.0,"original_max_position_embeddings":16}'
)
LONGROPE = (
    'arch:phi3?max_position_embeddings=64&rope_parameters={"rope_type":"longrope","rope_theta":10000.0,'
    '"original_max_position_embeddings":16,"short_factor":[1.0,1.05,1.1,1.15,1.2,1.25,1.3,1.35],'
    '"long_factor":[2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0]}'
)
TEMPERATURE = (
    'arch:ministral3?rope_parameters={"rope_type":"linear","factor":2.0,"rope_theta":10000.0,'
    '"llama_4_scaling_beta":0.5,"original_max_position_embeddings":8}'
)


class Case(NamedTuple):
    subject: str
    difference: str
    law: str
    setting: str
    assumed: str


CASES = (
    Case("arch:mistral", "window plus one", "same_past_window", "sliding_window", "7"),
    Case("arch:mistral", "no window", "same_past_window", "sliding_window", "no window"),
    Case("arch:gemma2", "all local", "same_past_window", "layer_types", "all local"),
    Case("arch:gemma2", "all full", "same_past_window", "sliding_window", "no window"),
    Case(LINEAR, "no scaling", "same_prefill", "rope_parameters.rope_type", "no scaling"),
    Case(LLAMA3, "no scaling", "same_prefill", "rope_parameters.rope_type", "no scaling"),
    Case(LONGROPE, "always the long factors", "same_prefill", "rope_parameters.short_factor", "the long factors"),
    Case("arch:llama", "another base", "same_prefill", "rope_parameters.rope_theta", "1e+06"),
    Case("arch:llama", "interleaved pairs", "same_prefill", "rotary layout", "interleaved pairs"),
    Case("arch:llama", "another epsilon", "same_prefill", "rms_norm_eps", "1e-05"),
    Case("arch:llama", "in float16", "same_prefill", "parameters", "rounded to float16"),
    Case("arch:llama", "in bfloat16", "same_prefill", "parameters", "rounded to bfloat16"),
    Case("arch:llama", "cache in float16", "same_prefill", "keys and values", "rounded to float16"),
    Case("arch:llama", "attention in float16", "same_prefill", "inputs and output of attention", "rounded to float16"),
    Case("arch:gemma2?query_pre_attn_scalar=64", "scale of the head", "same_prefill", "scale of scores",
         "from the width of a head"),
    Case("arch:gemma2?attn_logit_softcapping=2.0", "no softcap of scores", "same_prefill", "attn_logit_softcapping",
         "no softcap"),
    Case("arch:gemma2", "no softcap of logits", "same_prefill", "final_logit_softcapping", "no softcap"),
    Case("arch:gemma", "exact activation", "same_prefill", "hidden_act", "gelu"),
    Case(
        "arch:gemma?hidden_size=96",
        "scale of two decimals",
        "same_prefill",
        "scale of embeddings",
        "rounded to 2 decimals",
    ),
    Case("arch:qwen3", "epsilon of heads", "same_prefill", "epsilon of k_norm, q_norm", "1e-05"),
    Case("arch:olmo", "root mean square", "same_prefill", "norm", "without the mean subtracted"),
    Case("arch:olmo?clip_qkv=0.5", "no clipping", "same_prefill", "clip_qkv", "absent"),
    Case(TEMPERATURE, "no temperature", ALL, "rope_parameters.llama_4_scaling_beta", "0.0"),
    Case("arch:gemma3_text?use_bidirectional_attention=true", "causal", "same_prefill",
         "use_bidirectional_attention", "False"),
    Case("arch:llama", "positions plus one", "same_cached_decoding", "positions after a cache", "one too large"),
    Case("arch:llama", "positions restart", "same_chunked_prefill", "positions after a cache", "from 0 in each call"),
)  # fmt: skip
SOON = (
    "window plus one",
    "scale of the head",
    "root mean square",
    "scale of two decimals",
    "no temperature",
    "attention in float16",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("numpy")


def _parameters() -> list[Any]:
    names = [f"{case.subject[:12]} {case.difference}" for case in CASES]
    marks = [() if case.difference in SOON else pytest.mark.slow for case in CASES]
    return [pytest.param(case, id=name, marks=mark) for case, name, mark in zip(CASES, names, marks, strict=True)]


@pytest.mark.parametrize("case", _parameters())
def test_a_planted_difference_is_found_and_named(case: Case, place: Path) -> None:
    (finding,) = audit(case.subject, against=numpy_engine(place, case.difference), laws=[case.law]).findings
    assert finding.verdict == "refuted", finding.reason
    assert finding.port is not None
    assert finding.port.explained, finding.reason
    named = [(cause.setting, cause.assumed) for cause in finding.port.causes]
    assert named == [(case.setting, case.assumed)], finding.reason


@pytest.mark.parametrize("name", ["llama", pytest.param("gemma3_text", marks=pytest.mark.slow)])
def test_an_engine_that_agrees_passes_every_law_although_it_prints(name: str, place: Path) -> None:
    report = audit(f"arch:{name}", against=numpy_engine(place))
    assert report.exit_code == 0, [each.reason for each in report.findings if each.verdict != "held"]
    assert sum(finding.verdict == "held" for finding in report.findings) >= 7
    assert "numpy" in report.versions


@pytest.mark.parametrize(
    ("law", "difference", "first"),
    [
        ("same_cached_prompt", "scores of the earlier prompt", 48),
        ("same_after_preemption", "forgets a token that it generated", 40),
        pytest.param("same_after_preemption", "positions restart after it was put off", 40, marks=pytest.mark.slow),
    ],
)
def test_a_prompt_that_is_kept_and_a_row_that_is_put_off_are_compared(
    law: str, difference: str, first: int, place: Path
) -> None:
    (finding,) = audit("arch:llama?num_hidden_layers=1", against=numpy_engine(place, difference), laws=[law]).findings
    assert finding.verdict == "refuted", finding.reason
    assert finding.port is not None
    assert finding.port.first_token == first, finding.reason


@pytest.mark.slow
@pytest.mark.parametrize("difference", ["positions restart after a prefix", "blocks of another prompt"])
def test_a_wrong_cache_of_a_shared_beginning_is_found_after_it(difference: str, place: Path) -> None:
    (finding,) = audit("arch:llama", against=numpy_engine(place, difference), laws=["same_shared_prefix"]).findings
    assert finding.verdict == "refuted", finding.reason
    assert finding.port is not None
    assert finding.port.first_token == 48
    assert "a prompt of 60 tokens after one with the same beginning" in finding.reason


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("crashes", "numpy ended its process, which was ended by SIGABRT: model.cpp:7: ASSERT(n > 0) failed"),
        ("hangs", "numpy was not done after 2 s: give it more with --timeout"),
        ("ends", "numpy ended its process, which ended with exit code 0"),
        ("the engine is killed", "numpy ended its process, which all its checkpoints share"),
        ("not a number", "numpy: it returned a value that is not finite, first at token 2 of row 0"),
    ],
)
def test_a_call_that_fails_costs_its_law_only(how: str, reason: str, place: Path) -> None:
    timeout = 2.0 if how == "hangs" else 60.0
    report = audit("arch:llama", against=numpy_engine(place, how), laws=LAWS, timeout=timeout)
    loaded, prefill, decoding = report.findings
    assert (loaded.verdict, decoding.verdict) == ("held", "held")
    assert prefill.verdict == ("refuted" if how == "not a number" else "undecided")
    assert reason in prefill.reason


def test_a_checkpoint_that_is_refused_or_not_known_leaves_the_process_usable(place: Path) -> None:
    refused = audit("arch:llama", against=numpy_engine(place, "refuses"), laws=["loads_checkpoint"]).findings[0]
    assert refused.verdict == "refuted"
    assert "raised ValueError: unknown key 'rope_parameters'" in refused.reason
    unknown = audit("arch:gpt2", against=numpy_engine(place), laws=["same_prefill"]).findings[0]
    assert unknown.verdict == "not_applicable"
    assert "has no implementation of gpt2" in unknown.reason
    assert audit("arch:llama", against=numpy_engine(place), laws=["same_prefill"]).exit_code == 0


def test_requests_that_wait_in_the_pipe_are_read_one_by_one(place: Path) -> None:
    server = numpy_engine(place).server()
    for _ in range(3):
        refused = audit("arch:llama", against=numpy_engine(place, "refuses"), laws=["loads_checkpoint"]).findings[0]
        assert "the same error" in refused.reason
    assert numpy_engine(place).server() is server
    read, write = os.pipe()
    os.write(write, b'{}\n{"folder": "a"}\n')
    assert [serving.read_line(read), serving.read_line(read)] == [{}, {"folder": "a"}]


@pytest.mark.parametrize(
    ("python", "side", "reason"),
    [
        ("/bin/echo", "pass", "numpy: expected an interpreter of Python; got /bin/echo"),
        ("/bin/false", "pass", "numpy: the interpreter /bin/false ended with exit code 1"),
        (__file__, "pass", f"numpy: the interpreter {__file__} cannot be started: Permission denied"),
        (sys.executable, "import no_engine", "numpy cannot be imported by"),
        (sys.executable, "import os; os.abort()", f"numpy: the interpreter {sys.executable} was ended by SIGABRT"),
    ],
)
def test_a_wrong_interpreter_is_one_line(python: str, side: str, reason: str, place: Path, tmp_path: Path) -> None:
    file = tmp_path / "broken_side.py"
    file.write_text(side, encoding="utf-8")
    engine = numpy_engine(place, side=file).for_target(python)
    for finding in audit("arch:llama", against=engine, laws=["loads_checkpoint", "same_prefill"]).findings:
        assert finding.verdict == "undecided"
        assert finding.reason.startswith(reason)  # of every law: no checkpoint was loaded yet
        assert "\n" not in finding.reason


def test_vllm_makes_a_new_engine_after_a_call_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck:
        """The loop of vLLM, which ends when each request has ended."""

        def __init__(self, *arguments: object, **options: object) -> None:
            self.unfinished = 0

        def generate(self, prompts: list[Any], *arguments: object, **options: object) -> list[Any]:
            assert not self.unfinished, "it would wait for ever"
            self.unfinished = len(prompts)
            raise RuntimeError("no kernel")

    processor = SimpleNamespace(LogitsProcessor=object, MoveDirectionality=None)
    library, models = SimpleNamespace(LLM=Stuck, SamplingParams=dict), SimpleNamespace(registry=SimpleNamespace())
    parts = {"": library, ".v1.sample.logits_processor": processor, ".model_executor.models": models}
    for name, module in parts.items():
        monkeypatch.setitem(sys.modules, f"vllm{name}", module)
    side = serving.import_side(Path(engine_side.__path__[0]) / "vllm_side.py")
    assert models.registry._run_in_subprocess(lambda: "inspected here") == "inspected here"
    model = side._Model("checkpoint", 9)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no kernel"):
            model.prefill([3, 4])
        assert not model.engines


def test_the_side_of_an_engine_imports_nothing_of_this_package() -> None:
    for file in Path(engine_side.__path__[0]).glob("*.py"):
        imported = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                    if isinstance(node, (ast.Import, ast.ImportFrom))]  # fmt: skip
        names = [each.name for node in imported if isinstance(node, ast.Import) for each in node.names]
        names += [str(node.module) for node in imported if isinstance(node, ast.ImportFrom)]
        assert not [name for name in names if name.partition(".")[0] == "orderproof"], file.name


def test_a_bare_assertion_of_an_engine_is_told_with_its_line() -> None:
    def check(shape: int) -> None:
        assert shape

    with pytest.raises(AssertionError) as raised:
        check(0)
    bare = AssertionError().with_traceback(raised.value.__traceback__)
    assert serving.failure_text(bare) == "raised AssertionError: assert shape"
    assert serving.failure_text(ValueError("no head")) == "raised ValueError: no head"
    assert serving.failure_text(ValueError()) == "raised ValueError"
