"""The parts of a source package that its wheel lacks, through pip and without a network."""

from __future__ import annotations

import tarfile
from importlib import metadata
from pathlib import Path

import pytest

from orderproof.ports.engines.engine import EngineError
from orderproof.ports.engines.llama_cpp import ENGINE
from orderproof.ports.source_package import source_folder

BACKEND = """
import os

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    os.mkdir(folder + "/parted-1.5.dist-info")
    with open(folder + "/parted-1.5.dist-info/METADATA", "w") as file:
        file.write("Metadata-Version: 2.1\\nName: parted\\nVersion: 1.5\\n")
    return "parted-1.5.dist-info"
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of archives that pip reads in place of an index, and an empty cache folder."""
    links = tmp_path / "links"
    links.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(metadata, "version", lambda name: "1.5")
    return links


def test_parts_of_the_sources_are_unpacked_once(index: Path, tmp_path: Path) -> None:
    source = tmp_path / "parted-1.5"
    texts = {"backend.py": BACKEND, "pyproject.toml": PROJECT, "PKG-INFO": "Name: parted\nVersion: 1.5\n"}
    texts |= {"inner/tool.py": "tool", "inner/parts/a.py": "a", "inner/partsless.py": "no", "tool.py": "no"}
    for name, text in texts.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    with tarfile.open(index / "parted-1.5.tar.gz", "w:gz") as archive:
        archive.add(source, "parted-1.5")
    folder = source_folder("parted", "inner", ("tool.py", "parts"))
    assert folder == tmp_path / "cache" / "orderproof" / "parted-1.5"
    found = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.py")}
    assert found == {"tool.py": "tool", "parts/a.py": "a"}
    (index / "parted-1.5.tar.gz").unlink()
    assert source_folder("parted", "inner", ("tool.py",)) == folder


def test_a_source_package_that_is_not_there_is_one_line_with_what_to_do(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLAMA_CPP_CONVERTER", raising=False)
    with pytest.raises(
        EngineError, match="pip does not find the source package of llama_cpp_python: .*==1.5"
    ) as raised:
        ENGINE.prepare()
    assert str(raised.value).endswith("or set LLAMA_CPP_CONVERTER to the path of convert_hf_to_gguf.py")
    assert not list((index.parent / "cache").rglob("llama*"))
