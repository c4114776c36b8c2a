"""All heads of the trained model: stored weights, what the order changes, and how one head is chosen."""

from __future__ import annotations

import base64

import pytest
import torch
from playwright.sync_api import Page

from orderproof.explain.all_heads import all_heads, changed_by_order, token_order
from orderproof.explain.page import trained_model
from orderproof.models import bundled
from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.examples import numbers
from tests.explain.page_actions import ROUNDING, choose, matrix, number, same_digits

LAYERS, HEADS = 6, 12
LEVEL = 1 / 255
browser = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)


def stored(item: int, which: int) -> torch.Tensor:
    """Weights [layer, head, query, key] of a condition and a sentence."""
    made = trained_model()["heads"][item]
    tokens = len(trained_model()["pairs"][made["pair"]]["tokens"][0])
    levels = torch.tensor(list(base64.b64decode(made["maps"][which])), dtype=torch.float64)
    return levels.reshape(LAYERS, HEADS, tokens, tokens) / 255


@pytest.mark.parametrize("item", range(4))
def test_every_row_of_weights_sums_to_one_and_the_first_head_is_that_of_the_pair(item: int):
    pair = trained_model()["pairs"][trained_model()["heads"][item]["pair"]]
    for which in range(4):
        weights = stored(item, which)
        tokens = weights.shape[-1]
        assert (weights.sum(-1) - 1).abs().max() <= tokens * LEVEL / 2
        assert (weights[0, 0] - numbers(pair["maps"][which])).abs().max() <= LEVEL / 2 + 6e-4


@pytest.mark.parametrize("item", range(4))
def test_with_equal_positions_no_head_knows_the_order_and_with_its_own_every_head_does(item: int):
    own, equal = (numbers(gaps) for gaps in trained_model()["heads"][item]["gaps"])
    assert own.shape == equal.shape == (LAYERS, HEADS)
    assert own.min() > 0.01
    assert equal.max() < ROUNDING
    pair = trained_model()["pairs"][trained_model()["heads"][item]["pair"]]
    order = token_order(*pair["tokens"])
    for which, gaps in ((0, own), (2, equal)):
        found = numbers(changed_by_order(stored(item, which), stored(item, which + 1), order))
        assert (found - gaps).abs().max() <= LEVEL + 2 * 0.005  # each gap has two digits


@pytest.mark.slow
def test_the_stored_weights_are_those_of_the_bundled_model():
    made, subject = trained_model()["heads"][1], bundled()
    found = all_heads(subject, tuple(trained_model()["pairs"][made["pair"]]["sentences"]))
    for text, kept in zip(found["maps"], made["maps"], strict=True):
        levels = zip(base64.b64decode(text), base64.b64decode(kept), strict=True)
        assert max(abs(one - other) for one, other in levels) <= 1
    assert (numbers(found["gaps"][0]) - numbers(made["gaps"][0])).abs().max() <= 0.01
    assert numbers(found["gaps"][1]).max() < ROUNDING
    assert all_heads(subject, ("a dog barks", "a cat barks")) is None
    assert all_heads(subject, ("a " * 11, "a " * 11)) is None


def test_the_order_of_tokens_is_found_with_equal_tokens_in_their_order():
    assert token_order(["the", "cat", "chased", "the", "dog"], ["the", "dog", "chased", "the", "cat"]) == [
        0,
        4,
        2,
        3,
        1,
    ]


def shown(page: Page, name: str) -> torch.Tensor:
    return matrix(page, f"#heads-{name}")


@browser
def test_a_head_is_chosen_by_mouse_and_by_keys_and_shows_its_weights(open_page: Open):
    page = open_page("heads").page
    assert page.locator("#heads-all input").count() == LAYERS * HEADS
    assert page.inner_text("#heads-chosen h3") == "Layer 1, head 3"
    page.locator("#heads-all input[value='0 2']").focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#heads-chosen h3") == "Layer 1, head 4"
    page.locator("#heads-all input[value='4 7']").check(force=True)
    for k, name in enumerate(("first", "second")):
        assert same_digits(shown(page, name), stored(0, k)[4, 7], 2)
    page.locator("#heads-pair").select_option("1")
    assert same_digits(shown(page, "second"), stored(1, 1)[4, 7], 2)
    assert page.evaluate("location.hash") == "#heads"


@browser
def test_equal_positions_leave_only_rounding_in_every_head(open_page: Open):
    page = open_page("heads").page
    assert page.inner_text("#heads-count .answer") == "72 of 72 heads"
    choose(page, "heads-positions", 1)
    assert page.inner_text("#heads-count .answer") == "0 of 72 heads"
    assert "rounding" in page.inner_text("#heads-count")
    assert number(page.inner_text("#heads-chosen .gap-size")) <= ROUNDING
    assert same_digits(shown(page, "second"), stored(0, 3)[0, 2], 2)


@browser
def test_the_strongest_weight_between_two_words_is_said(open_page: Open):
    page = open_page("heads").page
    tokens = trained_model()["pairs"][0]["tokens"][0]
    weights = stored(0, 0)[0, 2][1:-1, 1:-1].clone()
    weights.fill_diagonal_(0)
    row, column = divmod(int(weights.argmax()), weights.shape[1])
    text = page.inner_text("#heads-chosen p >> nth=0")
    assert text.startswith(f"Most between two words: “{tokens[row + 1]}” gives “{tokens[column + 1]}”")
    assert column == row - 1
    assert "the word before it" in text
