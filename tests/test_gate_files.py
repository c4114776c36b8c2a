"""The action of GitHub and the hook of pre-commit: what their steps run, and how a job ends."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from orderproof.cli.audit import audit
from orderproof.cli.stated_options import options_of

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
PROGRAM = """#!/bin/sh
printf '%s\\n' "$@" > arguments
while [ $# -gt 0 ]; do
  case "$1" in --sarif) echo '{}' > "$2" ;; --markdown) echo '## Token order' > "$2" ;; esac
  shift
done
exit $ENDS_WITH
"""


def run_step(folder: Path, subject: str, options: str, ends_with: int) -> dict[str, str]:
    """The outputs of the step that audits, with a program in the place of orderproof."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "orderproof"
    program.write_text(PROGRAM if ends_with != 2 else "#!/bin/sh\nprintf '%s\\n' \"$@\" > arguments\nexit 2\n")
    program.chmod(0o755)
    environment = {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "SUBJECT": subject, "OPTIONS": options,
        "RUNNER_TEMP": str(folder / "temp"), "GITHUB_OUTPUT": str(folder / "outputs"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"), "ENDS_WITH": str(ends_with),
    }  # fmt: skip
    script = STEPS["Audit"]["run"]
    subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=environment, check=True)
    return dict(line.split("=", 1) for line in (folder / "outputs").read_text().splitlines())


@pytest.mark.parametrize("ends_with", [0, 1, 2])
def test_the_action_writes_the_summary_and_passes_the_exit_code_on(tmp_path: Path, ends_with: int) -> None:
    outputs = run_step(tmp_path, "my model.py:build", "--as decoder --strict", ends_with)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:5] == ["audit", "my model.py:build", "--as", "decoder", "--strict"]
    assert outputs["exit-code"] == str(ends_with)
    assert ("sarif" in outputs) == (ends_with != 2)
    summary = (tmp_path / "summary").read_text()
    assert summary == (
        "orderproof ended with exit code 2; the log of the job says why.\n" if ends_with == 2 else "## Token order\n"
    )
    assert STEPS["Decide"]["run"] == 'exit "$CODE"'
    assert STEPS["Decide"]["env"]["CODE"] == "${{ steps.audit.outputs.exit-code }}"


def test_without_a_subject_the_action_audits_the_configuration(tmp_path: Path) -> None:
    run_step(tmp_path, "", "", 0)
    assert (tmp_path / "arguments").read_text().splitlines()[:2] == ["audit", "--sarif"]


def test_no_input_of_the_action_becomes_part_of_a_script() -> None:
    assert all("${{" not in step["run"] for step in STEPS.values() if "run" in step)
    assert STEPS["Upload alerts"]["uses"] == "github/codeql-action/upload-sarif@v3"
    used = [word for word in shlex.split(STEPS["Audit"]["run"], comments=True) if word.startswith("--")]
    assert {word.removeprefix("--") for word in used} <= options_of(audit).keys()


def test_the_hook_audits_the_configuration_fast() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["entry"], hook["pass_filenames"]) == ("orderproof audit --fast", False)
    assert "fast" in options_of(audit)
