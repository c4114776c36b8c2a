"""Chunks, windows and buckets: short in tiny models, crossed by default, and named where they are not."""

from types import SimpleNamespace

import pytest

from orderproof.subjects import load
from orderproof.subjects.architectures import default_config
from orderproof.subjects.stretches import LONGEST, SHORT, crossing_length, short, stretches

NAMED = {
    "mistral": {"sliding_window": 4096},
    "mamba2": {"chunk_size": 256, "conv_kernel": 4},
    "t5": {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128},
    "gpt_neo": {"window_size": 256},
    "bert": {},
}


@pytest.mark.parametrize("name", NAMED)
def test_a_configuration_names_its_stretches(name):
    assert stretches(default_config(name)) == NAMED[name]


def test_stretches_become_short_and_what_is_short_stays():
    assert short(default_config("mistral")) == {"sliding_window": SHORT}
    assert short(default_config("longformer")) == {"attention_window": SHORT}
    buckets = short(default_config("t5"))
    assert buckets["relative_attention_num_buckets"] > buckets["relative_attention_max_distance"]
    assert "conv_kernel" not in short(default_config("mamba2"))


def _named(**sizes):
    return SimpleNamespace(to_dict=lambda: sizes)


def test_the_length_is_a_prime_longer_than_every_stretch():
    assert crossing_length(_named(), set()) == (7, "")
    assert crossing_length(_named(sliding_window=4), {7}) == (11, "")
    assert crossing_length(_named(sliding_window=4, chunk_size=16), set()) == (17, "")
    assert crossing_length(_named(attention_window=[4, 12]), {13}) == (17, "")
    assert crossing_length(_named(sliding_window=None, chunk_size=0, num_hidden_layers=90), set()) == (7, "")


def test_a_long_stretch_does_not_raise_the_length_and_is_named():
    length, beyond = crossing_length(_named(sliding_window=4096, num_buckets=32), set())
    assert (length, beyond) == (37, "not crossed at 37 tokens: sliding_window 4096")
    assert crossing_length(_named(chunk_size=LONGEST), set()) == (67, "")


def test_a_tiny_model_crosses_what_a_large_one_does_not():
    assert "not crossed" not in load("arch:mistral", tiny=True).detail
    whole = load("arch:mistral?num_hidden_layers=1")
    assert whole.detail.endswith("not crossed at 7 tokens: sliding_window 4096")
