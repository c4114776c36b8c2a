"""Sizes and values of the inputs of ONNX files: what is stated has its effect, and what does not fit is one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper

from orderproof import prove
from orderproof.errors import SubjectError, UsageError
from orderproof.models import load
from orderproof.models.example_file import read_example
from orderproof.subject_spec import Layout, parse_layout
from tests.models.onnx_file.graphs import model_of, windows_model


@pytest.fixture
def saved(tmp_path: Path) -> str:
    onnx.save(windows_model(), tmp_path / "windows.onnx")
    return str(tmp_path / "windows.onnx")


def test_a_file_that_needs_more_tokens_gets_them(saved: str) -> None:
    subject = load(saved)
    assert subject.default_length == 12
    assert "audited at 12 tokens, since a call with 7 fails" in subject.notes
    with pytest.raises(SubjectError, match=r"calling it with \(2, 9, 4\), \(2, 4\) raised"):
        load(saved, length=9)


def test_a_length_and_a_shape_have_their_effect(saved: str) -> None:
    assert load(saved, length=20).default_length == 20
    stated = load(saved, layout=Layout(shapes={"mel": (3, 17, 4)}))
    assert stated.default_length == 17
    assert [tuple(x.shape) for x in stated.sample(17, 0).inputs] == [(3, 17, 4), (3, 4)]
    assert prove(saved, "causal", shapes={"mel": (2, 13, 4)}).scope.length == 13
    assert prove(saved, "causal", length=19).scope.length == 19


def test_rows_of_an_output_with_fewer_entries_than_tokens_are_audited(saved: str) -> None:
    subject = load(saved, length=20)
    assert [role.name for role in subject.input_roles] == ["mel", "speaker"]
    assert prove(subject, "batch").verdict == "proved"


def test_an_example_file_gives_the_inputs_that_it_has(saved: str, tmp_path: Path) -> None:
    mel = np.random.default_rng(0).normal(50.0, 1.0, (1, 17, 4))  # float64, as numpy draws
    np.savez(tmp_path / "example.npz", mel=mel)
    for given in (
        {"layout": parse_layout(None, None, example=str(tmp_path / "example.npz"))},
        {"inputs": np.load(tmp_path / "example.npz")},
    ):
        subject = load(saved, **given)
        first, second = subject.sample(17, 0).inputs
        assert first.dtype is torch.float32
        assert float(first.mean()) > 40
        assert float(second.mean()) < 10


def test_an_example_file_of_one_array_is_one_line(tmp_path: Path) -> None:
    np.save(tmp_path / "example.npy", np.ones((2, 17, 4)))
    with pytest.raises(UsageError, match="has one array without a name"):
        read_example(tmp_path / "example.npy")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"layout": Layout(shapes={"mell": (2, 7, 4)})}, "expected the name of an input, .*; did you mean 'mel'"),
        ({"layout": Layout(shapes={"mel": (2, 17, 5)})}, r"of shape \[2, 17, 4\]; got \[2, 17, 5\]"),
        ({"layout": Layout(shapes={"mel": (2, 17)})}, r"of shape \[batch, time, 4\]; got \[2, 17\]"),
        (
            {"layout": Layout(shapes={"mel": (2, 17, 4), "speaker": (3, 4)})},
            r"expected input 'speaker' of shape \[2, 4\]; got \[3, 4\]",
        ),
        ({"inputs": {"mel": torch.ones(2, 17, 4, dtype=torch.complex64)}}, "expected input 'mel' of float32; got comp"),
        ({"layout": Layout(shapes={"mel": (2, 17, 4)}), "length": 19}, "expected one length; got 19, .* 17 tokens"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_file_is_one_line(saved: str, given: dict, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        load(saved, **given)


def test_a_fixed_length_admits_no_other(tmp_path: Path) -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"])
    onnx.save(model_of([node], {"x": (1, [2, 9, 4])}, ["y"], {"axis": np.array(1)}), tmp_path / "fixed.onnx")
    assert prove(str(tmp_path / "fixed.onnx"), "causal", length=9).scope.length == 9
    for length in (5, 12):
        with pytest.raises(UsageError, match="expected no other length than 9, which the file fixes for axis 1 of"):
            prove(str(tmp_path / "fixed.onnx"), "causal", length=length)


def test_a_length_without_tokens_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["image"], ["y"])
    path = tmp_path / "image.onnx"
    onnx.save(model_of([node], {"image": (1, ["n", 3, "height", "width"])}, ["y"]), path)
    with pytest.raises(UsageError, match="no axis of its inputs is known to run over tokens; state one with --token"):
        load(str(path), length=9)
    subject = load(str(path), layout=Layout(token_axis=3, shapes={"image": (1, 3, 8, 30)}))
    assert subject.default_length == 30


def test_shapes_are_those_of_a_file() -> None:
    with pytest.raises(UsageError, match="expected no shapes with a module, whose example inputs have them"):
        prove(torch.nn.Identity(), "causal", inputs=torch.randn(2, 7, 4), shapes={"x": (2, 7, 4)})
    with pytest.raises(UsageError, match=r"expected the shape of 'x' as \(2, 80, 320\)"):
        prove(torch.nn.Identity(), "causal", shapes={"x": 7})
