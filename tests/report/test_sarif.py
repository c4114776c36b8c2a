"""SARIF 2.1.0: valid, stable from run to run, and silent about what is met.

`SCHEMA` is written by hand from the specification (OASIS, SARIF 2.1.0): of the objects this package writes every
property with its type, and the same required properties, enumerations and closedness as in the official schema,
which is not stored here. Where it says less than the official one it leaves properties out, and being closed it
then refuses them: what passes here passes there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orderproof.records.audit import Deviation, Entry, Finding, Report, Scope, SubjectRecord, Witness
from orderproof.report import write_sarif
from orderproof.report.sarif import render_sarif
from tests.report import examples

TEXT = {"type": "string"}
BAG = {"type": "object"}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def many(items: dict[str, Any], *, unique: bool = False) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": unique}


MESSAGE = closed(["text"], text=TEXT)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = closed(
    ["id"], id=TEXT, name=TEXT, shortDescription=MESSAGE, fullDescription=MESSAGE, help=MESSAGE,
    defaultConfiguration=closed([], level=LEVEL), properties=BAG,
)  # fmt: skip
DRIVER = closed(["name"], name=TEXT, version=TEXT, semanticVersion=TEXT, rules=many(RULE, unique=True))
# RFC 3986: a relative reference whose first segment holds no colon; characters outside the set are escaped
REFERENCE = {"type": "string", "pattern": r"^(?![^/]*:)(?!/)([A-Za-z0-9._~!$&'()*+,;=@/:-]|%[0-9A-F]{2})+$"}
PHYSICAL = closed(
    ["artifactLocation"],
    artifactLocation=closed(["uri"], uri=REFERENCE, uriBaseId=TEXT),
    region=closed(["startLine"], startLine={"type": "integer", "minimum": 1}, snippet=closed(["text"], text=TEXT)),
)
LOCATION = closed(
    ["physicalLocation"],  # the specification lets it be absent; code scanning does not
    id={"type": "integer", "minimum": 0},
    physicalLocation=PHYSICAL,
    logicalLocations=many(closed([], name=TEXT, fullyQualifiedName=TEXT, kind=TEXT), unique=True),
    message=MESSAGE,
)
RESULT = closed(
    ["message", "locations"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level=LEVEL,
    message=MESSAGE,
    locations={**many(LOCATION), "minItems": 1, "maxItems": 1},
    relatedLocations=many(LOCATION, unique=True),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    properties=BAG,
)
RUN = closed(
    ["tool"],
    tool=closed(["driver"], driver=DRIVER),
    automationDetails=closed([], id=TEXT),
    invocations=many(
        closed(
            ["executionSuccessful"],
            executionSuccessful={"type": "boolean"},
            exitCode={"type": "integer"},
            exitCodeDescription=TEXT,
        )
    ),
    results=many(RESULT),
    properties=BAG,
)
SCHEMA = closed(["version", "runs"], **{"$schema": TEXT, "version": {"const": "2.1.0"}, "runs": many(RUN)})

REPORTS = {
    "everyday": examples.everyday,
    "causal": examples.causal_proof,
    "undecided": examples.undecided_only,
    "measured": examples.measured,
    "hostile": examples.hostile,
}
LEAK = Entry(
    kind="operator",
    operator="aten.matmul.default",
    module="layers.0.mixer",
    source="modeling_toy.py:30",
    source_line="return weights @ value",
    reason="token 0 comes to depend on token 6",
)


def refuted(**changes: Any) -> Report:
    """A leak, found."""
    witness = Witness(
        tokens_before=("[CLS]", "a"),
        tokens_after=("[CLS]", "{0}"),
        change="replace",
        relative_difference=0.9,
        first_violating_module="layers.0.mixer",
    )
    finding = Finding(
        code="OP201", law="causal", statement="Nothing later is seen.", verdict="refuted", expected="holds",
        expectation_met=False, scope=Scope(length=7), output="logits", entries=(LEAK,), witness=witness,
        deviation=Deviation(float32=0.9, float64=0.9), seconds=1.0, kind="check", outcome="fail",
    ).model_copy(update=changes)  # fmt: skip
    return Report(
        orderproof_version="0.1.0",
        subject=SubjectRecord(name="arch:toy", kind="causal_lm", parameters=1),
        findings=(finding,),
        seconds=2.0,
    )


def log(report: Report) -> dict[str, Any]:
    """The log, checked against the schema and against what a schema cannot say."""
    made: dict[str, Any] = json.loads(render_sarif(report))
    jsonschema.validate(made, SCHEMA)
    (run,) = made["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["kind"] == "fail" or result["level"] == "none"  # section 3.27.10
        ids = [place["id"] for place in result.get("relatedLocations", ())]
        assert len(ids) == len(set(ids))
    return made


def results(report: Report) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = log(report)["runs"][0]["results"]
    return found


def prints(report: Report) -> dict[str, str]:
    (result,) = results(report)
    found: dict[str, str] = result["partialFingerprints"]
    return found


@pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
def test_the_log_is_valid_and_has_one_result_for_each_unmet_finding(make):
    report = make()
    assert [r["ruleId"] for r in results(report)] == [f.code for f in report.findings if not f.expectation_met]
    assert log(report)["runs"][0]["invocations"][0]["exitCode"] == report.exit_code


def test_the_schema_is_a_schema_and_refuses_what_the_specification_does_not_know():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for spoil in (
        {"level": "fatal"}, {"kind": "failure"}, {"surprise": 1}, {"locations": []}, {"message": {}},
        {"partialFingerprints": {"x": 1}},
    ):  # fmt: skip
        made = log(refuted())
        made["runs"][0]["results"][0].update(spoil)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(made, SCHEMA)
    for uri in ("/home/me/model.py", "file:///model.py", "C:/model.py", "my model.py", ""):
        made = log(refuted())
        made["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] = uri
        with pytest.raises(jsonschema.ValidationError, match="does not match"):
            jsonschema.validate(made, SCHEMA)


def test_a_failed_check_is_an_error_and_an_undecided_one_a_warning():
    assert [(r["ruleId"], r["level"]) for r in results(examples.causal_proof())] == [
        ("OP101", "error"),
        ("OP202", "warning"),
    ]


def test_every_law_asked_about_is_a_rule_with_help():
    rules = log(examples.everyday())["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["OP101", "OP102", "OP103", "OP201", "OP203", "OP303"]
    assert all("undecided: neither" in rule["help"]["text"] and "helpUri" not in rule for rule in rules)
    assert rules[0]["fullDescription"]["text"] == "Permuting the tokens permutes the output."


def test_a_result_is_located_where_the_law_is_first_violated():
    other = LEAK.model_copy(update={"module": "embeddings", "source": "modeling_toy.py:9", "source_line": ""})
    (result,) = results(refuted(entries=(other, LEAK)))
    (place,) = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "modeling_toy.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 30, "snippet": {"text": "return weights @ value"}},
    }
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "layers.0.mixer"
    lines = [p["physicalLocation"]["region"]["startLine"] for p in result["relatedLocations"]]
    assert lines == [9, 30]
    assert "depend on token 6" in result["relatedLocations"][0]["message"]["text"]


def test_an_entry_of_several_layers_is_found_by_the_layer_of_the_witness():
    other = LEAK.model_copy(update={"module": "embeddings", "source": "modeling_toy.py:9"})
    (result,) = results(refuted(entries=(other, LEAK.model_copy(update={"module": "layers.*.mixer"}))))
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 30


def test_an_unexpected_proof_is_located_at_its_last_line():
    (result, _) = results(examples.causal_proof())
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "modeling_bert.py"
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "model.layers.3.output.LayerNorm"


@pytest.mark.parametrize(
    ("source", "uri", "line"),
    [
        ("model.py:3", "model.py", 3),
        ("model.py:0", "model.py", None),
        ("model.py", "model.py", None),
        ("src/toy/model.py:3", "src/toy/model.py", 3),
        ("src\\toy\\model.py:3", "src/toy/model.py", 3),
        ("../other/model.py:3", "model.py", 3),
        ("~/toy/model.py:3", "model.py", 3),
        ("/home/me/secret/model.py:3", "model.py", 3),
        ("C:\\Users\\me\\model.py:3", "model.py", 3),
        ("ein Modell #1.py:3", "ein%20Modell%20%231.py", 3),
        ("modèle.py:3", "mod%C3%A8le.py", 3),
        ("a:b.py:3", "a%3Ab.py", 3),
        ("", "arch%3Atoy", None),
        ("..:3", "arch%3Atoy", None),
        ("<eval_with_key>.7:5", "arch%3Atoy", None),
    ],
)
def test_a_location_is_a_name_and_never_a_path_of_this_machine(source: str, uri: str, line: int | None):
    (result,) = results(refuted(entries=(LEAK.model_copy(update={"source": source}),)))
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": uri, "uriBaseId": "%SRCROOT%"}
    assert place.get("region", {}).get("startLine") == line
    assert "relatedLocations" in result or uri == "arch%3Atoy"


@pytest.mark.parametrize(
    ("name", "uri"),
    [("org/model", "org/model"), ("/home/me/model/", "model"), ("~/model", "model"), ("C:\\m", "m"), ("/", "subject")],
)
def test_the_subject_replaces_an_unknown_file(name: str, uri: str):
    report = refuted(entries=(), witness=None)
    report = report.model_copy(update={"subject": report.subject.model_copy(update={"name": name})})
    (result,) = results(report)
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_fingerprints_know_neither_lines_nor_times_nor_numbers():
    moved = LEAK.model_copy(update={"source": "modeling_toy.py:77", "reason": "token 1", "node_count": 3})
    witness = Witness(
        tokens_before=("x",),
        tokens_after=("y",),
        change="other",
        relative_difference=0.1,
        first_violating_module="layers.0.mixer",
        seed=3,
    )
    other = refuted(
        entries=(moved,), witness=witness, deviation=Deviation(), seconds=9.0, scope=Scope(length=11), reason="why"
    ).model_copy(update={"seconds": 99.0, "orderproof_version": "0.2.0", "versions": {"torch": "3"}})
    assert prints(refuted()) == prints(other)
    assert prints(refuted(verdict="undecided")) == prints(refuted())


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "OP101"},
        {"output": "hidden"},
        {"entries": (LEAK.model_copy(update={"module": "layers.1.mixer"}),)},
        {"entries": (LEAK.model_copy(update={"source": "modeling_other.py:30"}),)},
        {"entries": (LEAK.model_copy(update={"operator": "aten.bmm.default"}),)},
        {"entries": (LEAK.model_copy(update={"source_line": "return value"}),)},
    ],
)
def test_different_findings_have_different_fingerprints(changes: dict[str, Any]):
    assert set(prints(refuted()).values()).isdisjoint(prints(refuted(**changes)).values())


def test_fingerprints_are_what_they_were_in_the_first_version():
    assert prints(refuted()) == {
        "orderproof/v1": "f8d00cfe953be97c0b7f8c62ff088d1d45d947757af26c39cc7ab2b85fe0f791",
        "primaryLocationLineHash": "f8d00cfe953be97c:1",
    }


def test_the_message_begins_with_what_matters_and_holds_the_witness():
    (result,) = results(refuted())
    text = result["message"]["text"]
    assert text.startswith(
        "OP201 causal FAIL: expected to hold, it does not hold (witness) in arch:toy: replace: differs by 0.9\n"
    )
    assert re.search(r"^before +\[CLS\] «a»$", text, re.MULTILINE)


def test_no_placeholder_and_no_link_is_read_into_a_message():
    (result,) = results(refuted(reason="[here](http://x) {0} {{"))
    text = result["message"]["text"]
    assert "«{{0}}»" in text
    assert "[here] (http://x) {{0}} {{{{" in text


def test_a_measured_violation_says_what_was_compared_and_what_to_do():
    made = log(examples.measured())["runs"][0]
    refuted = next(r for r in made["results"] if r["ruleId"] == "OP405")
    text = refuted["message"]["text"]
    assert re.search(r"^compared +pads on the left, then one token at a time$", text, re.MULTILINE)
    assert re.search(r"^to do +Count positions by the mask, not by the cache\.$", text, re.MULTILINE)
    assert not re.search("^(before|after)", text, re.MULTILINE)
    assert refuted["properties"]["remedy"] == "Count positions by the mask, not by the cache."
    rules = {rule["id"]: rule["help"]["text"] for rule in made["tool"]["driver"]["rules"]}
    assert "To do: Count positions by the mask" in rules["OP405"]
    assert "held: in every comparison made" in rules["OP401"]


def test_subjects_have_different_fingerprints_when_several_logs_are_uploaded():
    assert log(refuted())["runs"][0]["automationDetails"]["id"] == "orderproof/arch:toy/"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_does_not_know_are_left_out(number: float):
    (result,) = results(refuted(deviation=Deviation(float32=number, float64=0.5)))
    assert result["properties"]["deviation"] == {"float64": 0.5}


def test_the_file_is_ascii_and_the_same_each_time(tmp_path: Path):
    target = tmp_path / "order.sarif"
    write_sarif(examples.hostile(), target)
    assert target.read_bytes().decode("ascii") == render_sarif(examples.hostile())
    unmet = examples.hostile().findings[0].model_copy(update={"expectation_met": False, "expected": "holds"})
    assert "\\u001b" not in render_sarif(examples.hostile().model_copy(update={"findings": (unmet,)}))
    log(examples.hostile().model_copy(update={"findings": (unmet,)}))
