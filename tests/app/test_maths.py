"""The page's arithmetic beside torch: same weights, same inputs, float64."""

from __future__ import annotations

import itertools

import pytest
import torch
from playwright.sync_api import Page

from orderproof.encodings import ALiBi, Learned, Rotary, Sinusoidal, T5Bias
from orderproof.permutations import reversal, symmetric_generators
from orderproof.positions import arange
from tests.app.examples import ENCODINGS, in_torch, numbers
from tests.browsing import CHROMIUM, WHY_NOT

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
    shown = asked.evaluate("word => window.orderproof.vectorOf(word, 8)", word)
    assert shown == pytest.approx(vector_of(word, 8), abs=1e-15)
    assert len(set(shown)) == 8


def test_the_drawn_numbers_are_centred_and_of_variance_one(asked: Page):
    drawn = numbers(asked.evaluate("window.orderproof.vectorOf('many', 20000)"))
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


def bare_head(x: torch.Tensor, weights: dict, encoding: str, *, causal: bool) -> dict[str, torch.Tensor]:
    """The bare head of panels 2 and 3, by orderproof's encodings."""
    places = arange(len(x))
    if encoding == "sinusoidal":
        x = Sinusoidal(4).embed(x[None], places)[0]
    if encoding == "learned":
        table = Learned(8, 4).double()
        table.load_state_dict({"weight": numbers(weights["learned.weight"])})
        x = table.embed(x[None], places)[0]
    q, k, v = (x @ numbers(weights[name]) for name in ("query", "key", "value"))
    turned = (q, k)
    if encoding == "rotary":
        turned = tuple(each[0, 0] for each in Rotary(4).rotate(q[None, None], k[None, None], places))
    s = turned[0] @ turned[1].mT / 2
    if encoding == "alibi":
        s = s + ALiBi(8).bias(places, places, dtype=torch.float64)[0, 0]
    if encoding == "t5":
        bias = T5Bias(1, bidirectional=not causal).double()
        bias.load_state_dict({"weight": numbers(weights["t5.weight"])})
        s = s + bias.bias(places, places, dtype=torch.float64)[0, 0]
    if causal:
        s = s.masked_fill(torch.ones_like(s).triu(1) > 0, -torch.inf)
    a = s.softmax(-1)
    return {"x": x, "q": q, "k": k, "v": v, "s": s, "a": a, "z": a @ v}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_bare_head_of_the_proof_is_attention_with_orderproofs_encodings(asked: Page, encoding: str, causal: bool):
    weights = asked.evaluate("window.orderproof.HEAD_WEIGHTS")
    x = torch.randn(7, 4, dtype=torch.float64)
    script = """([x, options]) => {
      const found = window.orderproof.head(x, options);
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


def laws_in_torch(model: torch.nn.Module, x: torch.Tensor, others: torch.Tensor) -> dict[str, float]:
    """The four numbers of a fingerprint, with orderproof's permutations."""

    def run(rows: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return model(rows[None])[0]

    def moved(p: object, *, last: bool = False) -> float:
        place = torch.as_tensor(p).argsort()  # X' = X[inverse(p)]
        gap = (run(x[place]) - first[place]).abs()
        return float(gap[-1].max() if last else gap.max())

    first, n = run(x), len(x)
    cuts = [(run(torch.cat([x[:j], others[j:]]))[:j] - first[:j]).abs().max() for j in range(1, n)]
    return {
        "order_blind": max(moved(p) for p in symmetric_generators(n)),
        "prompt_blind": max(moved(p, last=True) for p in symmetric_generators(n, n - 1)),
        "mirror_blind": moved(reversal(n).copy()),
        "causal": float(max(cuts)),
    }


@choices
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_fingerprint_is_the_one_torch_finds(asked: Page, encoding: str, causal: bool, layers: int):
    options = {"encoding": encoding, "causal": causal, "layers": layers}
    shown = asked.evaluate("options => window.orderproof.fingerprintOf(options)", options)
    weights, x, others = asked.evaluate(
        "[window.orderproof.WEIGHTS, window.orderproof.PROBE, window.orderproof.OTHERS]"
    )
    model = in_torch(weights, encoding, causal=causal, layers=layers)
    wanted = laws_in_torch(model, numbers(x), numbers(others))
    for law, value in wanted.items():
        assert (shown[law] <= 1e-12) == (value <= 1e-12)
        assert abs(shown[law] - value) <= 10 * CLOSE
