"""The trained decoders of the step `#next-word`: their probabilities, compared with torch, and what they can know."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from playwright.sync_api import Page
from torch import nn

from orderproof import prove
from orderproof.blocks import Transformer
from orderproof.explain.page import next_token
from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.examples import numbers
from tests.explain.page_actions import number, scrub

VOCABULARY = next_token()["vocabulary"]
QUESTION = "the cat chased the dog so the"
MODELS = range(3)
browser = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)


class Decoder(nn.Module):
    """Orderproof's transformer with the stored weights, in float64: tokens [batch, token] -> logits."""

    def __init__(self, stored: dict[str, Any]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), 8)
        self.decoder = Transformer(
            8, 4, stored["layers"], encoding=stored["encoding"], causal=True, length=8, hidden=16
        )
        self.unembedding = nn.Linear(8, len(VOCABULARY), bias=False)
        self.double().load_state_dict({name: numbers(value) for name, value in stored["weights"].items()})

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.unembedding(self.decoder(self.embedding(tokens)))
        return logits


def decoder(k: int) -> Decoder:
    return Decoder(next_token()["models"][k]).eval()


def probabilities(k: int, text: str) -> torch.Tensor:
    tokens = torch.tensor([[VOCABULARY.index(word) for word in text.split()]])
    with torch.no_grad():
        return decoder(k)(tokens)[0, -1].softmax(-1)


def of(k: int, text: str, word: str) -> float:
    return float(probabilities(k, text)[VOCABULARY.index(word)])


def shown(page: Page, k: int) -> dict[str, float]:
    script = "rows => rows.map(row => [row.dataset.word, row.querySelector('.share').textContent])"
    return {w: number(text) for w, text in page.locator(f"#next-model-{k} li").evaluate_all(script)}


@browser
@pytest.mark.parametrize("k", MODELS)
def test_the_page_computes_the_probabilities_of_orderproofs_decoder(asked: Page, k: int):
    script = """([k, words]) => {
      const { nextTokenModels, nextProbabilities } = window.orderproof;
      const { models, vocabulary } = nextTokenModels();
      return nextProbabilities(models[k], vocabulary, words);
    }"""
    for text in ("the", "the owl bit the fox", QUESTION, f"{QUESTION} dog"):
        found = numbers(asked.evaluate(script, [k, text.split()]))
        torch.testing.assert_close(found, probabilities(k, text), rtol=1e-12, atol=1e-13)


def test_positions_or_a_second_layer_know_who_was_chased_and_one_layer_gives_a_half():
    swapped = "the dog chased the cat so the"
    for k, knows in ((0, True), (1, False), (2, True)):
        for text, runs in ((QUESTION, "dog"), (swapped, "cat")):
            assert (of(k, text, runs) > 0.99) == knows
        gap = float((probabilities(k, QUESTION) - probabilities(k, swapped)).abs().max())
        assert (gap < 1e-12) != knows
    for animal in ("cat", "dog"):
        assert of(1, QUESTION, animal) == pytest.approx(0.5, abs=0.005)


def test_that_one_layer_cannot_know_is_proved():
    stored = next_token()["models"][1]
    assert (stored["encoding"], stored["layers"]) == ("none", 1)
    finding = prove(decoder(1).decoder, "prompt_permutation", inputs=(torch.randn(1, 7, 8, dtype=torch.float64),))
    assert finding.verdict == "proved"


def test_one_layer_without_positions_loses_one_bit_of_each_sentence():
    losses = [model["loss"] for model in next_token()["models"]]
    assert losses[0] == pytest.approx(losses[2], abs=1e-3)
    assert losses[1] - losses[0] == pytest.approx(math.log(2) / 8, abs=1e-3)  # a sentence has 8 next words


@browser
def test_the_bars_are_scrubbed_word_by_word_and_swapped(open_page: Open):
    page = open_page("next-word").page
    assert page.locator("#next-prompt .unread").count() == 1
    for k in MODELS:
        found = shown(page, k)
        assert set(found) == set(VOCABULARY)
        assert [found[w] for w in VOCABULARY] == pytest.approx(probabilities(k, QUESTION).tolist(), abs=6e-4)
    assert page.locator(".next-answer").all_inner_texts() == ["next: dog", "next: cat or dog", "next: dog"]
    page.locator("#next-swap").click()
    assert page.locator(".next-answer").all_inner_texts() == ["next: cat", "next: cat or dog", "next: cat"]
    scrub(page, "next-time", 1)
    assert page.locator("#next-prompt .unread").count() == 6
    assert page.inner_text("#next-time-stage") == "2 of 8 words read"
    assert page.inner_text("#next-model-0 .next-answer") == "next: one of 3 words"
    page.locator("#next-second").select_option("dog")  # it is the first one: they change places
    assert page.locator("#next-first").input_value() == "cat"


def test_the_stored_weights_are_small_and_plain() -> None:
    def leaves(value: Any) -> list[float]:
        return [each for part in value for each in leaves(part)] if isinstance(value, list) else [value]

    values = [each for model in next_token()["models"] for value in model["weights"].values() for each in leaves(value)]
    assert max(map(abs, values)) < 20
    assert len(json.dumps(next_token())) < 40_000
