"""The process of JAX: what it is asked, and what it means if it does not answer."""

from __future__ import annotations

import io
import socket
import sys
from pathlib import Path

import pytest
import torch

from orderproof.cli import options
from orderproof.errors import SubjectError, UsageError
from orderproof.models import load
from orderproof.models.jax_function import load_function, process
from orderproof.models.jax_function.jax_side import orderproof_jax_server
from orderproof.models.jax_function.process import SERVER, JaxProcess, read_message, write_message
from orderproof.subject_spec import JAX_PYTHON_VARIABLE

ANSWERS_ONCE = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[2])
listener.listen(1)
listener.accept()[0].close()
sys.exit(0)
"""


def python_that(folder: Path, code: str) -> str:
    """A program that takes the place of an interpreter with jax."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.bool, torch.uint8])
def test_arrays_arrive_as_they_are_sent(dtype: torch.dtype) -> None:
    stream = io.BytesIO()
    sent = {"a": torch.arange(6).reshape(2, 3).to(dtype), "empty": torch.ones(0, 4), "number": torch.tensor(2.5)}
    write_message(stream, {"do": "call"}, {**sent, "turned": sent["a"].T})
    stream.seek(0)
    head, arrays = read_message(stream)
    assert head == {"do": "call"}
    assert torch.equal(arrays.pop("turned"), sent["a"].T)
    assert all(torch.equal(x, sent[name]) and x.dtype is sent[name].dtype for name, x in arrays.items())


def test_a_python_without_jax_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    code = "import sys; sys.exit(\"ModuleNotFoundError: No module named 'jax'\")"
    with pytest.raises(UsageError, match="it has no jax; .*pip install.*--jax-python") as caught:
        JaxProcess(python_that(tmp_path, code))
    assert "\n" not in str(caught.value)


def test_a_python_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be run .*ORDERPROOF_JAX_PYTHON"):
        JaxProcess(str(tmp_path / "no-python"))


def test_a_process_that_ends_is_one_line(tmp_path: Path) -> None:
    found = JaxProcess(python_that(tmp_path, ANSWERS_ONCE))
    with pytest.raises(SubjectError, match="the process of JAX has ended; audit the model again"):
        found.load("model.py:model")
    found.close()


def test_a_process_goes_on_after_one_who_asked_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jax.py").write_text("def devices(): pass\n", encoding="utf-8")  # its answers are errors
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = JaxProcess(sys.executable)
    for _ in range(2):
        with socket.socket(socket.AF_UNIX) as left:
            left.connect(found.address)
            write_message(left.makefile("wb"), {"do": "load", "spec": "model.py:model"}, {})
    with pytest.raises(SubjectError, match="model.py:model: ModuleNotFoundError"):
        found.load("model.py:model")
    found.close()


def test_the_reason_of_an_error_of_keras_is_its_second_line() -> None:
    text = "Exception encountered when calling Layer.call().\n\n\x1b[1mtoo long\x1b[0m\n\nArguments received by Layer:"
    assert orderproof_jax_server.error_text(ValueError(text)) == "ValueError: too long"
    assert orderproof_jax_server.error_text(ValueError("too long\nand more")) == "ValueError: too long"
    assert orderproof_jax_server.error_text(ValueError()) == "ValueError: ValueError"


def test_a_process_that_does_not_start_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "SECONDS_TO_START", 0.2)
    with pytest.raises(UsageError, match="importing jax took more than 0 s"):
        JaxProcess(python_that(tmp_path, "import time; time.sleep(60)"))


def test_without_jax_a_file_that_imports_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(JAX_PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(load_function.importlib.util, "find_spec", lambda name: None)
    path = tmp_path / "model.py"
    path.write_text("import jax\ndef model():\n    pass\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"needs Python with jax: pip install 'orderproof\[jax\]'"):
        load(f"{path}:model")


def test_the_option_names_the_python_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAX_PYTHON_VARIABLE, "another")
    options._set_jax_python(None)
    assert load_function.jax_python() == "another"
    options._set_jax_python(sys.executable)
    assert load_function.jax_python() == sys.executable
    with pytest.raises(UsageError, match="expected --jax-python to name a Python that can be run"):
        options._set_jax_python(str(tmp_path / "no-python"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import jax.numpy as jnp\n", True), ("from flax import nnx\n", True), ("import equinox as eqx\n", True),
        ("import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras\n", True), ("import torch\nimport jax\n", False),
        ("import torch\n", False), ("import keras\n", False), ("import jaxtyping\nimport torch\n", False),
    ],
)  # fmt: skip
def test_a_file_is_of_jax_if_it_imports_jax_and_not_torch(tmp_path: Path, text: str, expected: bool) -> None:
    path = tmp_path / "model.py"
    path.write_text(text, encoding="utf-8")
    assert load_function.is_of_jax(path) is expected


def test_the_side_of_jax_imports_nothing_of_orderproof_and_no_torch() -> None:
    for path in SERVER.parent.glob("orderproof_jax_*.py"):
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        imports = [line for line in lines if line.startswith(("import ", "from ")) and "orderproof_jax_" not in line]
        assert imports
        assert not any(line.split()[1].partition(".")[0] in ("orderproof", "torch") for line in imports)
