"""The trained model's pairs of sentences on the page, and the file that they come from."""

from __future__ import annotations

import json

import pytest

from orderproof.explain.live_audit import Auditor
from orderproof.explain.page import trained_model
from orderproof.report import phrases
from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.examples import numbers
from tests.explain.page_actions import matrix, same_digits


def test_each_pair_has_the_same_tokens_and_differs_by_its_positions_only():
    pairs = trained_model()["pairs"]
    assert len(pairs) >= 12
    for pair in pairs:
        first, second = (sorted(tokens) for tokens in pair["tokens"])
        assert pair["same_tokens"]
        assert first == second
        rows = {(row["condition"], row["dtype"]): row["max_abs_difference"] for row in pair["rows"]}
        assert rows["with positions", "float64"] > 0.01
        assert rows["without positions", "float64"] < 1e-12
        assert len(pair["maps"]) == 4


def test_each_proof_is_for_every_length():
    proofs = trained_model()["proofs"]
    assert {proof["law"] for proof in proofs} >= {"OP201 causal", "OP202 padding", "OP204 batch"}
    assert all(proof["evidence"].startswith("proved: for every length") for proof in proofs)


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_every_pair_is_shown_with_its_cosines_and_attention(open_page: Open):
    page = open_page("minilm").page
    for i, pair in enumerate(trained_model()["pairs"]):
        page.locator("#pair").select_option(str(i))
        double = {row["condition"]: row for row in pair["rows"] if row["dtype"] == "float64"}
        texts = page.locator("#live-result .cosine").all_text_contents()
        assert texts == [f"cosine {double[kind]['cosine']:.4f}" for kind in ("with positions", "without positions")]
        assert "without positions only rounding is left" in page.inner_text("#live-result .conclusion")
        assert page.locator("#pair option").nth(i).text_content() == "  /  ".join(pair["sentences"])
        rows = page.locator("#live-result table.live tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
        )
        numbers_of = [
            [phrases.cosine(row["cosine"]), phrases.format_difference(row["max_abs_difference"])]
            for row in pair["rows"]
        ]
        assert [row[2:] for row in rows] == numbers_of
    for k, values in enumerate(pair["maps"]):
        script = "([k]) => document.querySelectorAll('#live-result .card .heat')[k].id = `map-${k}`"
        page.evaluate(script, [k])
        assert same_digits(matrix(page, f"#map-{k}"), numbers(values), 2)


@pytest.mark.slow
def test_the_pairs_are_those_that_the_server_computes():
    pair = trained_model()["pairs"][1]
    response = json.loads(json.dumps(Auditor().handle(json.dumps({"sentences": pair["sentences"]}).encode())))
    assert (response["model"], response["tokens"]) == (pair["model"], pair["tokens"])
    for shown, row in zip(pair["rows"], response["rows"], strict=True):
        assert shown["cosine"] == pytest.approx(row["cosine"], abs=1e-5)
        assert shown["max_abs_difference"] == pytest.approx(row["max_abs_difference"], abs=1e-5)
    assert numbers(pair["maps"]).sub(numbers(response["maps"])).abs().max() <= 0.0011
