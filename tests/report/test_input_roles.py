"""The role of each input, in every format that people read."""

from __future__ import annotations

import json

import jsonschema
import pytest
import torch
from torch import nn

from orderproof.auditing.built_report import subject_record
from orderproof.models import from_module
from orderproof.records.audit import Report
from orderproof.records.input_role import InputRole
from orderproof.report import audit_schema
from orderproof.report.html_page import render_html
from orderproof.report.markdown import render_markdown
from tests.report import examples
from tests.report.test_html_page import Page
from tests.report.test_markdown import shown
from tests.report.test_terminal import printed, unwrapped

ROLES = (
    InputRole(name="ids", role="tokens", known_by="its name"),
    InputRole(name="keep", role="padding mask, 1 at real tokens", known_by="calls: hides a token"),
)


def with_roles(*roles: InputRole) -> Report:
    report = examples.everyday()
    return report.model_copy(update={"subject": report.subject.model_copy(update={"inputs": roles})})


def test_the_terminal_lists_each_input_with_its_role_and_how_it_is_known():
    lines = [line.split() for line in printed(with_roles(*ROLES)).splitlines()]
    start = lines.index(["Inputs"])
    assert " ".join(lines[start + 1]) == "input role how it is known"
    assert " ".join(lines[start + 3]) == "keep padding mask, 1 at real tokens calls: hides a token"


def test_markdown_and_html_list_the_same():
    assert "| `keep` | padding mask, 1 at real tokens | calls: hides a token |" in render_markdown(with_roles(*ROLES))
    row = "keep padding mask, 1 at real tokens calls: hides a token"
    assert row in Page(render_html(with_roles(*ROLES))).text


def test_no_table_is_shown_where_no_role_was_derived():
    assert "Inputs" not in printed(with_roles())
    assert "Inputs" not in render_markdown(with_roles())
    assert 'id="inputs"' not in render_html(with_roles())


@pytest.mark.parametrize("field", ["name", "role", "known_by"])
def test_a_hostile_text_takes_no_effect(field):
    report = with_roles(InputRole(**{"name": "x", "role": "tokens", field: examples.HOSTILE + " | cell"}))
    assert "<script>alert" not in render_html(report)
    assert "\x1b" not in unwrapped(printed(report))
    assert "Inputs" in shown(render_markdown(report))
    assert "<script>" not in render_markdown(report).replace("`", "") or field == "name"  # there a code span


def test_the_json_has_the_roles():
    data = json.loads(with_roles(*ROLES).to_json())
    jsonschema.validate(data, audit_schema())
    assert data["subject"]["inputs"][0] == {"name": "ids", "role": "tokens", "known_by": "its name"}


def test_the_roles_of_a_subject_are_those_of_its_report():
    subject = from_module(nn.Linear(4, 4), torch.randn(2, 7, 4))
    subject.input_roles = ROLES
    assert subject_record(subject).inputs == ROLES
