"""The page's arithmetic, compared with torch: same weights, same inputs, float64."""

from __future__ import annotations

import itertools

import pytest
import torch
from playwright.sync_api import Page

from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.examples import ENCODINGS, bare_head, in_torch, laws_in_torch, numbers

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)

# Two ways of summing some hundred numbers of size 1 in float64: 1e-13 leaves room for a few hundred roundings of 2^-53.
CLOSE = 1e-13
choices = pytest.mark.parametrize(("causal", "layers"), list(itertools.product((False, True), (1, 2))))


def mixed(value: int) -> int:
    """The last step of MurmurHash3."""
    value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return value ^ value >> 16


def vector_of(word: str, width: int) -> list[float]:
    """What the page's seeded hash says of a word, once more."""
    start = 0x811C9DC5
    for byte in f"word {word}".encode():
        start = (start ^ byte) * 0x01000193 & 0xFFFFFFFF
    return [3**0.5 * (2 * mixed(start ^ mixed(i + 1)) / 2**32 - 1) for i in range(width)]


@pytest.mark.parametrize("word", ["cat", "Straße", "语言", "👩‍🚀", "مرحبا", "<b>"])
def test_any_word_has_a_vector_and_always_the_same(asked: Page, word: str):
    shown = asked.evaluate("word => window.orderproof.wordVector(word, 8)", word)
    assert shown == pytest.approx(vector_of(word, 8), abs=1e-15)
    assert len(set(shown)) == 8


def test_the_drawn_numbers_are_centred_and_of_variance_one(asked: Page):
    drawn = numbers(asked.evaluate("window.orderproof.wordVector('many', 20000)"))
    assert abs(float(drawn.mean())) < 0.03
    assert abs(float(drawn.var()) - 1) < 0.03


@choices
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_model_of_the_page_is_orderproofs_own(asked: Page, encoding: str, causal: bool, layers: int):
    weights = asked.evaluate("window.orderproof.WEIGHTS")
    model = in_torch(weights, encoding, causal=causal, layers=layers)
    options = {"encoding": encoding, "causal": causal, "layers": layers}
    for tokens in (1, 2, 5, 8):
        x = torch.randn(tokens, 8, dtype=torch.float64)
        shown = numbers(asked.evaluate("([x, options]) => window.orderproof.run(x, options)", [x.tolist(), options]))
        with torch.no_grad():
            wanted = model(x[None])[0]
        assert float((shown - wanted).abs().max()) <= CLOSE * max(1.0, float(wanted.abs().max()))


def test_add_norm_and_feed_forward_are_those_of_orderproofs_layer(asked: Page):
    layer = in_torch(asked.evaluate("window.orderproof.WEIGHTS"), "none", causal=False, layers=1).stack.layers[0]
    x = torch.randn(5, 8, dtype=torch.float64)
    shown = asked.evaluate("x => window.orderproof.parts(x)", x.tolist())
    with torch.no_grad():
        wide = layer.feed_forward(x[None])[0]
        wanted = {
            "norm": layer.around_attention.norm(x),
            "feed-forward": wide,
            "add": x + layer.feed_forward(layer.around_feed_forward.norm(x)[None])[0],
        }
    for name, value in wanted.items():
        torch.testing.assert_close(numbers(shown[name]), value, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_bare_head_of_the_proof_is_attention_with_orderproofs_encodings(asked: Page, encoding: str, causal: bool):
    weights = asked.evaluate("window.orderproof.HEAD_WEIGHTS")
    x = torch.randn(7, 4, dtype=torch.float64)
    script = """([x, options]) => {
      const found = window.orderproof.attentionHead(x, options);
      found.s = found.s.map(row => row.map(score => score === -Infinity ? "hidden" : score));
      return found;
    }"""
    shown = asked.evaluate(script, [x.tolist(), {"encoding": encoding, "causal": causal}])
    shown["s"] = [[-float("inf") if score == "hidden" else score for score in row] for row in shown["s"]]
    with torch.no_grad():
        wanted = bare_head(x, weights, encoding, causal=causal)
    for name, value in wanted.items():
        torch.testing.assert_close(numbers(shown[name]), value, rtol=CLOSE, atol=CLOSE)
    torch.testing.assert_close(numbers(shown["pooled"]), wanted["z"].mean(0), rtol=CLOSE, atol=CLOSE)


@choices
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_fingerprint_is_the_one_torch_finds(asked: Page, encoding: str, causal: bool, layers: int):
    options = {"encoding": encoding, "causal": causal, "layers": layers}
    shown = asked.evaluate("options => window.orderproof.differencesOf(options)", options)
    weights, x, others = asked.evaluate(
        "[window.orderproof.WEIGHTS, window.orderproof.PROBE_TOKENS, window.orderproof.REPLACEMENT_TOKENS]"
    )
    model = in_torch(weights, encoding, causal=causal, layers=layers)
    wanted = laws_in_torch(model, numbers(x), numbers(others))
    for law, value in wanted.items():
        assert (shown[law] <= 1e-12) == (value <= 1e-12)
        assert abs(shown[law] - value) <= 10 * CLOSE
