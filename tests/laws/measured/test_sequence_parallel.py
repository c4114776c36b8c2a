"""The law `sequence_parallel`: real ranks, what they cannot do, and what they leave behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from typing import Any

import pytest
import torch
from torch import Tensor, distributed

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.sequence_parallel.all_gather import all_gather
from orderproof.blocks.sequence_parallel.local_ranks import run_on_ranks
from orderproof.blocks.transformer_adapter import tiny_decoder, tiny_encoder
from orderproof.errors import UnsupportedCallError
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.measured_law import MeasuredLaw
from orderproof.models import load
from orderproof.records.audit import Finding


def measured(driver: ModelAdapter) -> Finding:
    law = find_law("sequence_parallel")
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, CachedCalls(driver), kind="causal_lm")


def pretrained(name: str) -> ModelAdapter:
    pytest.importorskip("transformers")
    made = load(f"arch:{name}", tiny=True).build_adapter
    assert made is not None
    return made()


def test_ranks_talk_and_leave_nothing_behind() -> None:
    made = run_on_ranks(lambda rank: [all_gather(torch.tensor([rank, 10 + rank]), 0)], 2)
    assert [one.tolist() for (one,) in made] == [[0, 10, 1, 11]] * 2
    assert multiprocessing.active_children() == []
    assert not distributed.is_initialized()


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (ValueError("no such table"), RuntimeError, "ValueError: no such table"),
        (UnsupportedCallError("it has windows"), UnsupportedCallError, "it has windows"),
    ],
)
def test_rank_that_fails_is_reported_at_once(error: Exception, raised: type[Exception], said: str) -> None:
    def work(rank: int) -> list[Tensor]:
        if rank == 1:
            raise error
        return [all_gather(torch.zeros(1), 0)]

    began = time.monotonic()
    with pytest.raises(raised, match=said):
        run_on_ranks(work, 2)
    assert time.monotonic() - began < 10
    assert multiprocessing.active_children() == []


def test_rank_that_hangs_is_reported_with_the_line_it_is_in() -> None:
    def wait_too_long(rank: int) -> list[Tensor]:
        if rank == 1:
            time.sleep(60)
        return [torch.zeros(1)]

    with pytest.raises(RuntimeError, match=r"rank 1 of 2 returned nothing within 2 s in wait_too_long \("):
        run_on_ranks(wait_too_long, 2, limit=2)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGKILL, "exit code -9 and returned nothing$"),
        (signal.SIGSEGV, r"exit code -11 and returned nothing in die \("),
    ],
)
def test_rank_that_crashes_is_reported_at_once(number: int, said: str) -> None:
    def die(rank: int) -> list[Tensor]:
        if rank == 1:
            os.kill(os.getpid(), number)
        return [all_gather(torch.zeros(1), 0)]

    began = time.monotonic()
    with pytest.raises(RuntimeError, match=f"rank 1 of 2 ended with {said}"):
        run_on_ranks(die, 2)
    assert time.monotonic() - began < 10


def test_rank_that_crashes_is_reported_also_if_another_one_noticed_first() -> None:
    connected = multiprocessing.get_context("fork").Event()

    def disconnect(rank: int) -> list[Tensor]:
        if rank == 0:
            connected.wait(20)
            raise RuntimeError("connection reset by peer")
        connected.set()
        time.sleep(0.3)  # its process ends after the other one has failed
        os._exit(7)

    with pytest.raises(RuntimeError, match=r"^rank 1 of 2 ended with exit code 7 and returned nothing$"):
        run_on_ranks(disconnect, 2)


@pytest.mark.parametrize("encoding", ["rotary", "alibi", "t5", "learned", "none", "forgetting", "path"])
def test_any_split_gives_what_one_rank_gives(encoding: str) -> None:
    found = measured(tiny_decoder(encoding))
    assert found.measurement is not None
    assert [trial.description for trial in found.measurement.comparisons] == [
        "two ranks, contiguous split",
        "two ranks, zig-zag split",
    ]
    assert found.deviation.float32 is not None
    assert found.deviation.float32 < 1e-5


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert"])
def test_transformers_model_is_spread_and_its_attention_is_put_back(name: str) -> None:
    driver = pretrained(name)
    assert measured(driver).verdict == "held"
    assert driver.module.config._attn_implementation == "sdpa"


def test_transformers_model_with_positions_of_each_rank_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = pretrained("llama")
    call = driver.call

    def local(tokens: Tensor, **kwargs: Any) -> ModelOutput:
        if driver.module.config._attn_implementation != "sdpa":
            kwargs["positions"] = torch.arange(tokens.shape[1]).expand(tokens.shape[:2])
        return call(tokens, **kwargs)

    monkeypatch.setattr(driver, "call", local)
    monkeypatch.setattr(driver, "in_float64", lambda: driver)
    found = measured(driver)
    assert found.verdict == "refuted"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mistral", "only full attention"),
        ("falcon", "not one that can be replaced"),
        ("mamba", "no encoding of positions"),
    ],
)
def test_what_cannot_be_spread_is_not_asked(name: str, reason: str) -> None:
    found = measured(pretrained(name))
    assert found.verdict == "not_applicable"
    assert reason in found.reason


@pytest.mark.parametrize("encoding", ["rotary", "kerple", "dape", "sinusoidal"])
def test_our_encoder_may_be_split_too(encoding: str) -> None:
    found = measured(tiny_encoder(encoding))
    assert found.verdict == "held"
    assert found.deviation.float32 is not None
    assert found.deviation.float32 < 1e-5
