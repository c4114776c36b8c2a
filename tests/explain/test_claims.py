"""The claims are on the page as `orderproof claims` found them."""

from __future__ import annotations

import html

from orderproof.claims.registry import claims
from orderproof.explain import render_page
from orderproof.explain.page import STATIC
from orderproof.records.claims import ClaimsReport

BUNDLED = ClaimsReport.from_json((STATIC / "claims.json").read_text(encoding="utf-8"))


def test_the_bundled_claims_are_current():
    documented = [
        (
            claim.number,
            claim.name,
            claim.statement,
            claim.expected_verdict,
            claim.exact_statement,
            claim.conditions,
            claim.theorems,
        )
        for claim in claims()
    ]
    bundled = [
        (
            claim.number,
            claim.name,
            claim.statement,
            claim.verdict,
            claim.exact_statement,
            claim.conditions,
            claim.theorems,
        )
        for claim in BUNDLED.claims
    ]
    assert bundled == documented, "run: orderproof claims --json src/orderproof/explain/static/claims.json --quiet"
    assert BUNDLED.exit_code == 0
    for claim, bundled_claim in zip(claims(), BUNDLED.claims, strict=True):
        assert [check.statement for check in bundled_claim.checks] == [check.statement for check in claim.checks]


def escaped(text: str) -> str:
    """A text as the page has it: ^T is a superscript."""
    return html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;").replace("^T", "<sup>T</sup>")


def test_every_claim_is_on_the_page_with_its_verdict_and_all_its_evidence():
    text = render_page()
    for claim in BUNDLED.claims:
        part = text.split(f'id="claim-{claim.number}"')[1].split("</details>")[0]
        assert escaped(claim.statement) in part
        assert f'<strong class="verdict">{claim.verdict.upper()}</strong></summary>' in part
        assert all(f"<code>{theorem.rpartition('.')[2]}</code>" in part for theorem in claim.theorems)
        for check in claim.checks:
            for line in check.evidence:
                assert escaped(line) in part


def test_each_step_of_the_argument_is_proved_for_every_length():
    (claim,) = (claim for claim in BUNDLED.claims if claim.name == "permuted_scores")
    by_law = [check for check in claim.checks if check.method == "law"]
    assert [check.statement.split()[-1] for check in by_law] == ["PQ", "PK", "PV", "PSP^T", "PAP^T", "PZ"]
    for check in by_law:
        assert check.evidence[0].startswith("for every length of at least 2, "), check.evidence
        assert check.evidence[0].endswith("every permutation of the tokens and every weight")
