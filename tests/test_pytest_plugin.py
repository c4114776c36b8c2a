"""The pytest plugin: the report of a session, with and without workers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from orderproof.pytest_plugin import OPTION, OrderproofFixture, assert_law
from orderproof.records.audit import Report
from orderproof.report import audit_schema
from orderproof.report.merged_report import merge_reports
from tests.docs.code_blocks import blocks
from tests.report import examples

pytest_plugins = ["pytester"]

TWO = """
from orderproof.pytest_plugin import record_report
from tests.report import examples

def test_first():
    record_report(examples.everyday())

def test_second():
    record_report(examples.undecided_only())
    assert False, "the findings of a test that fails are kept too"
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite of its own, with this plugin and no other."""
    root = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "orderproof.pytest_plugin")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTHONPATH", root)
    monkeypatch.syspath_prepend(root)
    return pytester


def written(path: Path) -> Report:
    text = path.read_text(encoding="utf-8")
    jsonschema.validate(json.loads(text), audit_schema())
    return Report.from_json(text)


def test_the_entry_point_is_declared():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"orderproof": "orderproof.pytest_plugin"}


def test_loading_the_plugin_imports_nothing_heavy():
    heavy = [
        "torch",
        "transformers",
        "numpy",
        "pydantic",
        "jinja2",
        "rich",
        "orderproof.records.audit",
        "orderproof.auditing",
    ]
    code = f"import sys, orderproof.pytest_plugin; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_suite_uses_the_fixture_and_sees_why_it_failed(inner: pytest.Pytester):
    inner.makeini("[pytest]\nfilterwarnings = error")
    inner.makepyfile(
        """
        import sys
        import pytest

        def test_torch_is_not_imported_before_it_is_needed():
            assert "torch" not in sys.modules

        @pytest.fixture(scope="module")
        def asserting(orderproof):
            return orderproof.assert_law

        def test_holds(asserting):
            from tests.auditing.examples import Causal
            import torch
            asserting(Causal(), "causal", inputs=torch.randn(2, 7, 8))

        def test_leaks(orderproof):
            from tests.auditing.examples import Attention
            import torch
            orderproof.assert_law(Attention(), "causal", inputs=torch.randn(2, 7, 8))
        """
    )
    done = inner.runpytest_subprocess(OPTION, "order.json")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.re_match_lines(
        [
            r"E +AssertionError: OP201 causal FAIL: expected to hold, it does not hold \(witness\): Attention",
            r"E +before +x0 «x1»",
            r"E +after +x0 «x1'»",
            r"orderproof: 2 findings written to .*order\.json",
        ]
    )
    assert "one_law" not in done.stdout.str()  # the traceback ends at the assertion
    report = written(inner.path / "order.json")
    assert [(f.output, f.verdict, f.expectation_met) for f in report.findings] == [
        ("test_a_suite_uses_the_fixture_and_sees_why_it_failed.py::test_holds: Causal, output", "proved", True),
        ("test_a_suite_uses_the_fixture_and_sees_why_it_failed.py::test_leaks: Attention, output", "refuted", False),
    ]
    assert report.exit_code == 1
    assert report.versions["torch"]


@pytest.mark.slow
def test_the_suite_of_the_how_to_does_what_its_page_says(inner: pytest.Pytester):
    page = Path(__file__).parents[1] / "docs" / "how_to" / "gate_ci.md"
    files = {block.title: block.body for block in blocks(page) if block.is_a("python") and block.title}
    for name, body in files.items():
        (inner.path / name).write_text(body, encoding="utf-8")
    done = inner.runpytest_subprocess("test_order.py", OPTION, "order.html")
    done.assert_outcomes(passed=3)
    assert (inner.path / "order.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_session_has_one_report(inner: pytest.Pytester):
    inner.makepyfile(TWO)
    done = inner.runpytest(OPTION, "order.json")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["orderproof: 8 findings written to *order.json"])
    report = written(inner.path / "order.json")
    assert len(report.findings) == 8
    assert report.subject.kind == "test session"
    assert report.subject.detail == "tests that asserted laws: 2; subjects: 2"
    assert report.exit_code == 3
    assert report.lemma_statements == examples.everyday().lemma_statements
    assert [p.name for p in inner.path.iterdir() if "order.json" in p.name] == ["order.json"]


def test_a_page_is_written_where_the_name_says_so(inner: pytest.Pytester):
    inner.makepyfile(TWO)
    inner.runpytest(OPTION, "order.HTML").assert_outcomes(passed=1, failed=1)
    page = (inner.path / "order.HTML").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "::test_second: arch:toy" in page


def test_workers_send_what_they_found(inner: pytest.Pytester):
    inner.makepyfile(TWO)
    inner.runpytest(OPTION, "alone.json")
    done = inner.runpytest("-p", "xdist", "-n", "2", OPTION, "order.json")
    done.assert_outcomes(passed=1, failed=1)
    assert done.stdout.str().count("orderproof: 8 findings written") == 1
    assert written(inner.path / "order.json") == written(inner.path / "alone.json")


@pytest.mark.slow
def test_a_worker_that_dies_takes_no_finished_test_along(inner: pytest.Pytester):
    inner.makepyfile(TWO + "\ndef test_third():\n    import os\n    os._exit(9)\n")
    done = inner.runpytest("-p", "xdist", "-n", "1", "--max-worker-restart=0", OPTION, "order.json")
    done.stdout.fnmatch_lines(["*crashed*"])
    assert len(written(inner.path / "order.json").findings) == 8


def test_an_interrupted_session_still_writes(inner: pytest.Pytester):
    inner.makepyfile(TWO + "\ndef test_third():\n    raise KeyboardInterrupt\n")
    inner.runpytest(OPTION, "order.json", no_reraise_ctrlc=True)
    assert len(written(inner.path / "order.json").findings) == 8


@pytest.mark.slow
def test_what_is_not_a_number_survives_the_way_to_the_report(inner: pytest.Pytester):
    inner.makepyfile(
        """
        from orderproof.pytest_plugin import record_report
        from orderproof.records.audit import Deviation
        from tests.report import examples

        def test_nan():
            report = examples.everyday()
            finding = report.findings[0]
            numbers = {"relative_difference": float("nan"), "actual_value": float("inf")}
            witness = finding.witness.model_copy(update=numbers)
            record_report(report.model_copy(update={"findings": (finding.model_copy(update={"witness": witness}),)}))
        """
    )
    inner.runpytest("-p", "xdist", "-n", "1", OPTION, "order.json").assert_outcomes(passed=1)
    (finding,) = json.loads((inner.path / "order.json").read_text(encoding="utf-8"))["findings"]
    assert (finding["witness"]["actual_value"], finding["witness"]["expected_value"]) == (None, 0.4183671)


def test_findings_of_fixtures_belong_to_the_test_that_asked(inner: pytest.Pytester):
    inner.makepyfile(
        """
        import pytest
        from orderproof.pytest_plugin import record_report
        from tests.report import examples

        @pytest.fixture(scope="module")
        def audited():
            record_report(examples.undecided_only())
            yield
            record_report(examples.undecided_only())

        def test_one(audited): pass
        def test_two(audited): pass
        """
    )
    inner.runpytest(OPTION, "order.json").assert_outcomes(passed=2)
    tests = [f.output.partition(": ")[0].partition("::")[2] for f in written(inner.path / "order.json").findings]
    assert tests == ["test_one"] * 2 + ["test_two"] * 2


def test_a_session_without_laws_says_so_in_its_report(inner: pytest.Pytester):
    inner.makepyfile("def test_nothing(): pass")
    done = inner.runpytest(OPTION, "order.json")
    done.stdout.fnmatch_lines(["orderproof: 0 findings written to *"])
    assert written(inner.path / "order.json").findings == ()


def test_nothing_is_kept_and_nothing_written_without_the_option(inner: pytest.Pytester):
    inner.makepyfile(TWO)
    done = inner.runpytest()
    done.assert_outcomes(passed=1, failed=1)
    assert "orderproof" not in done.stdout.lines[-3]
    inner.makefile(".json", order="old")
    inner.runpytest("--collect-only", OPTION, "order.json")
    assert (inner.path / "order.json").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("order.xml", r"--orderproof-report: expected a name that ends in \.html or \.json; got 'order\.xml'"),
        ("order", r"expected a name that ends in \.html or \.json; got 'order'"),
        ("absent/order.json", r"expected a file in an existing folder; '.*absent' does not exist"),
    ],
)
def test_a_report_that_cannot_be_is_refused_before_the_tests_run(inner: pytest.Pytester, name: str, message: str):
    inner.makepyfile(TWO)
    done = inner.runpytest(OPTION, name)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert re.search(message, done.stderr.str())
    assert "test_first" not in done.stdout.str()


def test_a_report_that_cannot_be_written_in_the_end_fails_the_session_in_one_line(inner: pytest.Pytester):
    inner.makepyfile("def test_it(tmp_path): pass")
    (inner.path / "order.json").mkdir()
    done = inner.runpytest(OPTION, "order.json")
    done.assert_outcomes(passed=1)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stdout.fnmatch_lines(["orderproof: cannot write *it is a folder*"])


def test_an_error_of_ours_does_not_cost_the_summary_of_the_tests(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    def broken(report: Report, target: Path) -> None:
        raise ValueError("one line")

    monkeypatch.setattr("orderproof.report.write_json", broken)
    inner.makepyfile("def test_it(): pass")
    done = inner.runpytest(OPTION, "order.json")
    done.assert_outcomes(passed=1)
    assert done.ret == pytest.ExitCode.INTERNAL_ERROR
    done.stdout.fnmatch_lines(["orderproof: internal error, please report it: ValueError: one line"])


def test_the_fixture_is_the_function():
    assert OrderproofFixture().assert_law is assert_law


def test_reports_are_combined_in_one_that_renders():
    reports = [("a.py::test", examples.hostile()), ("b.py::test", examples.causal_proof())]
    report = merge_reports(reports, "project", "test session", "tests: 2")
    assert Report.from_json(report.to_json()) == report
    assert report.seconds == 0.0
    assert report.subject.parameters == 2
