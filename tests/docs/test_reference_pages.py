"""The reference pages say what the code says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import orderproof
from orderproof import encodings
from orderproof.claims import claims
from orderproof.diagnosis.rule import lemma_summaries, rules
from orderproof.lab.ceilings import CeilingReport
from orderproof.lab.registry import questions
from orderproof.laws import measured_laws, proved_laws
from orderproof.laws.measured import MeasuredLaw
from orderproof.report.schema import audit_schema, claims_schema, study_schema
from tests.docs.code_blocks import ROOT
from tests.docs.run_tool import run_tool

ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TYPES = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "object": "object"}


def ceilings_schema() -> dict[str, Any]:
    return CeilingReport.model_json_schema(by_alias=True, mode="serialization")


PAGES = {
    "json.md": (("Report", audit_schema), ("Study", study_schema), ("Ceilings", ceilings_schema)),
    "claims_json.md": (("ClaimsRecord", claims_schema),),
}


def documented(page: str) -> dict[str, dict[str, tuple[str, str]]]:
    text = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
    sections = re.split(r"^## (\w+)$", text, flags=re.MULTILINE)[1:]
    return {
        name: {field: (kind, meaning) for field, kind, meaning in ROW.findall(body)}
        for name, body in zip(sections[::2], sections[1::2], strict=True)
    }


def records(page: str) -> dict[str, dict[str, dict]]:
    found: dict[str, dict[str, dict]] = {}
    for whole, described in PAGES[page]:
        made = described()
        inner = {name: each["properties"] for name, each in made["$defs"].items() if "properties" in each}
        assert found.keys().isdisjoint({whole, *inner}), "two records have one name, and one section"
        found.update({whole: made["properties"], **inner})
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_record_and_every_field_is_documented_and_no_other(page: str):
    assert {k: set(v) for k, v in documented(page).items()} == {k: set(v) for k, v in records(page).items()}


@pytest.mark.parametrize(("page", "record"), [(page, record) for page in PAGES for record in records(page)])
def test_the_types_and_the_values_of_each_field_are_the_schemas(page: str, record: str):
    for name, described in records(page)[record].items():
        kind, meaning = documented(page)[record][name]
        parts = described.get("anyOf", [described])
        assert ("null" in [p.get("type") for p in parts]) <= ("null" in kind), name
        for part in parts:
            if "$ref" in part:
                assert part["$ref"].rpartition("/")[2] in kind, name
            elif part.get("type") == "array" and "$ref" in part.get("items", {}):
                assert "list of" in kind, name
                assert part["items"]["$ref"].rpartition("/")[2] in kind, name
            elif part.get("type") == "array":
                assert "list of" in kind, name
            elif part.get("type") in TYPES:
                assert TYPES[part["type"]] in kind, name
            if not meaning.startswith("as in "):
                assert all(f"`{value}`" in meaning for value in part.get("enum", ())), name


def page_text(name: str) -> str:
    return (ROOT / "docs/reference" / name).read_text(encoding="utf-8")


def test_generated_pages_are_current():
    done = run_tool("reference_pages.py", "--check")
    assert done.returncode == 0, done.stderr


def test_stale_page_is_reported_and_replaced(tmp_path: Path):
    stale = run_tool("reference_pages.py", "--check", "--folder", tmp_path)
    assert stale.returncode == 1
    assert "laws.md is stale; run python tools/reference_pages.py" in stale.stderr
    assert "questions.md is stale; run python tools/reference_pages.py" in stale.stderr
    assert run_tool("reference_pages.py", "--folder", tmp_path).returncode == 0
    assert run_tool("reference_pages.py", "--check", "--folder", tmp_path).returncode == 0


def test_every_law_is_on_the_page_with_its_kind_and_trait():
    page = page_text("laws.md")
    for law in (*proved_laws(), *measured_laws()):
        section = page.partition(f"## {law.code} {law.name}\n")[2].partition("\n## ")[0]
        assert f"**{law.statement}**" in section
        assert f"\n- {law.kind.capitalize()}. Trait: the model {law.trait}." in section
        measured = isinstance(law, MeasuredLaw)
        assert ("- Measured" in section) == measured == ("- What to do about a violation: " in section)
        assert f"\n- A conforming and a violating model: `tests/laws/fixtures/{law.name}.py`." in section
        for expected in set(law.expectation.values()) - {"any"}:
            kinds = ", ".join(kind for kind, each in law.expectation.items() if each == expected)
            assert re.search(rf"^- [^:]+(?:hold for|expected of): {kinds}\.$", section, re.MULTILINE)


def test_every_question_is_on_the_page_with_its_ceilings():
    page = page_text("questions.md")
    for name, question in questions().items():
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert f"**{question.statement}**" in section
        if question().ceiling(question.test_lengths[0]) is None:
            assert "No ceiling is known." in section
        else:
            assert len(re.findall(r"^\| \d+ \| \d+ \| [\d.e-]+ \|", section, re.MULTILINE)) == len(
                question.test_lengths
            )


def test_every_lemma_encoding_and_claim_is_on_its_page():
    lemmas, each_encoding, claims_page = map(page_text, ("lemmas.md", "each_encoding.md", "claims.md"))
    assert all(f"`{lemma}`" in lemmas for lemma in lemma_summaries())
    operators = {operator for rule in rules() for operator in rule.operators}
    assert all(f"`{operator}`" in lemmas for operator in operators)
    for name in encodings.names():
        section = each_encoding.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert f"`encodings.{encodings.get(name).__name__}`" in section
        assert "Source: " in section or name == "none"
    for claim in claims():
        section = claims_page.partition(f"## {claim.number} {claim.name}\n")[2].partition("\n## ")[0]
        assert claim.exact_statement in section
        assert "Source: " in section
        assert section.count("\n| ") == len(claim.checks) + 2


def test_every_public_name_is_on_the_page_of_the_python_interface():
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page_text("python_api.md"), re.MULTILINE | re.DOTALL))
    listed = {name: set(re.findall(r"^### (\w+)$", body, re.MULTILINE)) for name, body in sections.items()}
    assert listed["orderproof"] == set(orderproof.__all__)
    exported = {name for name, value in vars(encodings).items() if not name.startswith("_") and inspect.isclass(value)}
    assert exported | {"attention", "get", "names", "register", "schedules"} <= listed["orderproof.encodings"]
    assert {"assert_law", "OrderproofFixture"} <= listed["orderproof.pytest_plugin"]
    assert "RunConfig" in listed["orderproof.lab.run_config"]
    assert "audit(\n    subject: " in sections["orderproof"]


def test_every_exit_code_of_the_command_line_is_documented():
    import orderproof.cli.application as application

    page = (ROOT / "docs/reference/exit_codes.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^(\d+) ", application.__doc__ or "", re.MULTILINE))
    assert named <= set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))


def test_every_term_of_the_glossary_is_listed_once():
    page = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", page, re.MULTILINE)
    terms = [
        term for cell in cells if cell not in ("term", "---") for term in re.sub(r" \(.*\)$", "", cell).split(", ")
    ]
    assert len(terms) == len(set(terms))
    assert {"fact", "lemma", "rule", "law", "claim", "subject", "finding", "entry", "witness", "verdict"} <= set(terms)
    assert {"model adapter", "comparison", "positive control", "measurement", "tolerance", "check", "property"} <= set(
        terms
    )
    assert {"question", "study", "cell", "training run", "run", "seed", "score", "ceiling"} <= set(terms)
