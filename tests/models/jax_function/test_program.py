"""Programs of JAX that are written by hand: what they compute without jax."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.errors import CaptureError, SubjectError
from orderproof.models.jax_function.agreement import check_agreement
from orderproof.models.jax_function.module import JaxModule
from orderproof.models.jax_function.program import JaxProgram
from orderproof.models.jax_function.sizes import OpenSize
from orderproof.models.translation_rounding import gap, largest, unit


class NoProcess:
    """Takes the place of a process that nothing asks."""

    spec = "by hand"

    def __deepcopy__(self, memo: Any) -> NoProcess:
        return self


def aval(shape: list[int | str], dtype: str) -> dict[str, Any]:
    return {"shape": shape, "dtype": dtype}


def equation(name: str, inputs: list[Any], result: dict[str, Any], **params: Any) -> dict[str, Any]:
    return {"name": name, "inputs": inputs, "outputs": [9], "params": params, "chain": 0, "avals": [result]}


def one(entry: dict[str, Any], inputs: list[dict[str, Any]], shapes: list[list[int | str]]) -> JaxProgram:
    """A program of one equation on its inputs."""
    program = {
        "inputs": list(range(len(inputs))), "avals": inputs, "equations": [entry], "outputs": [9],
        "results": entry["avals"][-1:], "chains": [[["model.py", "f", 5]]],
    }  # fmt: skip
    return JaxProgram({"program": program, "output_names": ["output"]}, {}, shapes, {})


def result(entry: dict[str, Any], *values: Tensor) -> Tensor:
    """The result of one equation."""
    names = {torch.float32: "float32", torch.int32: "int32", torch.bool: "bool"}
    inputs = [aval(list(x.shape), names[x.dtype]) for x in values]
    program = one(entry, inputs, [list(x.shape) for x in values])
    found: dict[str, Tensor] = program(list(values), {}, torch.float32)
    return found["output"]


INTEGERS = torch.tensor([7, -7, 7, -7, 5], dtype=torch.int32)
DIVISORS = torch.tensor([2, 2, -2, -2, 0], dtype=torch.int32)


def test_integers_are_divided_to_zero_and_by_zero() -> None:
    entry = equation("div", [0, 1], aval([5], "int32"))
    assert result(entry, INTEGERS, DIVISORS).tolist() == [3, -3, -3, 3, -1]
    entry = equation("rem", [0, 1], aval([5], "int32"))
    assert result(entry, INTEGERS, DIVISORS).tolist() == [1, -1, 1, -1, 5]


def test_numbers_too_large_for_integers_become_the_largest() -> None:
    entry = equation("convert_element_type", [0], aval([4], "int32"), new_dtype="int32")
    x = torch.tensor([3e9, -3e9, float("nan"), -2.7])
    assert result(entry, x).tolist() == [2**31 - 1, -(2**31), 0, -2]


def test_a_slice_from_a_start_that_is_too_large_is_moved_inside() -> None:
    entry = equation("dynamic_slice", [0, 1], aval([2], "float32"), slice_sizes=[2])
    x = torch.arange(5.0)
    for start, expected in ((9, [3.0, 4.0]), (-4, [0.0, 1.0]), (2, [2.0, 3.0])):
        assert result(entry, x, torch.tensor(start, dtype=torch.int32)).tolist() == expected


TABLE = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0], "operand_batching_dims": [],
         "start_indices_batching_dims": []}  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "fill", "expected"), [("CLIP", None, [6.0, 0.0, 2.0]), ("FILL_OR_DROP", -1.0, [-1.0, -1.0, 2.0])]
)
def test_rows_past_a_table_are_clipped_or_filled(mode: str, fill: float | None, expected: list[float]) -> None:
    entry = equation("gather", [0, 1], aval([3, 2], "float32"), dimension_numbers=TABLE, slice_sizes=[1, 2], mode=mode,
                     fill_value=fill)  # fmt: skip
    index = torch.tensor([[9], [-9], [1]], dtype=torch.int32)
    assert result(entry, torch.arange(8.0).reshape(4, 2), index)[:, 0].tolist() == expected


def test_of_equal_numbers_the_first_comes_first() -> None:
    x = torch.tensor([2.0, 5.0, 5.0, 1.0])
    entry = {**equation("top_k", [0], aval([2], "float32"), k=2), "outputs": [8, 9],
             "avals": [aval([2], "float32"), aval([2], "int32")]}  # fmt: skip
    assert result(entry, x).tolist() == [1, 2]


def test_an_open_size_is_computed_from_those_of_the_inputs() -> None:
    known = {"rows": 3, "tokens": 7}
    texts = ("2*tokens + 1", "floordiv(tokens, 2)", "max(rows, tokens - 9)", "rows^2", "-1*rows + tokens")
    assert [OpenSize(text).value(known) for text in texts] == [15, 3, 3, 9, 4]
    with pytest.raises(SubjectError, match="the size 'f\\(rows\\)' of a program of JAX cannot be read"):
        OpenSize("f(rows)").value(known)


def test_the_last_place_asks_nothing_about_an_open_size() -> None:
    class Open:
        def __sub__(self, other: int) -> str:
            return f"tokens - {other}"

    assert OpenSize("mod(-1, tokens)").value({"tokens": Open()}) == "tokens - 1"
    assert OpenSize("mod(-1, tokens)").value({"tokens": 5}) == 4


def test_complex_numbers_differ_where_one_of_their_parts_does() -> None:
    x = torch.tensor([1 + 2j, complex(float("nan"), 1)])
    assert (gap(x, x), unit(x), largest(x)) == (0.0, torch.finfo(torch.float32).eps, 2.0)
    assert gap(x, x + 0.5j) == 0.5


def test_a_program_is_for_the_shapes_that_it_was_traced_for() -> None:
    entry = equation("tanh", [0], aval(["rows", "tokens", 4], "float32"))
    program = one(entry, [aval(["rows", "tokens", 4], "float32")], [["rows", "tokens", 4]])
    program.limits = {"tokens": 8}
    assert program.sizes_of([torch.ones(2, 5, 4)]) == {"rows": 2, "tokens": 5}
    assert [program.sizes_of([torch.ones(*s)]) for s in ((2, 5, 3), (2, 9, 4), (1, 5, 4), (5, 4))] == [None] * 4


def test_a_primitive_without_a_translation_is_named_with_its_line() -> None:
    program = one(equation("pallas_call", [0], aval([2], "float32")), [aval([2], "float32")], [[2]])
    with pytest.raises(CaptureError, match="JAX primitive pallas_call has no translation to torch, model.py:5"):
        program([torch.ones(2)], {}, torch.float32)


def test_a_translation_that_computes_something_else_is_refused() -> None:
    program = one(equation("exp", [0], aval([3], "float32")), [aval([3], "float32")], [[3]])
    model, x = JaxModule(NoProcess(), {}, program), torch.linspace(0, 1, 3)  # type: ignore[arg-type]
    check_agreement("by hand", model, [x], {"output": x.exp() * (1 + 1e-7)})
    with pytest.raises(SubjectError, match="another output 'output' than JAX"):
        check_agreement("by hand", model, [x], {"output": x.exp() * 1.0001})
    with pytest.raises(SubjectError, match=r"an output 'output' of shape \[3\], where JAX gives \[2\]"):
        check_agreement("by hand", model, [x], {"output": x[:2]})


def test_softmax_is_recognized_only_if_its_axis_is_that_of_its_maximum() -> None:
    def names(axis: int) -> list[str]:
        wide, short, kept = aval([3, 4], "float32"), aval([3], "float32"), aval([3, 1], "float32")
        if axis == 0:
            short, kept = aval([4], "float32"), aval([1, 4], "float32")
        where = [1 - axis]
        entries = [
            equation("reduce_max", [0], aval([3], "float32"), axes=[1]),
            equation("broadcast_in_dim", [1], aval([3, 1], "float32"), shape=[3, 1], broadcast_dimensions=[0]),
            equation("sub", [0, 2], wide), equation("exp", [3], wide),
            equation("reduce_sum", [4], short, axes=[axis]),
            equation("broadcast_in_dim", [5], kept, shape=kept["shape"], broadcast_dimensions=where),
            equation("div", [4, 6], wide),
        ]  # fmt: skip
        for number, entry in enumerate(entries, 1):
            entry["outputs"] = [number]
        program = {"inputs": [0], "avals": [wide], "equations": entries, "outputs": [7], "results": [wide],
                   "chains": [[]]}  # fmt: skip
        made = JaxProgram({"program": program, "output_names": ["output"]}, {}, [[3, 4]], {})
        x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
        found = made([x], {}, torch.float32)["output"]
        assert torch.allclose(found.sum(axis), torch.ones(found.shape[1 - axis]))
        return [e.name for e in made.body.equations]

    assert names(1) == ["softmax of equations"]
    assert len(names(0)) == 7
