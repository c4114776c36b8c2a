"""Programs that torch.export saved: audited as the module, and refused if the archive holds a pickle."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import CheckpointError, SubjectError
from orderproof.models import load


class Encoder(nn.Module):
    """Attention with a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.head = nn.Embedding(50, 8), nn.Linear(8, 8)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.words(input_ids)
        scores = (x @ x.mT).masked_fill(attention_mask[:, None] == 0, -1e9)
        return self.head(scores.softmax(-1) @ x)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "encoder.pt2"
    rows, tokens = torch.export.Dim("rows"), torch.export.Dim("tokens")
    given = (torch.randint(50, (2, 7)), torch.ones(2, 7, dtype=torch.long))
    sizes = ({0: rows, 1: tokens}, {0: rows, 1: tokens})
    torch.export.save(torch.export.export(Encoder().eval(), given, dynamic_shapes=sizes), path)
    return path


def rewritten(source: Path, path: Path, change: Callable[[str, bytes], bytes]) -> str:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return str(path)


@pytest.mark.filterwarnings("ignore")
def test_a_saved_program_is_audited_with_its_mask(saved: Path) -> None:
    subject = load(str(saved), assume={"model_kind": "encoder"})
    assert subject.name == "encoder.pt2"
    found = {f.law: f for f in audit(subject, laws=("padding", "batch")).findings}
    assert {f.verdict for f in found.values()} == {"proved"}
    assert found["padding"].theorem.proved


@pytest.mark.filterwarnings("ignore")
def test_lines_are_those_of_the_exported_module(saved: Path) -> None:
    subject = load(str(saved), assume={"model_kind": "causal_lm"})
    (found,) = audit(subject, laws=["causal"]).findings
    assert found.verdict == "refuted"
    assert "test_program_file.py:" in found.fix_source
    assert "masked_fill" in found.fix_line or "softmax" in found.fix_line


@pytest.mark.filterwarnings("ignore")
def test_a_program_names_no_file_that_is_not_code(saved: Path, tmp_path: Path) -> None:
    def other_file(name: str, data: bytes) -> bytes:
        return data.replace(b"test_program_file.py", b"secret.txt") if name.endswith("model.json") else data

    subject = load(rewritten(saved, tmp_path / "other.pt2", other_file), assume={"model_kind": "causal_lm"})
    (found,) = audit(subject, laws=["causal"]).findings
    assert found.verdict == "refuted"
    assert "secret" not in found.fix_source


def test_an_archive_with_a_pickle_is_not_opened(saved: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"

    class Runs:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (opened,)

    def sample(name: str, content: bytes) -> bytes:
        return pickle.dumps(Runs()) if "sample_inputs" in name else content

    def weight(name: str, content: bytes) -> bytes:
        if not name.endswith("model_weights_config.json"):
            return content
        config = json.loads(content)
        config["config"]["words.weight"]["use_pickle"] = True
        return json.dumps(config).encode()

    for change, what in ((sample, "its sample inputs is"), (weight, "words.weight is")):
        path = rewritten(saved, tmp_path / "changed.pt2", change)
        with pytest.raises(SubjectError, match=f"{what} stored as a pickle, which can run code"):
            load(path)
    assert not opened.exists()


def test_what_is_no_program_is_one_line(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.pt2").write_bytes(b"no archive")
    with pytest.raises(SubjectError, match="cannot be read as an archive of torch.export"):
        load(str(tmp_path / "damaged.pt2"))
    with zipfile.ZipFile(tmp_path / "other.pt2", "w") as archive:
        archive.writestr("a/b", "c")
    with pytest.raises(SubjectError, match="expected an archive of torch.export"):
        load(str(tmp_path / "other.pt2"))
    with pytest.raises(CheckpointError, match="no such file"):
        load(str(tmp_path / "missing.pt2"))
