"""The numbers of the steps without positions, and of the causal mask, compared with torch."""

from __future__ import annotations

import itertools
import math
import re

import pytest
import torch
from playwright.sync_api import Page

from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.examples import ENCODINGS, bare_head, in_torch
from tests.explain.page_actions import (
    ROUNDING,
    abilities,
    choose,
    go,
    matrix,
    move,
    number,
    run,
    same,
    same_digits,
    type_words,
    words_of,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)

WORDS = ["the", "cat", "chased", "the", "dog"]
SWAPPED = [0, 4, 2, 3, 1]


def gap(page: Page, selector: str) -> float:
    return number(page.inner_text(f"{selector} .gap-size"))


# ---------------------------------------------------------------- sentences and mean


def test_both_vectors_and_their_difference_are_those_of_torch(open_page: Open):
    page = open_page().page
    move(page, "swap")
    x = words_of(page, 8, WORDS)
    model = in_torch(page.evaluate("window.orderproof.WEIGHTS"), "none", causal=False, layers=1)
    first, second = run(model, x), run(model, x[SWAPPED])
    assert same_digits(matrix(page, "#first-mean"), first.mean(0, keepdim=True))
    assert same_digits(matrix(page, "#second-mean"), second.mean(0, keepdim=True))
    assert page.inner_text("#sentence-result .answer") == "The same vector"
    assert gap(page, "#sentence-result") <= ROUNDING
    go(page, "mean")
    assert same_digits(matrix(page, "#mean-rows-first"), first)
    assert same_digits(matrix(page, "#mean-rows-second"), second)
    assert same_digits(matrix(page, "#mean-second-strip"), second.mean(0, keepdim=True))
    assert same(page, "#mean-result")


def test_the_moves_act_on_the_sentence_as_typed(open_page: Open):
    page = open_page().page
    words = lambda: page.locator("#moving button").all_inner_texts()  # noqa: E731
    assert words() == WORDS
    for _ in range(2):  # pressing a button twice changes nothing
        move(page, "reverse")
        assert words() == WORDS[::-1]
        move(page, "swap")
        assert words() == ["the", "dog", "chased", "the", "cat"]
    move(page, "shuffle")
    assert sorted(words()) == sorted(WORDS)
    move(page, "as typed")
    assert words() == WORDS
    type_words(page, "a a")
    assert page.inner_text("#sentence-result") == "Both sentences are the same: move a word of the second."


def test_the_first_step_asks_for_a_prediction_before_it_shows_the_answer(open_page: Open):
    page = open_page().page
    for answer, said in (("change", "change"), ("stay", "stay the same")):
        assert page.locator("#moving button").all_inner_texts() == WORDS
        assert "Swap “cat” and “dog” in the second sentence" in page.inner_text("#sentence-result")
        assert not page.locator("#sentence-result .answer, #sentence-conclusion:not([hidden])").count()
        page.locator(f"#sentence-result [data-answer={answer}]").press("Enter")
        assert page.locator("#moving button").all_inner_texts() == [WORDS[i] for i in SWAPPED]
        assert page.inner_text("#sentence-result .answer") == "The same vector"
        assert f"Your prediction: it will {said}." in page.inner_text("#sentence-result")
        assert page.locator("#sentence-conclusion").is_visible()
        assert page.evaluate("document.activeElement.id") == "next"
        move(page, "as typed")


def test_the_steps_after_the_first_compare_two_different_sentences(open_page: Open):
    page = open_page().page
    type_words(page, "dog bites man")
    assert page.locator("#moving button").all_inner_texts() == ["dog", "bites", "man"]
    page.locator("#next").click()
    page.locator("#tokens:not([hidden])").wait_for()
    assert page.locator("#moving button").all_inner_texts() == ["man", "bites", "dog"]
    move(page, "as typed")  # the reader's order stays
    go(page, "rows")
    assert page.locator("#moving button").all_inner_texts() == ["dog", "bites", "man"]


def test_two_sentences_that_are_the_same_are_not_compared(open_page: Open):
    page = open_page("sinusoidal").page
    type_words(page, "a a b")
    move(page, "as typed")
    page.locator("#moving button").first.press("ArrowRight")  # one a for the other
    assert "Both sentences are the same" in page.inner_text("#sinusoidal-result")


