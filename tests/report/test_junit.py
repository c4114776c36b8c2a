"""JUnit XML: what each verdict becomes, and a file that every reader can open.

There is no standard to validate against; `GRAMMAR` is what the readers in use share, written by hand: for each
element its attributes, which of them must be there, and its children in their order.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from orderproof.auditing.explain.source_name import source_name
from orderproof.cli import main
from orderproof.records.audit import Entry, Finding, Report, Scope, SubjectRecord, Witness
from orderproof.report import write_junit
from orderproof.report.junit import render_junit
from tests.report import examples

COUNTS = {"tests", "failures", "errors", "time"}
# element: (attributes that must be there, attributes that may, children in order, whether it holds text)
GRAMMAR: dict[str, tuple[set[str], set[str], str, bool]] = {
    "testsuites": (COUNTS, {"name"}, "(testsuite )*", False),
    "testsuite": (COUNTS | {"name", "skipped"}, set(), "(properties )?(testcase )*", False),
    "properties": (set(), set(), "(property )*", False),
    "property": ({"name", "value"}, set(), "", False),
    "testcase": (
        {"classname", "name", "time"},
        set(),
        "(properties )?((skipped )|(error )|(failure ))?(system-out )?",
        False,
    ),
    "skipped": ({"message"}, set(), "", False),
    "error": ({"message", "type"}, set(), "", True),
    "failure": ({"message", "type"}, set(), "", True),
    "system-out": (set(), set(), "", True),
}
REPORTS = {
    "everyday": examples.everyday,
    "causal": examples.causal_proof,
    "undecided": examples.undecided_only,
    "measured": examples.measured,
    "hostile": examples.hostile,
}
# every character XML 1.0 forbids, both kinds of line end, separators, a lone surrogate, what closes CDATA
NASTY = "".join(map(chr, [*range(32), 0x7F, 0x85, 0x2028, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF, 0x202E])) + "]]>\"'&<é𝔘"


def check(element: ET.Element) -> None:
    required, optional, children, text = GRAMMAR[element.tag]
    assert required <= set(element.attrib) <= required | optional, element.tag
    assert re.fullmatch(children, "".join(f"{child.tag} " for child in element)), element.tag
    assert text or not (element.text or "").strip(), element.tag
    for child in element:
        assert not (child.tail or "").strip()
        check(child)


def cases(report: Report) -> dict[str, ET.Element]:
    """The cases of a rendered report, by name."""
    return {case.attrib["name"]: case for case in ET.fromstring(render_junit(report).encode()).iter("testcase")}


def end(case: ET.Element) -> str:
    return next((child.tag for child in case if child.tag in ("skipped", "error", "failure")), "passed")


def properties(element: ET.Element) -> dict[str, str]:
    return {p.attrib["name"]: p.attrib["value"] for p in element.findall("properties/property")}


def one(finding: Finding, *, subject: str = "toy") -> Report:
    return Report(
        orderproof_version="0.1.0",
        subject=SubjectRecord(name=subject, kind="module", parameters=1),
        findings=(finding,),
    )


@pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
def test_the_structure_is_the_one_readers_share_and_the_counts_agree(make):
    report = make()
    root = ET.fromstring(render_junit(report).encode())
    check(root)
    assert root.tag == "testsuites"
    (suite,) = root
    ends = [end(case) for case in suite.iter("testcase")]
    assert len(ends) == len(report.findings)
    wanted = {"tests": len(ends), "failures": ends.count("failure"), "errors": ends.count("error")}
    assert {name: int(suite.attrib[name]) for name in wanted} == wanted == {k: int(root.attrib[k]) for k in wanted}
    assert int(suite.attrib["skipped"]) == ends.count("skipped")
    assert (ends.count("failure") > 0, ends.count("failure") + ends.count("error") > 0) == (
        report.exit_code == 1,
        report.exit_code != 0,
    )


@pytest.mark.parametrize(
    ("verdict", "expected", "met", "ended"),
    [
        ("proved", "holds", True, "passed"),
        ("held", "holds", True, "passed"),
        ("refuted", "fails", True, "passed"),
        ("refuted", "any", True, "passed"),
        ("refuted", "holds", False, "failure"),
        ("proved", "fails", False, "failure"),
        ("undecided", "holds", False, "error"),
        ("undecided", "fails", False, "error"),
        ("undecided", "any", True, "skipped"),
        ("not_applicable", "holds", True, "skipped"),
    ],
)
def test_each_verdict_has_one_end(verdict, expected, met, ended):
    finding = Finding(
        code="OP201",
        law="causal",
        verdict=verdict,
        expected=expected,
        expectation_met=met,
        scope=Scope(length=7),
        reason="because",
    )
    (case,) = cases(one(finding)).values()
    assert end(case) == ended
    if ended != "passed":
        element = case.find(ended)
        assert element is not None
        assert "because" in element.attrib["message"]
        assert ended == "skipped" or element.attrib["type"] == verdict
    shown = properties(case)
    assert (shown["verdict"], shown["expected"]) == (verdict, expected)


def test_names_say_the_subject_the_law_and_the_output():
    found = cases(examples.everyday())
    case = found["OP101 permutation [last_hidden_state]"]
    assert case.attrib["classname"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert case.attrib["time"] == "1.500"
    assert "OP203 packing" in found


def test_the_evidence_is_there_for_a_reader():
    case = cases(examples.everyday())["OP101 permutation [last_hidden_state]"]
    shown = properties(case)
    assert (shown["entries"], shown["deviation.float64"], shown["length"]) == ("1", "0.0572", "7")
    assert "modeling_bert.py:104" in shown["entry"]
    out = case.findtext("system-out") or ""
    assert re.search(r"^change +swap tokens 0 and 1$", out, re.MULTILINE)
    assert re.search(r"^before +«the» «cat»$", out, re.MULTILINE)
    assert re.search(r"^after +«cat» «the»$", out, re.MULTILINE)
    assert "the law requires 0.418367, the model gives 0.392011" in out
    failed = cases(examples.causal_proof())["OP101 permutation"].find("failure")
    assert failed is not None
    assert failed.attrib["message"].startswith("OP101 permutation FAIL: expected to fail, it holds (proved): vacuous")
    assert "no token can see another" in (failed.text or "")


def test_long_witnesses_are_cut_with_a_count_and_drawn_weights_are_named():
    tokens = tuple(f"x{i}" for i in range(100))
    witness = Witness(
        tokens_before=tokens,
        tokens_after=tokens[::-1],
        change="reverse",
        relative_difference=1.0,
        weights="random",
        seed=3,
    )
    entry = Entry(kind="operator", operator="aten.flip.default", node_count=12, module="layers.*")
    finding = Finding(
        code="OP103", law="reversal", verdict="refuted", scope=Scope(length=100), witness=witness, entries=(entry,)
    )
    out = cases(one(finding))["OP103 reversal"].findtext("system-out") or ""
    assert "«x63» and 36 more tokens" in out
    assert re.search(r"^weights +random, seed 3$", out, re.MULTILINE)
    assert re.search(r"^entry +aten\.flip\.default in layers\.\* at 12 sites$", out, re.MULTILINE)


def test_the_suite_says_what_it_is_of():
    (suite,) = ET.fromstring(render_junit(examples.everyday()).encode())
    shown = properties(suite)
    assert (suite.attrib["time"], shown["exit_code"], shown["version.torch"]) == ("21.400", "0", "2.13.0")
    assert "22,713,216 parameters" in shown["subject"]


def test_a_report_without_findings_is_a_suite_without_tests():
    report = examples.everyday().model_copy(update={"findings": ()})
    root = ET.fromstring(render_junit(report).encode())
    check(root)
    assert root.attrib["tests"] == "0"


@pytest.mark.parametrize("character", NASTY, ids=lambda c: f"U+{ord(c):04X}")
def test_any_character_gives_xml_that_says_the_same(character: str):
    nasty = f"a{character}b"
    witness = Witness(
        tokens_before=(nasty, "x"),
        tokens_after=("x", nasty),
        change=nasty,
        relative_difference=float("inf"),
        first_violating_module=nasty,
    )
    finding = Finding(
        code="OP101", law="permutation", verdict="refuted", expected="holds", expectation_met=False,
        scope=Scope(length=2),
        output=nasty, witness=witness, reason=nasty, statement=nasty,
        entries=(Entry(kind="operator", operator=nasty, module=nasty, source=nasty, reason=nasty),),
    )  # fmt: skip
    root = ET.fromstring(render_junit(one(finding, subject=nasty)).encode())
    check(root)
    shown = nasty if character.isprintable() else f"a{character.encode('unicode_escape').decode()}b"
    (case,) = root.iter("testcase")
    assert case.attrib["classname"] == shown
    assert case.attrib["name"] == f"OP101 permutation [{shown}]"
    assert f"«{shown}» «x»" in (case.findtext("system-out") or "")


def test_a_token_cannot_become_an_element():
    text = render_junit(examples.hostile())
    assert "<script" not in text
    assert "<img" not in text
    assert "\x1b" not in text


def test_the_same_report_gives_the_same_file(tmp_path: Path):
    target = tmp_path / "junit.xml"
    write_junit(examples.everyday(), target)
    assert target.read_text(encoding="utf-8") == render_junit(examples.everyday())
    assert target.read_bytes().startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites')


# ---------------------------------------------------------------- from the command line

MODELS = str(Path(__file__).parents[1] / "auditing" / "examples.py")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command, run in this process: exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["orderproof", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


def test_audit_writes_both_and_names_them(run, tmp_path: Path):
    junit, sarif = tmp_path / "order.xml", tmp_path / "order.sarif"
    code, out, _ = run(
        "audit", f"{MODELS}:Causal", "--law", "causal", "--expect", "causal=holds", "--junit", str(junit),
        "--sarif", str(sarif),
    )  # fmt: skip
    assert code == 0
    assert re.search(r"written: .*order\.xml, .*order\.sarif", out)
    root = ET.fromstring(junit.read_bytes())
    check(root)
    assert (root.attrib["tests"], root.attrib["failures"]) == ("1", "0")
    assert json.loads(sarif.read_text())["runs"][0]["results"] == []


def test_prove_writes_to_standard_output_and_the_text_to_standard_error(run):
    arguments = ["prove", f"{MODELS}:Attention", "--law", "causal", "--expect", "causal=holds"]
    code, out, err = run(*arguments, "--junit", "-")
    check(ET.fromstring(out.encode()))
    assert (code, "FAIL" in err) == (1, True)
    assert '<failure message="OP201 causal FAIL: expected to hold, it does not hold (witness)' in out
    code, out, err = run(*arguments, "--sarif", "-", "--quiet")
    (result,) = json.loads(out)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (code, err, place["artifactLocation"]["uri"]) == (1, "", source_name(MODELS))
    assert place["region"]["snippet"]["text"] in Path(MODELS).read_text()


def test_a_file_that_cannot_be_written_is_one_line(run, tmp_path: Path):
    for option in ("--junit", "--sarif"):
        target = str(tmp_path / "absent" / "report")
        code, out, err = run("prove", f"{MODELS}:Causal", "--law", "causal", option, target, "-q")
        assert (code, out) == (2, "")
        assert re.fullmatch(r"orderproof: cannot write .*existing, writable folder\n", err)


def test_a_measured_law_shows_its_comparisons_its_control_and_what_to_do():
    found = cases(examples.measured())
    held = properties(found["OP401 cached_decoding [logits]"])
    assert (held["tolerance"], held["control"], "remedy" in held) == ("0.0001", "0.96", False)
    assert "comparison  into a static cache: float32 0.00031, float64 5.2e-13" in text_of(
        found["OP401 cached_decoding [logits]"]
    )
    refuted = found["OP405 left_padded_decoding [logits]"]
    assert properties(refuted)["remedy"] == "Count positions by the mask, not by the cache."
    lines = text_of(refuted).splitlines()
    assert "to do       Count positions by the mask, not by the cache." in lines
    assert "control     not needed: a difference was seen" in lines
    assert not [line for line in lines if line.startswith(("before", "after", "reason"))]
    unmade = text_of(found["OP403 cache_editing [logits]"])
    assert "the rows exchanged: float32 not possible (its rows cannot be reordered)" in unmade


def text_of(case: ET.Element) -> str:
    return case.findtext("system-out") or ""
