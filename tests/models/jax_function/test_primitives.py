"""Primitives of JAX, each compared with JAX on the same inputs; skipped without an interpreter that has jax."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from orderproof.errors import SubjectError, UsageError
from orderproof.models.jax_function.agreement import check_agreement
from orderproof.models.jax_function.load_function import subject_of
from orderproof.models.jax_function.module import JaxModule, traced
from orderproof.models.jax_function.process import JaxProcess
from orderproof.subject_spec import JAX_PYTHON_VARIABLE

FILE = Path(__file__).with_name("primitive_cases.py")
SUBJECTS = Path(__file__).with_name("subjects.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(JAX_PYTHON_VARIABLE not in os.environ, reason=f"{JAX_PYTHON_VARIABLE} names no Python with jax"),
]


@pytest.fixture(scope="module")
def process() -> Iterator[JaxProcess]:
    found = JaxProcess(os.environ[JAX_PYTHON_VARIABLE])
    yield found
    found.close()


def case_names() -> list[str]:
    """The keys of the table of cases: jax may be missing here, so that its file is read and not run."""
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    (table,) = (n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == "CASES")
    assert isinstance(table, ast.Dict)
    found = []
    for key, value in zip(table.keys, table.values, strict=True):
        if key is None:
            assert isinstance(value, ast.DictComp)
            prefix = "integer_" if "integer_" in ast.unparse(value.key) else ""
            found += [prefix + name for name in ast.literal_eval(value.generators[0].iter)]
        else:
            found.append(ast.literal_eval(key))
    return found


@pytest.mark.parametrize("name", case_names())
def test_a_translated_primitive_computes_what_jax_computes(process: JaxProcess, name: str) -> None:
    process.load(f"{FILE}:case_{name}")
    head, arrays = process.ask({"do": "describe"})
    inputs = [arrays[f"input {k}"] for k in range(len(head["inputs"]))]
    program = traced(process, [list(x.shape) for x in inputs], {}, has_weights=False)
    assert program.why_unreadable == ""
    model = JaxModule(process, {}, program)
    expected = process.call(inputs)
    check_agreement(name, model, inputs, expected)
    found = model(*inputs)
    assert found.keys() == expected.keys()
    for key, x in found.items():
        assert x.dtype is expected[key].dtype
        if not (x.is_floating_point() or x.is_complex()):
            assert torch.equal(x, expected[key])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("printing", "has effects .*subjects.py:"), ("raises", "ValueError: no such weights, subjects.py:"),
        ("asks_for_numbers", "TracerBoolConversionError: Attempted boolean conversion of traced array.*subjects.py:"),
        ("names_an_absent_device", "RuntimeError: Unknown backend: 'gpu' requested.*subjects.py:"),
    ],
)  # fmt: skip
def test_what_cannot_be_traced_is_one_line(process: JaxProcess, name: str, message: str) -> None:
    def load_and_trace() -> None:
        process.load(f"{SUBJECTS}:{name}")
        traced(process, [[2, 7, 8]], {}, has_weights=False)

    with pytest.raises(SubjectError, match=message) as caught:
        load_and_trace()
    assert "\n" not in str(caught.value)


def test_a_callback_is_not_proved_and_is_measured(process: JaxProcess) -> None:
    process.load(f"{SUBJECTS}:calls_back")
    subject = subject_of(process)
    assert any("pure_callback has no translation to torch, subjects.py:" in note for note in subject.notes)
    (x,) = subject.sample(5).inputs
    assert torch.equal(subject.module(x)["output"], 2 * x)


def test_a_process_that_is_killed_in_a_call_is_one_line(process: JaxProcess) -> None:
    found = JaxProcess(process.python)
    found.load(f"{SUBJECTS}:ends_the_process")
    with pytest.raises(SubjectError, match="the process of JAX was ended by SIGKILL; audit the model again") as caught:
        traced(found, [[2, 7, 8]], {}, has_weights=False)
    assert "\n" not in str(caught.value)
    assert not found.is_alive


def test_a_platform_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    with pytest.raises(UsageError, match="JAX finds no device of JAX_PLATFORMS=cuda; set it to cpu") as caught:
        JaxProcess(os.environ[JAX_PYTHON_VARIABLE])
    assert "\n" not in str(caught.value)