@pytest.mark.parametrize("text", ["cat chased dog", "the cat chased the dog"])
def test_the_number_of_outputs_of_all_orders_is_that_of_torch(open_page: Open, text: str):
    page = open_page("mean").page
    type_words(page, text)
    words = text.split()
    orders = sorted(set(itertools.permutations(words)))
    page.locator("#orders-result", has_text=f"of {len(orders)} sent").wait_for()
    x = words_of(page, 8, words)
    weights = page.evaluate("window.orderproof.WEIGHTS")
    for encoding, name in (("none", "without"), ("sinusoidal", "with")):
        model = in_torch(weights, encoding, causal=False, layers=1)
        with torch.no_grad():
            means = model(torch.stack([x[[words.index(word) for word in order]] for order in orders])).mean(1)
        apart = (means[:, None] - means[None]).abs().amax(-1) > ROUNDING
        different = sum(bool(apart[i, :i].all()) for i in range(len(orders)))
        assert page.inner_text(f"#orders-{name} strong") == str(different)
    n = len(words)
    assert page.inner_text("#orders-total").startswith(f"{n} words: {n}! = {math.factorial(n)} orders")


def test_thousands_of_orders_wait_for_a_button_and_are_stopped_by_a_change(open_page: Open):
    page = open_page("mean").page
    type_words(page, "a b c d e f g")
    assert page.inner_text("#orders-total") == "7 words: 7! = 5,040 orders"
    page.locator("#orders-go").click()
    page.locator("#orders-progress", has_text="of 5,040").wait_for(state="attached")
    type_words(page, "a b c")
    page.locator("#orders-with strong").filter(has_text=re.compile("^6$")).wait_for()
    page.wait_for_timeout(300)
    assert page.inner_text("#orders-with strong") == "6"
    assert page.inner_text("#orders-progress") == ""


AXES = """() => document.querySelector('#orders-with canvas').getContext('2d').getImageData(0, 0, 960, 600).data
  .reduce((found, value, i, all) => {
    const x = (i / 4 | 0) % 960, y = (i / 4 / 960) | 0;
    if (i % 4 === 3 && value > 128) found[y > 510 ? 'below' : x < 120 ? 'left' : 'inside'] += 1;
    return found;
  }, {below: 0, left: 0, inside: 0})"""


def test_the_dots_of_the_orders_have_axes_with_numbers(open_page: Open):
    page = open_page("mean").page
    page.wait_for_selector("#orders-with canvas")
    painted = page.evaluate(AXES)
    assert min(painted["below"], painted["left"]) > 300
    assert painted["inside"] > 1000


# ---------------------------------------------------------------- one head


def test_queries_keys_and_values_are_those_of_torch_in_both_sentences(open_page: Open):
    page = open_page("qkv").page
    type_words(page, "we saw her duck")
    x = words_of(page, 4, ["we", "saw", "her", "duck"])
    weights = page.evaluate("window.orderproof.HEAD_WEIGHTS")
    for order in ([0, 1, 2, 3], [3, 1, 2, 0]):
        wanted = bare_head(x[order], weights, "none", causal=False)
        for name in "xqkv":
            assert same_digits(matrix(page, f"#qkv-{name}"), wanted[name])
        page.locator("#qkv-controls button").click()
    assert same_digits(matrix(page, "#qkv-w-key"), torch.tensor(weights["key"], dtype=torch.float64))


@pytest.mark.parametrize("encoding", ["none", "rotary"])
def test_the_terms_of_one_query_and_their_sum_are_those_of_torch(open_page: Open, encoding: str):
    page = open_page("attention").page
    choose(page, "attention-encoding", encoding)
    choose(page, "attention-query", 1)
    x = words_of(page, 4, WORDS)
    weights = page.evaluate("window.orderproof.HEAD_WEIGHTS")
    for order, name in ((list(range(5)), "first"), (SWAPPED, "second")):
        wanted = bare_head(x[order], weights, encoding, causal=False)
        row = order.index(1)
        shown = page.locator("#attention-terms li .chip").all_inner_texts()
        assert shown == [WORDS[place] for place in order]
        titles = page.locator("#attention-terms .weight").evaluate_all("all => all.map(part => part.title)")
        assert same_digits([number(title.removeprefix("weight ")) for title in titles], wanted["a"][row])
        terms = torch.cat([matrix(page, f"#attention-terms li:nth-child({n + 1})") for n in range(5)])
        assert same_digits(terms, wanted["a"][row][:, None] * wanted["v"])
        assert same_digits(matrix(page, f"#attention-{name}"), wanted["z"][row][None])
        if name == "first":
            page.locator("#attention-swap").click()
    assert same(page, "#attention-sums") == (encoding == "none")


def ends(page: Page) -> list[list[float]]:
    """Where the last arrow ends, and where that of the first sentence ended."""
    place = "c => ['cx', 'cy'].map(name => Number(c.getAttribute(name)))"
    return [page.locator(f"#attention-arrows .{kind}").evaluate(place) for kind in ("end", "ghost-end")]


