"""Docstrings, claims and pages name theorems that exist, and each lemma has a theorem or a reason."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

from orderproof.claims import claims
from orderproof.diagnosis.rule import rules
from tests.docs.code_blocks import ROOT

PROOFS = ROOT / "proofs"
THEOREM = re.compile(r"^(?:Theorem|Lemma) (\w+)", re.MULTILINE)
MODULES = [
    info.name
    for package in ("orderproof.diagnosis.rules", "orderproof.theorems.operators")
    for info in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    if not info.ispkg
]


def theorems(file: str) -> set[str]:
    return set(THEOREM.findall((ROOT / file).read_text(encoding="utf-8")))


@pytest.mark.parametrize("module", [*MODULES, "orderproof.theorems.walks.depth", "orderproof.theorems.agreement"])
def test_a_module_of_rules_names_its_theorems(module: str):
    text = importlib.import_module(module).__doc__ or ""
    named = re.findall(r"^Machine-checked \(([\w/.]+)\): ([^.]+)\.$", text, flags=re.MULTILINE)
    assert named, "no theorem"
    for file, names in named:
        assert {name.strip() for name in names.split(",")} <= theorems(file)
    assert text.count("Machine-checked (") == len(named), "a line that is not read"
    assert all(line.endswith(".") for line in text.strip().splitlines()[-1:])


def test_every_lemma_is_in_a_module_with_theorems():
    assert {rule.module for rule in rules()} <= set(MODULES)


def test_each_file_says_its_statements_in_words_and_names_them():
    for path in sorted(PROOFS.rglob("*.v")):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("(** * "), path
        header = text[: text.index("*)")]
        named = set(re.findall(r"\[(\w+)\]", header))
        stated = {name for name in THEOREM.findall(text) if f"Theorem {name}" in text}
        assert stated <= named, f"{path}: {stated - named}"


@pytest.mark.parametrize("page", ["docs/explanation/why_positions.md", "docs/explanation/machine_checked.md"])
def test_a_page_names_files_and_theorems_that_exist(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    files = re.findall(r"`(?:proofs/)?((?:argument|order|influence|symbolic|rules)/\w+\.v)`", text)
    assert files
    assert all((PROOFS / file).is_file() for file in files)
    every = {name for path in PROOFS.rglob("*.v") for name in THEOREM.findall(path.read_text(encoding="utf-8"))}
    known = ["invariant", "equivariant", "bag_of_words", "kept", "ignores", "use_order", "break", "linear", "relative"]
    named = [name for name in re.findall(r"`(\w+_\w+)`", text) if any(part in name for part in known)]
    lemmas = {rule.lemma for rule in rules()}
    assert [name for name in named if name not in every | lemmas] == []


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.name)
def test_a_claim_names_theorems_that_exist(claim):
    for name in claim.theorems:
        file, _, theorem = name.rpartition(".")
        assert theorem in theorems(f"proofs/{file.replace('.', '/')}.v")
