"""Context spans: short in tiny models, crossed by default, and named if not crossed."""

from types import SimpleNamespace

import pytest

from orderproof.models import load
from orderproof.models.hf.architectures import default_config
from orderproof.models.hf.context_spans import (
    MAX_CROSSED_SPAN,
    SHORT_SPAN,
    context_spans,
    default_proof_length,
    short_span_values,
)

NAMED = {
    "mistral": {"sliding_window": 4096},
    "mamba2": {"chunk_size": 256, "conv_kernel": 4},
    "t5": {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128},
    "gpt_neo": {"window_size": 256},
    "bert": {},
}


@pytest.mark.parametrize("name", NAMED)
def test_context_spans_of_a_configuration(name):
    assert context_spans(default_config(name)) == NAMED[name]


def test_long_spans_become_short():
    assert short_span_values(default_config("mistral")) == {"sliding_window": SHORT_SPAN}
    assert short_span_values(default_config("longformer")) == {"attention_window": SHORT_SPAN}
    buckets = short_span_values(default_config("t5"))
    assert buckets["relative_attention_num_buckets"] > buckets["relative_attention_max_distance"]
    assert "conv_kernel" not in short_span_values(default_config("mamba2"))


def _named(**sizes):
    return SimpleNamespace(to_dict=lambda: sizes)


def test_the_default_length_is_a_prime_longer_than_every_span():
    assert default_proof_length(_named(), set()) == (7, "")
    assert default_proof_length(_named(sliding_window=4), {7}) == (11, "")
    assert default_proof_length(_named(sliding_window=4, chunk_size=16), set()) == (17, "")
    assert default_proof_length(_named(attention_window=[4, 12]), {13}) == (17, "")
    assert default_proof_length(_named(sliding_window=None, chunk_size=0, num_hidden_layers=90), set()) == (7, "")


def test_a_long_span_is_named_and_does_not_raise_the_length():
    length, beyond = default_proof_length(_named(sliding_window=4096, num_buckets=32), set())
    assert (length, beyond) == (37, "not crossed at 37 tokens: sliding_window 4096")
    assert default_proof_length(_named(chunk_size=MAX_CROSSED_SPAN), set()) == (67, "")


def test_proofs_of_a_tiny_model_cross_every_span():
    assert "not crossed" not in load("arch:mistral", tiny=True).load_summary
    whole = load("arch:mistral?num_hidden_layers=1")
    assert whole.load_summary.endswith("not crossed at 7 tokens: sliding_window 4096")