def test_the_arrows_end_at_the_same_point_until_positions_are_on(open_page: Open):
    page = open_page("attention").page
    before = page.locator("#attention-arrows .arrow line").evaluate_all("all => all.map(line => line.outerHTML)")
    page.locator("#attention-swap").click()
    after = page.locator("#attention-arrows .arrow line").evaluate_all("all => all.map(line => line.outerHTML)")
    assert len(before) == len(after) == 5
    assert before != after
    last, ghost = ends(page)
    assert last == pytest.approx(ghost, abs=1e-6)
    choose(page, "attention-encoding", "sinusoidal")
    last, ghost = ends(page)
    assert math.dist(last, ghost) > 5


@pytest.mark.parametrize(("encoding", "causal"), [*((name, False) for name in ENCODINGS), ("none", True), ("t5", True)])
def test_both_sides_of_every_equation_are_those_of_torch(open_page: Open, encoding: str, causal: bool):
    page = open_page("break").page
    type_words(page, "cat chased a dog")
    move(page, "as typed")
    page.locator("#moving button").nth(1).press("ArrowRight")
    choose(page, "break-encoding", encoding)
    choose(page, "break-causal", causal)
    words, order = ["cat", "chased", "a", "dog"], [0, 2, 1, 3]
    weights = page.evaluate("window.orderproof.HEAD_WEIGHTS")
    x = words_of(page, 4, words)
    with torch.no_grad():
        left, plain = (bare_head(rows, weights, encoding, causal=causal) for rows in (x[order], x))
    right = {name: value[order][:, order] if name in "sa" else value[order] for name, value in plain.items()}
    left["pooled"], right["pooled"] = left["z"].mean(0, keepdim=True), plain["z"].mean(0, keepdim=True)
    broken = []
    for k, names in enumerate((["x"], ["q", "k", "v"], ["s"], ["a"], ["z"], ["pooled"])):
        for name in names:
            assert same_digits(matrix(page, f"#break-left-{name}"), left[name])
            assert same_digits(matrix(page, f"#break-right-{name}"), right[name])
        difference = max(_gap(left[name], right[name]) for name in names)
        assert page.inner_text(f"#break-step-{k + 1} .result") == ("EQUAL" if difference <= ROUNDING else "NOT EQUAL")
        if difference > ROUNDING:
            broken.append(k + 1)
            text = page.inner_text(f"#break-step-{k + 1} .gap-size")
            assert text == "∞" if math.isinf(difference) else number(text) == pytest.approx(difference, rel=0.06)
    end = page.inner_text("#break-end")
    assert end.startswith(f"The chain breaks at equation {broken[0]}" if broken else "Every equation holds, for any")
    assert bool(broken) == (encoding != "none" or causal)


def concluded(page: Page) -> tuple[list[str], str]:
    """The results of the equations, and the conclusion."""
    return page.locator("#break-chain .result").all_inner_texts(), page.inner_text("#break-end")


def test_with_rope_the_chain_breaks_at_its_third_equation(open_page: Open):
    page = open_page("break").page
    results, end = concluded(page)
    assert results[:3] == ["EQUAL", "EQUAL", "NOT EQUAL"]
    assert end == (
        "The chain breaks at equation 3: order reaches the output. "
        "That is the purpose of a positional encoding or a mask."
    )
    assert "Queries and keys are rotated by their positions" in page.inner_text("#break-step-3")


def test_equal_numbers_at_one_permutation_are_not_called_a_theorem_of_alibi(open_page: Open):
    page = open_page("break").page
    choose(page, "break-encoding", "alibi")
    move(page, "reverse")
    results, end = concluded(page)
    assert results == ["EQUAL"] * 6
    assert end == "For this P every equation holds. That is not a proof for other permutations: move other words."
    assert "other permutations do not" in page.inner_text("#break-step-3")
    choose(page, "break-causal", True)
    assert "The mask hides later words" in page.inner_text("#break-step-3")  # |m - n| survives a reversal
    choose(page, "break-causal", False)
    move(page, "as typed")
    assert "P moves nothing here." in concluded(page)[1]
    page.locator("#moving button").first.press("ArrowRight")
    assert concluded(page)[0][:3] == ["EQUAL", "EQUAL", "NOT EQUAL"]
    assert "A bias that depends on the distance" in page.inner_text("#break-step-3")


