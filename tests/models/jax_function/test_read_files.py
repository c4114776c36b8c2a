"""The files that the process of JAX reads count as read by the audit, so that a kept report follows them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from orderproof.configuration.read_files import followed_reads
from orderproof.models.jax_function.process import SERVER, JaxProcess

READS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import orderproof_jax_server
files = orderproof_jax_server.ReadFiles()
sys.path.insert(0, sys.argv[2])
import layers
open(sys.argv[2] + "/table.txt").close()
open(sys.argv[2] + "/written.txt", "w").close()
print(json.dumps(files.found()))
"""


def test_modules_and_data_of_the_user_are_found_and_the_versions_of_packages(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("import json\n")
    (tmp_path / "table.txt").write_text("1")
    (tmp_path / "jax-0.10.2.dist-info").mkdir()
    (tmp_path / "jax-0.10.2.dist-info" / "METADATA").write_text("Name: jax")
    for _ in range(2):  # from the source, and compiled
        command = [sys.executable, "-c", READS, str(SERVER.parent), str(tmp_path)]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert set(found["own"]) == {str(tmp_path / "layers.py"), str(tmp_path / "table.txt")}
        assert str(tmp_path / "jax-0.10.2.dist-info" / "METADATA") in found["versions"]


class Answering(JaxProcess):
    """A process that is not there, and names its files."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found

    def ask(self, head: Any, arrays: Any = None) -> Any:
        assert head == {"do": "files"}
        return self.found, {}


def test_the_audit_has_read_what_the_process_read(tmp_path: Path) -> None:
    own, version = tmp_path / "layers.py", tmp_path / "jax-0.10.2.dist-info" / "METADATA"
    with followed_reads() as read:
        Answering({"own": [str(own)], "versions": [str(version)]}).announce_files()
        assert {own, version} <= read.paths()
