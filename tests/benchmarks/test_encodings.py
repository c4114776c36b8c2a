"""The benchmark of the encodings names missing packages, and its ratios are taken within a round."""

from __future__ import annotations

import time

import pytest
import torch

from benchmarks import encodings as benchmark


def test_a_missing_peer_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(benchmark, "PEERS", ("transformers", "nobody_has_this"))
    with pytest.raises(SystemExit):
        benchmark.main(["--only", "rotate"])
    assert "the peers nobody_has_this are not installed; pip install -c constraints.txt" in capsys.readouterr().err


def test_ratios_are_taken_within_a_round():
    def busy(seconds: float) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    base, found = benchmark.ratios({"a": lambda: busy(0.001), "b": lambda: busy(0.003)}, base="a", rounds=5)
    assert base >= 0.001
    assert found["a"] == 1.0
    assert found["b"] > 1.0


@pytest.mark.slow
def test_every_table_has_a_title_that_names_its_limit():
    names = {"rotate", "decode", "positions", "stack", "errors", "bias", "train", "table"}
    assert set(benchmark.TABLES) == names
    ((title, lines, missed),) = benchmark.train(1)  # which limits it misses depends on the load of the machine
    assert "limit" in title
    assert len({len(line) for line in lines}) == 1
    assert all(": " in each for each in missed)
    assert benchmark.verdict([]) == "No limit is missed."
    assert benchmark.verdict(["a: 2", "b: 3"]) == "Limits missed: a: 2; b: 3."


def test_the_page_names_instruction_sets_and_caches():
    named, features, *_ = benchmark.processor()
    assert f"torch {torch.__version__}" in named
    assert features.startswith("Instruction sets: ")
    assert "Caches: " in features


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # x-transformers' einops
def test_every_scheme_of_a_compiled_stack_gives_the_same_numbers():
    stack = benchmark.compiled_stack
    schemes = {
        "hf": stack.Transformers, "x": stack.XTransformers, "table": stack.TableInMemory, "ours": stack.Ours
    }  # fmt: skip
    calls = stack.calls_of(schemes, (1, 2, 7, 8), torch.float32, compiled=False, opaque=False)
    results = {name: call() for name, call in calls.items()}
    for name in ("hf", "table"):
        assert torch.allclose(results[name], results["ours"], atol=1e-5), name
    # x-transformers rotates neighbouring features, and the seed gives all stacks the same weights.
    assert not torch.allclose(results["x"], results["ours"], atol=1e-5)
    opaque = stack.calls_of(schemes, (1, 2, 7, 8), torch.float32, compiled=False, opaque=True)
    assert all(call().shape == (1, 7, 16) for call in opaque.values())
