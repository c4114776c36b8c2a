"""The numbers on the panels, compared with torch."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from playwright.sync_api import Page

from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.examples import ENCODINGS, bare_head, in_torch
from tests.explain.page_actions import (
    ROUNDING,
    choose,
    matrix,
    number,
    run,
    same_digits,
    shown,
    texts,
    type_words,
    words_of,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)


# ---------------------------------------------------------------- 1: swap


@pytest.mark.parametrize("read", ["mean", "last"])
@pytest.mark.parametrize(("encoding", "causal", "layers"), [("none", False, 1), ("none", True, 2), ("rotary", True, 1)])
def test_both_outputs_and_their_difference_are_those_of_torch(
    open_page: Open, encoding: str, causal: bool, layers: int, read: str
):
    page = open_page().page
    choose(page, "swap", encoding=encoding, causal=causal, layers=layers, readout=read)
    x = words_of(page, 8, ["cat", "chased", "dog"])
    model = in_torch(page.evaluate("window.orderproof.WEIGHTS"), encoding, causal=causal, layers=layers)
    first, second = run(model, x), run(model, x.flip(0))
    wanted = [one[-1] if read == "last" else one.mean(0) for one in (first, second)]
    assert same_digits(shown(page, "#first-read .vector span"), wanted[0])
    assert same_digits(shown(page, "#second-read .vector span"), wanted[1])
    gap = float((wanted[0] - wanted[1]).abs().max())
    text_value = number(page.inner_text("#swap-size"))
    if gap > ROUNDING:
        assert text_value == pytest.approx(gap, rel=0.06)
        assert page.inner_text("#swap-verdict") == "Different outputs"
    else:
        assert text_value <= ROUNDING
        assert page.inner_text("#swap-verdict") == "The same output"


def test_swapping_the_prompt_of_one_causal_layer_changes_nothing_at_the_last_token_and_of_two_it_does(open_page: Open):
    page = open_page().page
    page.get_by_role("button", name="prompt A B, query C").click()
    assert page.locator("#moving button").all_inner_texts() == ["B", "A", "C"]
    assert page.locator("#swap-settings input[value=last]").is_checked()
    assert page.inner_text("#swap-verdict") == "The same output"
    choose(page, "swap", causal=True)
    assert page.inner_text("#swap-verdict") == "The same output"
    choose(page, "swap", layers=2)
    assert page.inner_text("#swap-verdict") == "Different outputs"


def test_each_token_is_shown_next_to_itself_in_the_other_sentence(open_page: Open):
    page = open_page().page
    type_words(page, "the cat chased the dog")
    choose(page, "swap", readout="each", encoding="learned")
    x = words_of(page, 8, ["the", "cat", "chased", "the", "dog"])
    model = in_torch(page.evaluate("window.orderproof.WEIGHTS"), "learned", causal=False, layers=1)
    order = [4, 1, 2, 3, 0]
    first, second = run(model, x), run(model, x[order])
    for place, cells in enumerate(texts(page, "#each-read tbody tr")):
        assert same_digits([number(n) for n in cells[0].split()], first[place], 2)
        assert same_digits([number(n) for n in cells[1].split()], second[order.index(place)], 2)
        gap = float((first[place] - second[order.index(place)]).abs().max())
        assert number(cells[2]) == pytest.approx(gap, rel=0.06)


def test_two_sentences_that_are_the_same_are_not_said_to_differ(open_page: Open):
    page = open_page().page
    type_words(page, "a a b")
    page.get_by_role("button", name="as typed").click()
    page.locator("#moving button").first.press("ArrowRight")  # one a for the other
    choose(page, "swap", encoding="learned", readout="each")
    assert page.inner_text("#swap-verdict") == "The same output"
    assert page.inner_text("#swap-why") == "Both sentences are the same: move a word."
    assert [row[-1] for row in texts(page, "#each-read tbody tr")] == ["0", "0", "0"]


# ---------------------------------------------------------------- 2 and 3: one head


def test_queries_keys_values_and_the_sum_are_those_of_torch(open_page: Open):
    page = open_page().page
    type_words(page, "we saw her duck")
    page.locator("#query-word input").nth(2).check()
    x = words_of(page, 4, ["we", "saw", "her", "duck"])
    wanted = bare_head(x, page.evaluate("window.orderproof.HEAD_WEIGHTS"), "none", causal=False)
    for name in "xqkv":
        assert same_digits(matrix(page, f"#qkv-{name}").double(), wanted[name], 2)
    order = [3, 1, 2, 0]
    for name, places in (("first", [0, 1, 2, 3]), ("second", order)):
        rows = texts(page, f"#followed-{name} tbody tr")
        for place, row in zip(places, rows, strict=False):
            parts = [wanted["s"][2, place], wanted["a"][2, place], *(wanted["a"][2, place] * wanted["v"][place])]
            assert same_digits([number(n) for n in row], torch.stack(parts))
        total = [number(n) for n in rows[-1][1:]]
        assert same_digits(total, torch.cat([torch.ones(1), wanted["z"][2]]))
    assert page.locator("#query-word input").nth(2).evaluate("input => input === document.activeElement")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_both_sides_of_every_step_are_those_of_torch(open_page: Open, encoding: str, causal: bool):
    page = open_page().page
    type_words(page, "cat chased a dog")
    page.get_by_role("button", name="as typed").click()
    page.locator("#moving button").nth(1).press("ArrowRight")
    choose(page, "swap", encoding=encoding, causal=causal)
    page.locator("#proof-placed").check()
    words = ["cat", "chased", "a", "dog"]
    order = [words.index(word) for word in page.locator("#moving button").all_inner_texts()]
    assert order == [0, 2, 1, 3]
    weights = page.evaluate("window.orderproof.HEAD_WEIGHTS")
    x = words_of(page, 4, words)
    with torch.no_grad():
        left, plain = (bare_head(rows, weights, encoding, causal=causal) for rows in (x[order], x))
    right = {name: value[order][:, order] if name in "sa" else value[order] for name, value in plain.items()}
    left["pooled"], right["pooled"] = left["z"].mean(0, keepdim=True), plain["z"].mean(0, keepdim=True)
    broken = []
    for k, names in enumerate((["x"], ["q", "k", "v"], ["s"], ["a"], ["z"], ["pooled"])):
        for name in names:
            assert same_digits(matrix(page, f"#left-{name}").double(), left[name])
            assert same_digits(matrix(page, f"#right-{name}").double(), right[name])
        gap = max(_gap(left[name], right[name]) for name in names)
        step = page.locator(f"#step-{k + 1}")
        verdict = step.locator(".result").inner_text()
        assert verdict == ("EQUAL" if gap <= ROUNDING else "NOT EQUAL")
        if gap > ROUNDING:
            broken.append(k + 1)
            text_value = step.locator(".gap-size").inner_text()
            assert text_value == "∞" if math.isinf(gap) else number(text_value) == pytest.approx(gap, rel=0.06)
    end = page.inner_text("#proof-end")
    assert (
        end.startswith(f"The chain breaks at step {broken[0]}")
        if broken
        else end.startswith("Every step holds, for any")
    )
    assert bool(broken) == (encoding != "none" or causal)


def concluded(page: Page) -> tuple[list[str], str, str | None]:
    """The verdicts of the steps, and what is concluded from them, in which colour."""
    verdicts = page.locator("#proof-steps .result").all_inner_texts()
    return verdicts, page.inner_text("#proof-end"), page.locator("#proof-end").get_attribute("class")


def test_equal_numbers_at_one_permutation_are_not_called_a_theorem_of_alibi(open_page: Open):
    page = open_page().page
    assert page.locator("#moving button").all_inner_texts() == ["dog", "chased", "cat"]  # a reversal
    choose(page, "swap", encoding="alibi")
    page.locator("#proof-placed").check()
    verdicts, end, colour = concluded(page)
    assert verdicts == ["EQUAL"] * 6
    assert end.startswith("For this P every step holds.")
    assert "not a proof for other permutations" in end
    assert not any(word in end for word in ("any P", "∎", "not used"))
    assert colour == "conclusion"
    assert "other permutations do not" in page.inner_text("#step-3")
    page.get_by_role("button", name="as typed").click()
    page.locator("#moving button").first.press("ArrowRight")
    verdicts, end, colour = concluded(page)
    assert verdicts[:3] == ["EQUAL", "EQUAL", "NOT EQUAL"]
    assert end.startswith("The chain breaks at step 3: order reaches the output. ")
    assert end.endswith("That is the purpose of a positional encoding or a mask.")
    assert colour == "conclusion code-1"


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_identity_proves_nothing_of_a_model_that_has_positions(open_page: Open, encoding: str, causal: bool):
    page = open_page().page
    choose(page, "swap", encoding=encoding, causal=causal)
    page.locator("#proof-placed").check()
    page.get_by_role("button", name="as typed").click()
    verdicts, end, colour = concluded(page)
    assert verdicts == ["EQUAL"] * 6
    bare = encoding == "none" and not causal
    assert ("for any words, any weights, any P" in end) == bare
    assert ("For this P every step holds. P moves nothing here." in end) == (not bare)
    assert colour == ("conclusion code-0" if bare else "conclusion")


def test_the_step_that_breaks_is_blamed_on_what_breaks_it(open_page: Open):
    page = open_page().page
    choose(page, "swap", encoding="alibi", causal=True)
    page.locator("#proof-placed").check()
    assert "The mask hides later words" in page.inner_text("#step-3")  # |m - n| survives a reversal
    choose(page, "swap", causal=False)
    page.locator("#moving button").first.press("ArrowRight")
    assert "A bias that depends on the distance" in page.inner_text("#step-3")


def test_an_output_that_is_the_same_after_a_broken_step_is_said_to_be(open_page: Open):
    page = open_page().page
    type_words(page, "a a")
    choose(page, "swap", encoding="sinusoidal")
    page.locator("#proof-placed").check()
    verdicts, end, _ = concluded(page)
    assert (verdicts[0], verdicts[4], verdicts[5]) == ("NOT EQUAL", "NOT EQUAL", "EQUAL")
    assert "order reaches the rows of the output. Their mean is the same, for these words and this P." in end
    assert "Equal again, for these words and this P." in page.inner_text("#step-6")


def _gap(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.where(one == other, 0.0, (one - other).abs()).max())


def test_the_proof_without_positions_holds_in_every_step(open_page: Open):
    page = open_page().page
    for text in ("x", "x y", "the cat chased the dog", "a b c d e f g h"):
        type_words(page, text)
        assert page.locator("#proof-steps .result").all_inner_texts() == ["EQUAL"] * 6
        assert all(size <= ROUNDING for size in shown(page, "#proof-steps .gap-size"))


# ---------------------------------------------------------------- 4: all orders


@pytest.mark.parametrize("encoding", ["sinusoidal", "alibi", "none"])
@pytest.mark.parametrize("text", ["cat chased dog", "the cat chased the dog"])
def test_the_number_of_outputs_of_all_orders_is_that_of_torch(open_page: Open, text: str, encoding: str):
    page = open_page().page
    type_words(page, text)
    choose(page, "swap", encoding=encoding, causal=encoding == "none")
    page.wait_for_function("document.querySelector('#orders-with strong')")
    words = text.split()
    x = words_of(page, 8, words)
    model = in_torch(page.evaluate("window.orderproof.WEIGHTS"), encoding, causal=encoding == "none", layers=1)
    orders = sorted(set(itertools.permutations(words)))
    with torch.no_grad():
        means = model(torch.stack([x[[words.index(word) for word in order]] for order in orders])).mean(1)
    apart = (means[:, None] - means[None]).abs().amax(-1) > ROUNDING
    different = sum(bool(apart[i, :i].all()) for i in range(len(orders)))
    assert page.inner_text("#orders-with strong") == str(different)
    assert page.inner_text("#orders-without strong") == "1"
    assert ("its reverse" in page.inner_text("#orders-with")) == (encoding == "alibi")
    n = len(words)
    assert page.inner_text("#orders-total").startswith(f"{n} words: {n}! = {math.factorial(n)} orders")
    assert different == len(orders) // (2 if encoding == "alibi" else 1)


def test_one_output_for_two_words_makes_no_bag_of_words_of_alibi(open_page: Open):
    page = open_page().page
    type_words(page, "cat dog")
    choose(page, "swap", encoding="alibi")
    page.wait_for_function("/ALiBi/.test(document.querySelector('#orders-with figcaption')?.textContent)")
    assert page.inner_text("#orders-with strong") == page.inner_text("#orders-without strong") == "1"
    assert "a bag of words" in page.inner_text("#orders-without")
    assert "a bag of words" not in page.inner_text("#orders-with")
    assert "each sentence and its reverse share one" in page.inner_text("#orders-with")


def test_a_listed_output_is_that_of_torch(open_page: Open):
    page = open_page().page
    page.wait_for_function("document.querySelector('#orders-list tbody tr')")
    model = in_torch(page.evaluate("window.orderproof.WEIGHTS"), "sinusoidal", causal=False, layers=1)
    rows = page.locator("#orders-list tbody tr").all()
    assert len(rows) == 6
    for row in rows:
        words = row.locator("th").inner_text().split()
        mean = run(model, words_of(page, 8, words)).mean(0)
        text_value = [number(n) for n in row.locator("td").last.inner_text().split()[:3]]
        assert same_digits(text_value, mean[:3])


def test_thousands_of_orders_wait_for_a_button_and_are_stopped_by_a_change(open_page: Open):
    page = open_page().page
    type_words(page, "a b c d e f g")
    assert page.inner_text("#orders-total") == "7 words: 7! = 5,040 orders"
    page.locator("#orders-go").click()
    page.wait_for_function("/of 5,040/.test(document.getElementById('orders-progress').textContent)")
    type_words(page, "a b c")
    page.wait_for_function("document.querySelector('#orders-with strong')?.textContent === '6'")
    page.wait_for_timeout(300)
    assert page.inner_text("#orders-with strong") == "6"
    assert page.inner_text("#orders-progress") == ""
