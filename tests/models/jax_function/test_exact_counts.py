"""Counts in float32 that a program compares: done with integers, up to the size to which float32 holds them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.models.jax_function.program import JaxProgram
from orderproof.recording.open_sizes import OpenSizes

COUNTS: dict[str, Any] = {"shape": ["tokens"], "dtype": "float32"}
BOOLEANS: dict[str, Any] = {"shape": ["tokens"], "dtype": "bool"}


def entry(name: str, inputs: list[Any], output: int, aval: dict[str, Any] = COUNTS, **params: Any) -> dict[str, Any]:
    return {"name": name, "inputs": inputs, "outputs": [output], "params": params, "chain": 0, "avals": [aval]}


def number(value: float) -> list[Any]:
    return ["literal", value, "float32"]


def program(*entries: dict[str, Any]) -> JaxProgram:
    """A program of an input, variable 0, and equations, of which the last one is the result."""
    result = entries[-1]
    data = {
        "inputs": [0], "avals": [COUNTS], "equations": list(entries), "outputs": result["outputs"],
        "results": result["avals"], "chains": [[["model.py", "f", 5]]],
    }  # fmt: skip
    return JaxProgram({"program": data, "output_names": ["output"]}, {}, [["tokens"]], {})


IOTA = entry("iota", [], 1, dimension=0)


def output(found: JaxProgram, tokens: int) -> Tensor:
    result: Tensor = found([torch.zeros(tokens)], {"tokens": tokens}, torch.float32)["output"]
    return result


def test_counts_are_compared_as_integers_up_to_the_integers_of_float32() -> None:
    found = program(IOTA, entry("mul", [1, number(2.0)], 2), entry("sub", [2, number(3.0)], 3),
                    entry("ge", [3, 1], 4, BOOLEANS))  # fmt: skip
    assert [e.name for e in found.body.equations] == ["iota", "mul", "sub", "ge"]
    assert {e.dtypes[0] for e in found.body.equations} == {"int64", "bool"}
    assert found.limits == {"tokens": ((1 << 24) - 3) // 2}
    assert output(found, 6).tolist() == [False, False, False, True, True, True]


def test_a_longer_input_is_not_run_with_it() -> None:
    found = program(IOTA, entry("ge", [1, number(4.0)], 2, BOOLEANS))
    assert found.sizes_of([torch.zeros(1).expand(1 << 24)]) == {"tokens": 1 << 24}
    assert found.sizes_of([torch.zeros(1).expand((1 << 24) + 1)]) is None


@pytest.mark.parametrize(
    "entries",
    [
        [IOTA, entry("mul", [1, number(0.5)], 2), entry("ge", [2, 1], 3, BOOLEANS)],
        [IOTA, entry("add", [1, 0], 2), entry("ge", [2, 1], 3, BOOLEANS)],
        [IOTA, entry("mul", [1, 1], 2), entry("ge", [2, 1], 3, BOOLEANS)],
        [IOTA, entry("div", [1, number(2.0)], 2), entry("ge", [2, 1], 3, BOOLEANS)],
        [IOTA, entry("mul", [1, number(float(1 << 25))], 2), entry("ge", [2, 1], 3, BOOLEANS)],
        [IOTA, entry("add", [1, number(1.0)], 2)],
        [entry("iota", [], 1, {"shape": ["tokens"], "dtype": "float16"}, dimension=0),
         entry("ge", [1, number(4.0)], 3, BOOLEANS)],
    ],
    ids=["half", "data", "square", "quotient", "too_large", "no_comparison", "float16"],
)  # fmt: skip
def test_numbers_that_may_be_no_integers_are_compared_as_they_are(entries: list[dict[str, Any]]) -> None:
    found = program(*entries)
    assert found.limits == {}
    assert [e.name for e in found.body.equations] == [e["name"] for e in entries]
    assert all(e.dtypes != ("int64",) for e in found.body.equations)


def test_a_part_of_an_open_size_is_cut_off_and_fixes_it() -> None:
    number: dict[str, Any] = {"shape": [], "dtype": "float32"}
    whole: dict[str, Any] = {"shape": [], "dtype": "int32"}
    found = program(entry("dim_as_value", [], 1, whole, dim={"size": "tokens"}),
                    entry("convert_element_type", [1], 2, number, new_dtype="float32"),
                    entry("div", [2, ["literal", 2.0, "float32"]], 3, number),
                    entry("convert_element_type", [3], 4, whole, new_dtype="int32"),
                    entry("iota", [], 5, {"shape": ["tokens"], "dtype": "int32"}, dimension=0),
                    entry("lt", [5, 4], 6, BOOLEANS))  # fmt: skip
    tokens = OpenSizes({"tokens": 23}).symbols["tokens"]
    first = found([torch.zeros(23)], {"tokens": tokens}, torch.float32)["output"]
    assert int(first.sum()) == 11
