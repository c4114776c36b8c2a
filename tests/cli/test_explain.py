"""The command: a file, or a server that prints its address and ends at Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orderproof.cli import main
from orderproof.explain import bundled_study, render_page
from orderproof.optional_packages import install_command
from tests.explain.examples import study_text
from tests.interruptible import start_interruptible
from tests.report import examples

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["orderproof", "explain", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return call


def embedded(text: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="orderproof-{name}">(.*?)</script>', text)
    return json.loads(found.group(1))


def test_the_page_is_written_to_a_file(run: Run, tmp_path: Path):
    file = tmp_path / "order.html"
    code, out, err = run("--output", str(file))
    assert (code, "".join(out.split("\n")), err) == (0, f"written: {file}", "")
    text = file.read_text(encoding="utf-8")
    assert text == render_page(study=bundled_study())
    assert embedded(text, "report") is None
    assert embedded(text, "study")["name"] == "who_did_what"
    assert run("-o", "-") == (0, text, "")


def test_a_report_and_a_study_are_put_in_it(run: Run, tmp_path: Path):
    report, study, file = tmp_path / "r.json", tmp_path / "s.json", tmp_path / "order.html"
    report.write_text(examples.hostile().to_json(), encoding="utf-8")
    study.write_text(study_text(question="</script>"), encoding="utf-8")
    assert run("--output", str(file), "--report", str(report), "--study", str(study))[0] == 0
    text = file.read_text(encoding="utf-8")
    assert embedded(text, "report")["subject"]["name"] == examples.hostile().subject.name
    assert embedded(text, "study")["question"] == "</script>"
    scripts = len(re.findall(r"<script\b", text))
    assert text.count("</script>") == scripts


@pytest.mark.parametrize(("option", "version"), [("--report", 2), ("--study", 3)])
def test_a_file_of_another_schema_is_one_line(run: Run, tmp_path: Path, option: str, version: int):
    file = tmp_path / "other.json"
    file.write_text('{"schema": 7}', encoding="utf-8")
    code, out, err = run("--output", str(tmp_path / "x.html"), option, str(file))
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"orderproof: .*other\.json: .*schema version {version}.*\n", err)
    assert not (tmp_path / "x.html").exists()


def test_a_study_too_large_for_a_page_is_refused(run: Run, tmp_path: Path):
    data = json.loads(study_text())
    data["cells"] *= 2000
    (tmp_path / "s.json").write_text(json.dumps(data), encoding="utf-8")
    code, _, err = run("--output", str(tmp_path / "x.html"), "--study", str(tmp_path / "s.json"))
    assert code == 2
    assert "expected at most 1,000,000; write it without --study" in err


def test_a_report_too_large_for_a_page_is_refused(run: Run, tmp_path: Path):
    report = examples.everyday()
    huge = report.model_copy(update={"findings": report.findings * 400})
    (tmp_path / "r.json").write_text(huge.to_json(), encoding="utf-8")
    code, _, err = run("--output", str(tmp_path / "x.html"), "--report", str(tmp_path / "r.json"))
    assert code == 2
    assert "too large for a page; write it without --report and load the report at the step #model" in err


def test_without_the_servers_packages_the_page_is_written_and_opened(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "written: orderproof-explain.html",
        f"the server, which can run the bundled model, needs starlette and uvicorn: {install_command('app')}",
    ]
    file = tmp_path / "orderproof-explain.html"
    assert file.read_text(encoding="utf-8") == render_page(study=bundled_study())
    assert opened == [file.as_uri()]
    assert run("--no-open")[0] == 0
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("record", "command"),
    [
        ('{"dir_info": {"editable": true}, "url": "file:///x"}', "pip install -e '.[lab]' in the clone of orderproof"),
        (None, "pip install 'orderproof[lab]'"),
        ('{"archive_info": {}, "url": "file:///x.whl"}', "pip install 'orderproof[lab]'"),
    ],
)
def test_an_extra_is_installed_as_the_package_was(record: str | None, command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", lambda self, name: record)
    assert install_command("lab") == command


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_serves_and_ends_cleanly(sent: signal.Signals):
    command = [sys.executable, "-c", "from orderproof.cli import main; main()", "explain", "--port", "0", "--no-open"]
    pipe = subprocess.PIPE
    with start_interruptible(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            line = process.stdout.readline()
            address = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)  \(Ctrl-C stops the server\)\n", line).group(1)
            with urllib.request.urlopen(address, timeout=20) as response:
                served = response.read().decode()
            process.send_signal(sent)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()  # a test that fails must not wait for a server that nobody ends
    assert served == render_page(study=bundled_study(), live=True)
    assert (out, err) == ("", "")
    assert process.returncode in ((0,) if sent is signal.SIGINT else (0, -signal.SIGTERM))


def test_the_browser_is_opened_at_the_address_unless_disabled(run: Run, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("orderproof.explain.server.serve", lambda text, on: None)
    code, out, _ = run("--port", "0")
    assert code == 0
    assert opened == [out.split()[0]]
    assert run("--port", "0", "--no-open")[0] == 0
    assert len(opened) == 1
