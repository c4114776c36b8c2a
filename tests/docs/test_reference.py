"""The reference pages say what the code says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scripts import reference

from orderproof import encodings
from orderproof.claims import claims
from orderproof.lab.asking import questions
from orderproof.lab.ceilings import Ceilings
from orderproof.laws import laws
from orderproof.laws.measured import MeasuredLaw, measured_laws
from orderproof.prover.rule import rules, sentences
from orderproof.report.schema import claims_schema, schema, study_schema
from tests.docs.blocks import ROOT

ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TYPES = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "object": "object"}


def ceilings_schema() -> dict[str, Any]:
    return Ceilings.model_json_schema(by_alias=True, mode="serialization")


PAGES = {
    "json.md": (("Report", schema), ("Study", study_schema), ("Ceilings", ceilings_schema)),
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


def test_the_generated_pages_are_what_the_files_say():
    assert reference.main(["--check"]) == 0, "run python scripts/reference.py"


def test_every_law_is_on_the_page_with_its_examples_in_one_line_each():
    page = reference.page()
    for law in (*laws(), *measured_laws()):
        section = page.partition(f"## {law.code} {law.name}\n")[2].partition("\n## ")[0]
        assert f"**{law.statement}**" in section
        assert re.search(r"^- Honest example: \S.*$", section, re.MULTILINE)
        assert re.search(r"^- Planted fault: \S.*$", section, re.MULTILINE)
        assert ("- Measured" in section) == isinstance(law, MeasuredLaw) == ("- Where it is broken: " in section)


def test_every_question_is_on_the_page_with_its_ceilings():
    page = reference.questions_page()
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
    pages = {name: make() for name, make in reference.PAGES.items()}
    assert all(f"`{lemma}`" in pages["lemmas.md"] for lemma in sentences())
    operators = {operator for rule in rules() for operator in rule.operators}
    assert all(f"`{operator}`" in pages["lemmas.md"] for operator in operators)
    for name in encodings.names():
        section = pages["each_encoding.md"].partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert f"`encodings.{encodings.get(name).__name__}`" in section
        assert "Source: " in section or name == "none"
    for claim in claims():
        section = pages["claims.md"].partition(f"## {claim.number} {claim.name}\n")[2].partition("\n## ")[0]
        assert claim.exact in section
        assert "Source: " in section
        assert section.count("\n| ") == len(claim.grounds) + 2


def test_a_stale_page_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    assert reference.main(["--check"]) == 1
    told = capsys.readouterr().err
    assert "laws.md is stale; run python scripts/reference.py" in told
    assert "questions.md is stale; run python scripts/reference.py" in told
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


def test_every_exit_code_of_the_command_line_is_documented():
    import orderproof.cli.application as application

    page = (ROOT / "docs/reference/exit_codes.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^(\d+) ", application.__doc__ or "", re.MULTILINE))
    assert named <= set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))


def test_words_are_listed_once():
    page = (ROOT / "docs/reference/words.md").read_text(encoding="utf-8")
    words = [w for cell in re.findall(r"^\| ([a-z, ]+) \|", page, re.MULTILINE)[1:] for w in cell.split(", ")]
    assert len(words) == len(set(words))
    assert {"fact", "lemma", "rule", "law", "claim", "subject", "finding", "entry", "witness", "verdict"} <= set(words)
    assert {"driver", "trial", "control", "measurement", "tolerance"} <= set(words)
    assert {"question", "study", "cell", "run", "seed", "score", "ceiling"} <= set(words)