def test_an_output_that_is_the_same_after_a_broken_step_is_said_to_be(open_page: Open):
    page = open_page("break").page
    type_words(page, "a a")
    choose(page, "break-encoding", "sinusoidal")
    results, end = concluded(page)
    assert (results[0], results[4], results[5]) == ("NOT EQUAL", "NOT EQUAL", "EQUAL")
    assert "order reaches the rows of the output. Their mean is the same, for these words and this P." in end
    assert "Equal again, for these words and this P." in page.inner_text("#break-step-6")


def _gap(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.where(one == other, 0.0, (one - other).abs()).max())


def test_without_positions_every_equation_holds(open_page: Open):
    page = open_page("rows").page
    for text in ("x", "x y", "the cat chased the dog", "a b c d e f g h"):
        type_words(page, text)
        assert page.locator("#rows-chain .result").all_inner_texts() == ["EQUAL"] * 6
        assert all(number(size) <= ROUNDING for size in page.locator("#rows-chain .gap-size").all_inner_texts())
        assert "f(P X) = P f(X). This is permutation equivariance." in page.inner_text("#rows-end")


# ---------------------------------------------------------------- add & norm, mask


def test_add_norm_and_feed_forward_change_one_row_and_attention_all(open_page: Open):
    page = open_page("norm").page
    for word in (1, 4):
        choose(page, "norm-word", word)
        for part, changed in (("norm", 1), ("feed-forward", 1), ("add", 1), ("attention", 5)):
            assert page.inner_text(f"#norm-{part} strong") == f"{changed} of 5"
            assert page.locator(f"#norm-{part} tr.changed").count() == changed
            assert gap(page, f"#norm-{part}") <= ROUNDING
    type_words(page, "a mouse")  # the other word is another one
    assert page.inner_text("#norm-norm strong") == "1 of 2"
    type_words(page, " ".join(WORDS))
    choose(page, "norm-word", 4)
    x = words_of(page, 8, [*WORDS[:4], "mouse"])
    assert same_digits(matrix(page, "#norm-input"), x)
    parts = page.evaluate("x => window.orderproof.parts(x)", x.tolist())
    assert same_digits(matrix(page, "#norm-add"), torch.tensor(parts["add"], dtype=torch.float64))


@pytest.mark.parametrize("layers", [1, 2])
def test_one_causal_layer_ignores_the_order_of_the_prompt_and_two_do_not(open_page: Open, layers: int):
    page = open_page("mask").page
    choose(page, "mask-layers", layers)
    words = [*WORDS, "?"]
    x = words_of(page, 8, words)
    weights = page.evaluate("window.orderproof.WEIGHTS")
    orders = {"first": [0, 1, 2, 3, 4, 5], "second": [*SWAPPED, 5]}
    rows: dict[str, dict[int, torch.Tensor]] = {}
    for name, order in orders.items():
        heads = page.locator(f"#mask-{name} .sees > tbody > tr > th").all_inner_texts()
        assert heads == [words[i] for i in order]
        models = {k: in_torch(weights, "none", causal=True, layers=k) for k in range(1, layers + 1)}
        rows[name] = {k: run(model, x[order]) for k, model in models.items()}
        for k, wanted in rows[name].items():
            assert same_digits(matrix(page, f"#mask-{name} td[data-layer='{k}']"), wanted)
        assert same_digits(matrix(page, f"#mask-{name}-strip"), rows[name][layers][-1:])
        sees = page.locator(f"#mask-{name} .mask-row").evaluate_all("all => all.map(e => e.ariaLabel)")
        assert sees == [f"sees {', '.join(words[i] for i in order[: m + 1])}" for m in range(6)]
    for k in range(1, layers + 1):
        marked = page.locator(f"#mask-second td[data-layer='{k}']").evaluate_all("all => all.map(e => e.className)")
        first = rows["first"][k]
        gaps = [(first[orders["second"][m]] - row).abs().max() for m, row in enumerate(rows["second"][k])]
        assert marked == ["new" if gap > ROUNDING else "" for gap in gaps]
        assert (marked[0], marked[-1]) == ("", "new" if k == 2 else "")
    assert same(page, "#mask-result") == (layers == 1)
    assert abilities(page, "#mask-result") == {"prompt_permutation": layers == 2}


def test_the_mask_compares_the_orders_of_the_readers_prompt(open_page: Open):
    page = open_page("mask").page
    choose(page, "mask-layers", 2)
    type_words(page, "a b a")
    move(page, "reverse")
    assert page.inner_text("#mask-result .problem") == "Both sentences are the same: move a word of the second."
    assert page.locator("#mask .sees .new").count() == 0  # equal words that change places are the same words
    page.locator("#moving button").first.press("ArrowRight")
    assert not same(page, "#mask-result")
