"""Call functions of a library with arrays, in the process that asks or in the interpreter of another environment.

    python -I answering.py NAME_side.py     requests on standard input, answers on standard output, a line of JSON each

A side defines `functions()`: name -> (kind, options, axes, function), where the function takes arrays of the library,
in the axes that the questions have: queries, keys and values [row, head, token, width], or vectors [row, head, token,
width] and positions [token], or positions alone. It states literally, so that it can be read without the library:

    PACKAGE        that it imports
    REQUIREMENTS   of its environment, the library first
    VARIANTS       libraries that it is, each with variables of its process and more requirements; none: one, its name

and how numbers become arrays: `ARRAYS`, one of `KINDS`, or its own `array(numbers, dtype)` and `numbers(array)`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TENSORS = {"attention": ("query", "key", "value"), "rotation": ("x", "positions"), "positions": ("positions",)}
MAX_TEXT = 300  # characters of an error


class Numbers(NamedTuple):
    """Numbers of a dtype that numpy may not have: those of bfloat16 are given in float32."""

    values: Any
    dtype: str
    graded: bool = False  # gradients are asked for


# ------------------------------------------------------------ arrays of common kinds


def torch_array(given: Numbers) -> Any:
    """A tensor of numbers, with memory of its own."""
    import torch

    found = torch.from_numpy(np.array(given.values, order="C")).to(getattr(torch, given.dtype))
    return found.requires_grad_() if given.graded else found


def torch_numbers(found: Any) -> Numbers:
    """The numbers of a tensor."""
    import torch

    plain = found.detach()
    narrow = plain.dtype in (torch.bfloat16, torch.float16)
    numbers = (plain.float() if narrow else plain).contiguous().numpy()
    return Numbers(numbers, str(plain.dtype).removeprefix("torch."))


def _jax_array(given: Numbers) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(given.values, dtype=given.dtype)


def _compiled_by_jax(function: Any, tensors: list[Any], options: dict[str, Any]) -> Any:
    """The result of a function that JAX compiles as one program, as in a model; one by one, operators take longer.

    Programs of float32 are compiled without optimization, in half of the time. Those of narrower dtypes are compiled as
    a user compiles them: which operators are joined decides where their numbers are rounded.
    """
    import jax

    arrays = {name: x for name, x in options.items() if isinstance(x, jax.Array)}
    fixed = tuple(sorted((name, x) for name, x in options.items() if name not in arrays))
    return _program_of_jax(function, fixed, tensors[0].dtype.name)(*tensors, **arrays)


@cache
def _program_of_jax(function: Any, fixed: tuple[tuple[str, Any], ...], dtype: str) -> Any:
    import jax

    return jax.jit(partial(function, **dict(fixed)), **(_quick_options() if dtype == "float32" else {}))


@cache
def _quick_options() -> dict[str, Any]:
    """Options of `jax.jit` without optimization; none for a version that does not know them."""
    import jax

    options = {"compiler_options": {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0}}
    try:
        jax.jit(lambda x: x, **options)(0)
    except Exception:  # noqa: BLE001 - third-party code, which may refuse an option in any way
        return {}
    return options


def _numpy_array(given: Numbers) -> Any:
    if given.dtype != "bfloat16":
        return given.values.astype(given.dtype)
    import ml_dtypes

    return given.values.astype(ml_dtypes.bfloat16)


def _plain_numbers(found: Any) -> Numbers:
    plain = np.asarray(found)
    return Numbers(plain.astype(np.float32) if plain.dtype.name in ("bfloat16", "float16") else plain, plain.dtype.name)


KINDS = {
    "torch": (torch_array, torch_numbers),
    "jax": (_jax_array, _plain_numbers),
    "numpy": (_numpy_array, _plain_numbers),
}


# ------------------------------------------------------------ calls


class Side:
    """A side that was imported."""

    def __init__(self, file: Path) -> None:
        """Import it. Raises what its library raises."""
        module = _imported(file)
        kind: Any = KINDS.get(getattr(module, "ARRAYS", ""))
        own: Any = (getattr(module, "array", None), getattr(module, "numbers", None))
        self.array, self.numbers = own if kind is None else kind
        self.functions: dict[str, Any] = module.functions()
        self.version = _version(module.REQUIREMENTS[0])

    @property
    def described(self) -> dict[str, Any]:
        """Kind, options and axes of each function."""
        more = " gradients" if self.array is torch_array else ""
        return {name: [each[0], each[1] + more, each[2]] for name, each in self.functions.items()}

    def call(self, name: str, given: Mapping[str, Any]) -> Numbers:
        """The result of a function. Raises what it raises."""
        arguments = {key: self._argument(x) for key, x in given.items()}
        graded = any(isinstance(x, Numbers) and x.graded for x in given.values())
        torch = sys.modules.get("torch")
        with torch.set_grad_enabled(graded) if torch else nullcontext():
            return Numbers(*self.numbers(self._result(name, arguments)))

    def _result(self, name: str, arguments: dict[str, Any]) -> Any:
        kind, _, _, function = self.functions[name]
        tensors = [arguments.pop(each) for each in TENSORS[kind]]
        if kind == "attention" and type(tensors[0]).__module__.startswith("jax"):
            return _compiled_by_jax(function, tensors, arguments)
        return function(*tensors, **arguments)

    def _argument(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self._argument(x) for x in given]
        return self.array(given) if isinstance(given, Numbers) else given


def _imported(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"orderproof_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _version(requirement: str) -> str:
    distribution = requirement.partition("==")[0]
    return f"{distribution} {metadata.version(distribution)}"


# ------------------------------------------------------------ the program


def to_line(given: Any) -> Any:
    """An argument or a result in the form of JSON."""
    if isinstance(given, list):
        return [to_line(x) for x in given]
    if not isinstance(given, Numbers):
        return given
    values = np.asarray(given.values)
    return {
        "values": values.ravel().tolist(), "shape": values.shape, "plain": values.dtype.name, "dtype": given.dtype,
        "graded": given.graded,
    }  # fmt: skip


def of_line(line: Any) -> Any:
    """The argument or result of a line of JSON."""
    if isinstance(line, list):
        return [of_line(x) for x in line]
    if not isinstance(line, dict):
        return line
    return Numbers(np.array(line["values"], line["plain"]).reshape(line["shape"]), line["dtype"], line["graded"])


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:MAX_TEXT]


def main(file: str) -> None:
    """Answer requests; standard output belongs to the answers alone."""
    requests, answers = os.fdopen(os.dup(0), "r", encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(line: Mapping[str, Any]) -> None:
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    try:
        side = Side(Path(file))
    except BaseException as error:  # noqa: BLE001 - third-party code: it may raise anything, SystemExit too
        write({"failure": _error_text(error)})
        return
    write({"failure": "", "versions": {"": side.version}, "functions": side.described})
    for request in map(json.loads, requests):
        try:
            given = {key: of_line(x) for key, x in request["given"].items()}
            write({"failure": "", "found": to_line(side.call(request["function"], given))})
        except BaseException as error:  # noqa: BLE001 - the same
            write({"failure": _error_text(error)})


if __name__ == "__main__":
    main(sys.argv[1])
