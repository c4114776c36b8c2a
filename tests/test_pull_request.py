"""A pull request that the steps of the action gate: a bare repository, a branch with a leak, its repair, a baseline.

The steps run as a runner runs them; those that are actions of GitHub (`uses`) are left out by name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
LEFT_OUT = ["Upload alerts"]
SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c"], "python": [sys.executable, "-c"]}
MODEL = """\
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return x + scaled_dot_product_attention(q, k, v, attn_mask=mask)


def decoder():
    return Decoder(), torch.randn(2, 7, 8)
"""
LEAK = MODEL.replace(".tril()", ".tril(1)")
CONFIGURATION = '[subjects.decoder]\nsubject = "model.py:decoder"\nlaw = ["causal"]\n'
BASELINE = "order_baseline.toml"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")]


@dataclass
class Job:
    """A job on the merge of a branch with main: the steps of the action, in their order."""

    folder: Path
    temporary: Path
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)  # "steps.audit.outputs.sarif"
    log: str = ""
    left_out: list[str] = field(default_factory=list)
    code: int = 0

    def run(self) -> Job:
        for step in ACTION["runs"]["steps"]:
            if self.code or not self._is_wanted(step.get("if", "")):
                continue
            if "uses" in step:
                self.left_out.append(step["name"])
            else:
                self._run(step)
        return self

    @property
    def alerts(self) -> list[dict[str, Any]]:
        (run,) = json.loads(Path(self.outputs["steps.audit.outputs.sarif"]).read_text())["runs"]
        return list(run["results"])

    @property
    def summary(self) -> str:
        return (self.temporary / "summary").read_text()

    def _run(self, step: dict[str, Any]) -> None:
        written = self.temporary / "outputs"
        written.write_text("")
        values = {key: self._filled(value) for key, value in step.get("env", {}).items()}
        done = subprocess.run(
            [*SHELLS[step["shell"]], step["run"]], cwd=self.folder, capture_output=True, text=True, check=False,
            env={**os.environ, **values, "RUNNER_TEMP": str(self.temporary), "GITHUB_OUTPUT": str(written),
                 "GITHUB_STEP_SUMMARY": str(self.temporary / "summary")},
        )  # fmt: skip
        self.log += done.stdout + done.stderr
        self.code = done.returncode
        for line in written.read_text().splitlines():
            name, _, value = line.partition("=")
            self.outputs[f"steps.{step['id']}.outputs.{name}"] = value

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: self._value(found[1]), text)

    def _value(self, name: str) -> str:
        if name.startswith("inputs."):
            name = name.removeprefix("inputs.")
            return self.inputs.get(name, ACTION["inputs"][name]["default"])
        return self.outputs.get(name, "")

    def _is_wanted(self, condition: str) -> bool:
        parts = condition.removeprefix("${{ ").removesuffix(" }}").split(" && ") if condition else []
        tests = [re.fullmatch(r"(\S+) (==|!=) '(.*)'", part) for part in parts]
        assert all(tests), condition
        return all((self._value(test[1]) == test[3]) == (test[2] == "==") for test in tests if test)


def git(folder: Path, *arguments: str) -> None:
    person = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *person, *arguments], cwd=folder, check=True, capture_output=True)


@dataclass(frozen=True)
class Repository:
    """A bare repository, and the clone of somebody who pushes to it."""

    bare: Path
    clone: Path

    def push(self, branch: str, **files: str) -> None:
        """Commit these files to a branch, which begins at what the clone has checked out."""
        git(self.clone, "checkout", "-B", branch)
        for name, text in files.items():
            (self.clone / name).write_text(text)
        git(self.clone, "add", "--all")
        git(self.clone, "commit", "--message", "Change the model")
        git(self.clone, "push", "--force", "origin", branch)

    def job(self, place: Path, branch: str, **inputs: str) -> Job:
        """The job of a pull request: GitHub checks out the branch merged with main."""
        folder, temporary = place / "checkout", place / "temporary"
        temporary.mkdir(parents=True)
        git(place, "clone", "--branch", "main", str(self.bare), str(folder))
        git(folder, "merge", "--no-ff", f"origin/{branch}")
        return Job(folder, temporary, inputs).run()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "orderproof"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m orderproof "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    found = Repository(tmp_path / "origin.git", tmp_path / "clone")
    git(tmp_path, "init", "--bare", "--initial-branch", "main", str(found.bare))
    git(tmp_path, "clone", str(found.bare), str(found.clone))
    found.push("main", **{"model.py": MODEL, "orderproof.toml": CONFIGURATION, ".gitignore": ".orderproof_cache\n"})
    return found


def test_a_leak_fails_the_job_at_its_line_and_its_repair_passes(repository: Repository, tmp_path: Path) -> None:
    repository.push("branch", **{"model.py": LEAK})
    job = repository.job(tmp_path / "leak", "branch")
    assert (job.code, job.left_out) == (1, LEFT_OUT)
    (alert,) = job.alerts
    place = alert["locations"][0]["physicalLocation"]
    assert (alert["ruleId"], alert["level"]) == ("OP201", "error")
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("model.py", 14)
    assert "OP201" in job.summary

    repository.push("branch", **{"model.py": MODEL.replace("x +", "x + 1.0 *")})
    job = repository.job(tmp_path / "repaired", "branch")
    assert (job.code, job.alerts, job.left_out) == (0, [], LEFT_OUT), job.log


def test_without_code_scanning_the_job_annotates_the_line(repository: Repository, tmp_path: Path) -> None:
    repository.push("branch", **{"model.py": LEAK})
    job = repository.job(tmp_path / "leak", "branch", upload="false")
    (line,) = [line for line in job.log.splitlines() if line.startswith("::")]
    assert line.startswith("::error file=model.py,line=14,title=OP201 causal::")
    assert "%0A" in line
    assert (job.code, job.left_out) == (1, [])


def test_a_baseline_lets_a_leak_pass_until_it_is_repaired(repository: Repository, tmp_path: Path) -> None:
    repository.push("branch", **{"model.py": LEAK, "orderproof.toml": f'baseline = "{BASELINE}"\n{CONFIGURATION}'})
    subprocess.run(["orderproof", "audit", "--write-baseline", BASELINE], cwd=repository.clone, check=False)
    text = (repository.clone / BASELINE).read_text()
    assert repository_code(repository, tmp_path / "draft", text) == 2  # an entry needs a reason
    reason = text.replace('reason = ""', 'reason = "the next release repairs it"')
    assert repository_code(repository, tmp_path / "accepted", reason) == 0
    repository.push("branch", **{"model.py": MODEL})
    job = repository.job(tmp_path / "stale", "branch")
    assert (job.code, job.alerts) == (2, [])
    assert f"{BASELINE}:4: stale: no such finding of OP201 causal of decoder; delete the entry" in job.log


def repository_code(repository: Repository, place: Path, baseline: str) -> int:
    """The exit code of the job on the branch with this baseline."""
    repository.push("branch", **{BASELINE: baseline})
    return repository.job(place, "branch").code
