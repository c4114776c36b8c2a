"""A law asked in several settings: every report tells its findings apart."""

from __future__ import annotations

import json
import re

from orderproof.records.audit import Finding, Report, Scope
from orderproof.report import entry_map_phrases, phrases
from orderproof.report.junit import render_junit
from orderproof.report.sarif import render_sarif
from tests.report import examples


def packed_and_blocked() -> Report:
    def found(setting: str) -> Finding:
        return Finding(
            code="OP203", law="packing", verdict="refuted", expected="holds", expectation_met=False,
            outcome="fail", call_mode=setting,
            scope=Scope(length=7), output="last_hidden_state",
        )  # fmt: skip

    return examples.everyday().model_copy(update={"findings": (found("packed"), found("blocked"))})


def test_names_carry_the_setting_where_there_are_several() -> None:
    packed, _ = packed_and_blocked().findings
    assert phrases.law_title(packed) == "OP203 packing (packed)"
    padded = {"call_mode": "padded"}
    assert phrases.law_title(packed.model_copy(update={**padded, "law": "padding"})) == "OP203 padding"
    assert phrases.law_title(packed.model_copy(update={**padded, "law": "causal"})) == "OP203 causal (padded)"
    assert (
        entry_map_phrases.entry_map_title((packed,))
        == "Where outputs depend on other documents: OP203 packing (packed)"
    )


def test_no_two_results_share_a_name_or_a_fingerprint() -> None:
    report = packed_and_blocked()
    results = json.loads(render_sarif(report))["runs"][0]["results"]
    assert len({r["partialFingerprints"]["orderproof/v1"] for r in results}) == 2
    cases = re.findall(r'<testcase [^>]*name="([^"]*)"', render_junit(report))
    assert cases == ["OP203 packing (packed) [last_hidden_state]", "OP203 packing (blocked) [last_hidden_state]"]
