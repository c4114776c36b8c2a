"""The claims stand on the page as `orderproof claims` found them."""

from __future__ import annotations

import html

from orderproof.claims.registry import claims
from orderproof.explain import render_page
from orderproof.explain.page import STATIC
from orderproof.records.claims import ClaimsReport

BUNDLED = ClaimsReport.from_json((STATIC / "claims.json").read_text(encoding="utf-8"))


def test_what_comes_with_the_page_is_what_the_claims_say_today():
    told = [
        (one.number, one.name, one.statement, one.expected_verdict, one.exact_statement, one.conditions)
        for one in claims()
    ]
    kept = [
        (one.number, one.name, one.statement, one.verdict, one.exact_statement, one.conditions)
        for one in BUNDLED.claims
    ]
    assert kept == told, "run: orderproof claims --json src/orderproof/explain/static/claims.json --quiet"
    assert BUNDLED.exit_code == 0
    for one, kept_one in zip(claims(), BUNDLED.claims, strict=True):
        assert [ground.statement for ground in kept_one.checks] == [ground.statement for ground in one.checks]


def test_every_claim_stands_on_the_page_with_its_verdict_and_all_its_evidence():
    text = render_page()
    for claim in BUNDLED.claims:
        part = text.split(f'id="claim-{claim.number}"')[1].split("</details>")[0]
        assert html.escape(claim.statement, quote=True).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in part
        assert f'<strong class="verdict">{claim.verdict.upper()}</strong></summary>' in part
        for ground in claim.checks:
            for line in ground.evidence:
                assert html.escape(line, quote=True).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in part
