"""Files that other tools read: the citation, the workflow of GitHub, the hooks of pre-commit, the changelog."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import orderproof

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = (
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", ".pre-commit-config.yaml",
    ".github/workflows/ci.yml", "tools/release.py", "action.yml", ".pre-commit-hooks.yaml",
)  # fmt: skip


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def data(name: str) -> Any:
    return yaml.safe_load(text(name))


def test_the_citation_has_the_fields_that_cff_requires():
    citation = data("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert all(author.get("name") or author.get("family-names") for author in citation["authors"])


def test_the_citation_agrees_with_the_package():
    citation = data("CITATION.cff")
    assert citation["title"] == PROJECT["name"]
    assert str(citation["version"]) == orderproof.__version__
    assert citation["license"] == PROJECT["license"]


def test_the_workflow_runs_both_commands_on_every_supported_python():
    job = data(".github/workflows/ci.yml")["jobs"]["test"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[-2:] == ["make audit", "make test"]
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert job["strategy"]["matrix"]["python"] == classified


def test_the_workflow_compiles_the_theorems():
    job = data(".github/workflows/ci.yml")["jobs"]["theorems"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert "coq libcoq-mathcomp-algebra" in commands[0]
    assert commands[-1] == "make theorems"
    assert "coq libcoq-mathcomp-algebra" in text(".ci/run")


def test_the_workflow_can_read_only_and_pins_majors_of_its_actions():
    workflow = data(".github/workflows/ci.yml")
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert used
        assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in used)


def test_the_hooks_are_the_checks_of_make_lint():
    (repository,) = data(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert all(hook["language"] == "system" for hook in repository["hooks"])
    recipe = text("Makefile").partition("\nlint:")[2].partition("\n\n")[0]
    checks = re.findall(r"@\$\((?:RUN|BIN)\)[ /](ruff check|ruff format|lint-imports|mypy)", recipe)
    assert [hook["name"] for hook in repository["hooks"]] == checks
    assert all(hook["entry"].startswith(f".venv/bin/{hook['name']}") for hook in repository["hooks"])


def test_the_changelog_begins_with_what_is_not_released():
    versions = re.findall(r"^## \[(.+?)\]", text("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions[1:])


@pytest.mark.parametrize("name", FILES)
def test_no_project_file_names_a_machine_or_a_package_index(name: str):
    assert not re.search(r"/(home|Users|work|opt)/|https?://\S*(pypi|whl|simple/)", text(name))
