"""Files of a user are named by their path from the working directory, and others by their name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import orderproof
from orderproof import audit
from orderproof.auditing.explain.source_name import source_name
from orderproof.report import write_sarif
from tests.auditing.explain.test_mask_lines import FUSED, MODEL


def test_only_own_files_below_the_working_directory_have_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    assert source_name(str(tmp_path / "repository" / "src" / "model.py")) == "src/model.py"
    assert source_name("src/model.py") == "src/model.py"
    assert source_name(str(tmp_path / "other" / "model.py")) == "model.py"
    assert source_name(str(tmp_path / "repository/.venv/lib/site-packages/toy/model.py")) == "model.py"
    assert source_name("<eval_with_key>.7") == "<eval_with_key>.7"
    assert source_name("C:\\models\\model.py").endswith("model.py")


def test_files_of_this_package_and_of_torch_have_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert source_name(str(Path(orderproof.__file__).parent / "blocks" / "attention.py")) == "attention.py"
    assert source_name(str(Path(str(torch.__file__)).parent / "nn" / "functional.py")) == "functional.py"


def test_an_alert_is_at_the_path_of_a_file_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    mask = "mask = torch.ones(n, n, dtype=torch.bool).tril(1)"
    (tmp_path / "src" / "model.py").write_text(MODEL.format(mask=mask, attend=FUSED), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = audit("src/model.py:decoder", laws=["causal"])
    (finding,) = report.violations
    assert finding.fix_source.startswith("src/model.py:")
    assert {entry.source.rpartition(":")[0] for entry in finding.entries} == {"src/model.py"}
    write_sarif(report, tmp_path / "order.sarif")
    (run,) = json.loads((tmp_path / "order.sarif").read_text(encoding="utf-8"))["runs"]
    assert run["results"]
    for result in run["results"]:
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/model.py"
