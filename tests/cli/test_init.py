"""`orderproof init`: a template that runs as it is."""

from pathlib import Path

import pytest

from orderproof.configuration.project_file import find_configuration
from tests.cli.conftest import Run


def test_the_adapter_template_passes_its_own_audit(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "my_adapter.py"
    assert run("init", "adapter", "--output", str(file)) == (0, f"written: {file}\n", "")
    code, out, _ = run("audit", f"{file}:adapter", "--as", "decoder")
    assert code == 0
    assert "OP403  cache_editing" in out
    code, _, err = run("audit", f"{file}:adapter", "--as", "encoder")
    assert (code, "expected the kind that the adapter states, causal = True; got encoder" in err) == (2, True)


def test_the_template_goes_to_standard_output(run: Run) -> None:
    code, out, _ = run("init", "adapter")
    assert code == 0
    assert "class Adapter(ModelAdapter):" in out


def test_a_file_that_exists_is_kept(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("mine")
    code, _, err = run("init", "adapter", "--output", str(file))
    assert (code, "exists; give another name, or --force" in err, file.read_text()) == (2, True, "mine")
    assert run("init", "adapter", "--output", str(file), "--force")[0] == 0
    assert "ModelAdapter" in file.read_text()
    assert run("init", "model")[0] == 2
    assert run("init", "adapter", "--output", str(tmp_path / "no" / "file.py"))[0] == 2


def test_a_first_configuration_can_be_read_back(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text("from torch import nn\n\nclass Model(nn.Module):\n    pass\n")
    assert run("init", "config", "--output", "orderproof.toml") == (0, "written: orderproof.toml\n", "")
    found = find_configuration(tmp_path)
    assert found is not None
    assert {name: each.spec for name, each in found.subjects.items()} == {"Model": "model.py:Model"}
    code, _, err = run("init", "adapter", "model.py")
    assert (code, "expected no package with adapter" in err) == (2, True)
    assert run("init", "config", "absent")[0] == 2
