"""The claims stand on the page as `orderproof claims` found them."""

from __future__ import annotations

import html

from orderproof.app import page
from orderproof.app.page import STATIC
from orderproof.claim_record import ClaimsRecord
from orderproof.claims.registry import claims

BUNDLED = ClaimsRecord.from_json((STATIC / "claims.json").read_text(encoding="utf-8"))


def test_what_comes_with_the_page_is_what_the_claims_say_today():
    told = [(one.number, one.name, one.statement, one.documented, one.exact, one.conditions) for one in claims()]
    kept = [(one.number, one.name, one.statement, one.verdict, one.exact, one.conditions) for one in BUNDLED.claims]
    assert kept == told, "run: orderproof claims --json src/orderproof/app/static/claims.json --quiet"
    assert BUNDLED.exit_code == 0
    for one, kept_one in zip(claims(), BUNDLED.claims, strict=True):
        assert [ground.what for ground in kept_one.grounds] == [ground.what for ground in one.grounds]


def test_every_claim_stands_on_the_page_with_its_verdict_and_all_its_evidence():
    text = page()
    for claim in BUNDLED.claims:
        part = text.split(f'id="claim-{claim.number}"')[1].split("</details>")[0]
        assert html.escape(claim.statement, quote=True).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in part
        assert f'<strong class="verdict {claim.verdict}">{claim.verdict.upper()}</strong></summary>' in part
        for ground in claim.grounds:
            for line in ground.evidence:
                assert html.escape(line, quote=True).replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in part
