"""Libraries in other interpreters: the same answers as in this process, and cells that say what went wrong."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from orderproof.conventions import find_functions, measure
from orderproof.conventions.library import Library, libraries
from orderproof.conventions.library_calls import InterpreterCalls, calls_of, functions_of
from orderproof.errors import UsageError
from orderproof.ports.engines.engine import EngineError
from orderproof.ports.engines.registry import engines
from tests.conventions.deviating import rotate

SIDE = """
import os, time
import numpy as np

PACKAGE = "numpy"
REQUIREMENTS = ("numpy==1.0",)
ARRAYS = "numpy"

def attend(query, key, value, **options):
    if "window" in options:
        time.sleep(60)
    if "sinks" in options:
        os.abort()
    if options.get("causal"):
        raise ValueError("no causal flags")
    print("words among the answers")
    scores = query.astype("float32") @ key.astype("float32").swapaxes(2, 3) / query.shape[-1] ** 0.5
    if "mask" in options:
        scores = np.where(options["mask"], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ value.astype("float32")

def functions():
    return {"attend": ("attention", "mask causal window sinks", "[row, head, token, width]", attend)}
"""


@pytest.fixture
def library(tmp_path: Path) -> Library:
    file = tmp_path / "fake_side.py"
    file.write_text(SIDE, encoding="utf-8")
    return Library("fake", file, "numpy", ("numpy==1.0",))


@pytest.mark.filterwarnings("ignore")
def test_a_cell_says_what_went_wrong_and_the_others_are_filled(library, monkeypatch):
    monkeypatch.setattr(sys.modules["orderproof.conventions.measure"], "LIMIT", 1.0)
    (function,) = functions_of(library, Path(sys.executable))
    found = measure([function]).functions[0].answers
    assert found["window"] == "not done after 1 s"
    assert found["sinks"] == "ends its process"
    assert found["causal_fewer_queries"] == "refused"
    assert found["soft_cap"] == "takes none"
    assert found["masked_row"] == "NaN"
    assert found["boolean_mask"] == "True is seen"
    assert found["narrow_scores"] == "kept wider until the softmax"
    assert function.version.startswith("numpy ")


def test_answers_do_not_depend_on_the_process():
    here, there = find_functions(["onnx.attention_23", f"onnx.attention_23:{sys.executable}"])
    assert there.name == f"onnx.attention_23@{libraries()['onnx'].version_here}"
    assert measure([here]).functions[0].answers == measure([there]).functions[0].answers


def test_arrays_of_each_dtype_arrive_as_they_were_sent(library):
    calls = InterpreterCalls(library, Path(sys.executable))
    (function,) = functions_of(library, None)
    query = torch.randn(1, 1, 3, 8, dtype=torch.bfloat16)
    mask = torch.tensor([[True, False, True]])
    from orderproof.conventions.library_calls import _called

    given = {"query": query, "key": query, "value": query, "mask": mask}
    assert torch.equal(_called(calls, "attend", given), function.attend(query, query, query, mask=mask))
    calls.stop()


def test_a_side_that_cannot_be_imported_is_named_in_one_line(tmp_path):
    file = tmp_path / "broken_side.py"
    file.write_text("import a_library_that_is_missing\n", encoding="utf-8")
    library = Library("broken", file, "numpy", ("numpy==1.0",))
    for python in (None, Path(sys.executable)):
        with pytest.raises(EngineError, match="broken cannot be imported") as raised:
            calls_of(library, python)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tvm", "tvm is not installed: pip install apache-tvm, or orderproof engines install tvm"),
        ("keras_jax", "keras_jax is not installed: orderproof engines install keras_jax"),
        ("onnx@1.2.3", "onnx@1.2.3 is not installed: orderproof engines install onnx-reference@1.2.3"),
        ("onnx:/no/such/python", "expected the interpreter of an environment with onnx; no file /no/such/python"),
        ("onnx.attention@1.2.3", "onnx@1.2.3 is not installed"),
    ],
)
def test_a_library_that_is_not_there_is_refused_in_one_line(name, message, monkeypatch, tmp_path):
    monkeypatch.setenv("ORDERPROOF_ENGINES", str(tmp_path))
    with pytest.raises(UsageError, match=message):
        find_functions([name])


def test_every_side_states_what_its_environment_needs():
    assert len(libraries()) >= 20
    for library in libraries().values():
        assert all("==" in each for each in library.requirements), library.name
        assert library.side.is_file()
    variants = [each for each in libraries().values() if each.variables]
    assert {"keras_jax", "keras_torch"} <= {each.name for each in variants}


def test_a_library_with_variables_never_runs_in_this_process():
    here = replace(libraries()["onnx"], variables={"A": "b"})
    assert here.interpreter == Path(sys.executable)
    assert libraries()["onnx"].interpreter is None


def test_no_environment_of_a_library_has_the_name_of_an_engine():
    names = [each.environment.name for each in libraries().values()]
    assert not set(names) & set(engines())
    assert len(set(names)) == len(names)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"scale": 0.3}, {"lengths": torch.tensor([3, 2])}])
def test_layers_of_ctranslate2_attend_as_the_formula_says(options):
    pytest.importorskip("ctranslate2")
    (function,) = find_functions(["ctranslate2.self_attention"])
    query, key, value = (torch.randn(2, heads, 3, 8) for heads in (4, 2, 2))
    scores = query @ key.repeat_interleave(2, 1).mT * options.get("scale", 8**-0.5)
    if "causal" in options:
        scores = scores.masked_fill(torch.ones(3, 3).triu(1).bool(), -torch.inf)
    if "lengths" in options:
        scores[1, :, :, 2] = -torch.inf
    expected = scores.softmax(-1) @ value.repeat_interleave(2, 1)
    found = function.attend(query, key, value, grouped=True, **options)
    real = torch.arange(3) < options.get("lengths", torch.tensor([3, 3]))[:, None]
    assert torch.allclose(found.transpose(1, 2)[real], expected.transpose(1, 2)[real], atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "halves"), [("rotary", True), ("rotary_interleaved", False)])
def test_rotations_of_ctranslate2_are_read_off_scores(name, halves):
    pytest.importorskip("ctranslate2")
    (function,) = find_functions([f"ctranslate2.{name}"])
    x, positions = torch.randn(2, 1, 4, 8) / 4, torch.tensor([2, 3, 4, 5])
    assert torch.allclose(function.rotate(x, positions), rotate(x, positions, halves=halves), atol=1e-4)
