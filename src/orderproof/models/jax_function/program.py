"""A program of JAX: equations that are run with operators of torch, each at the lines of the user's code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import CaptureError
from orderproof.models.jax_function.equation import Atom, Equation
from orderproof.models.jax_function.exact_counts import with_exact_counts
from orderproof.models.jax_function.lines import Frame, Lines
from orderproof.models.jax_function.primitive import Primitive, Value, functions, resolved
from orderproof.models.jax_function.process import DTYPES
from orderproof.models.jax_function.sizes import LEAST, Known, OpenSize, has_open_sizes, read_sizes
from orderproof.models.jax_function.softmax import with_softmax
from orderproof.models.stored_weights import is_weight

_LINES = Lines()


@dataclass(frozen=True)
class Run:
    """The values that the equations of one call share."""

    constants: Mapping[str, Tensor]
    known: Known
    real: torch.dtype


class Body:
    """A program without its constants: that of a model, of a turn of a loop, or of a branch."""

    def __init__(self, data: Mapping[str, Any], chains: Sequence[tuple[Frame, ...]], outer: Mapping[int, str]) -> None:
        self.inputs = tuple(data["inputs"])
        self.input_shapes = tuple(tuple(aval["shape"]) for aval in data["avals"])
        dtypes = {**outer, **{v: aval["dtype"] for v, aval in zip(self.inputs, data["avals"], strict=True)}}
        self.equations: list[Equation] = []
        for entry in data["equations"]:
            self.equations.append(_equation(entry, chains, dtypes))
            dtypes |= {v: aval["dtype"] for v, aval in zip(entry["outputs"], entry["avals"], strict=True)}
        self.outputs = tuple(map(_atom, data["outputs"]))
        self.equations = with_softmax(self.equations, self.outputs)
        self.equations, limits = with_exact_counts(self.equations, self.outputs)
        inner = (body.limits for e in self.equations for body in _bodies(e.params))
        self.limits: dict[str, int] = least([limits, *inner])
        self.result_dtypes = tuple(aval["dtype"] for aval in data["results"])

    @property
    def unknown(self) -> list[Equation]:
        """Equations without a function, in the programs among their parameters too."""
        found = [e for e in self.equations if e.function is None]
        return found + [u for e in self.equations for body in _bodies(e.params) for u in body.unknown]

    def run(self, run: Run, inputs: Sequence[Value]) -> list[Value]:
        """The results."""
        values = dict(zip(self.inputs, inputs, strict=True))

        def value(atom: int | Atom) -> Value:
            if isinstance(atom, int):
                return values[atom]
            return _constant(run, atom.constant) if atom.constant else atom.number

        for equation in self.equations:
            call = Primitive(
                equation.name, tuple(map(value, equation.inputs)), equation.input_dtypes,
                resolved(equation.params, equation.open_params, run.known), equation.shapes, equation.dtypes,
                run.real, run.known, partial(_run_body, run),
            )  # fmt: skip
            assert equation.function is not None  # `JaxProgram` refused to run
            found = _LINES.call(equation.frames, partial(equation.function, call))
            if isinstance(found, Tensor) or not isinstance(found, list | tuple):
                found = [found]
            values |= zip(equation.outputs, found, strict=True)
        return [value(atom) for atom in self.outputs]

    def filled_tables(self, inputs: int) -> list[int]:
        """The sizes of tables that are read at indices of sizes alone, and give NaN past their end.

        `inputs`: the number of inputs of the model, which come last; what is computed from them is not of sizes alone.
        """
        of_inputs = set(self.inputs[len(self.inputs) - inputs :])
        shapes: dict[Any, Sequence[Any]] = dict(zip(self.inputs, self.input_shapes, strict=True))
        found: set[int] = set()
        for e in self.equations:
            shapes.update(zip(e.outputs, e.shapes, strict=True))
            if not of_inputs.isdisjoint(x for x in e.inputs if isinstance(x, int)):
                of_inputs.update(e.outputs)
            elif e.name == "gather" and "FILL" in str(e.params["mode"]):
                table = shapes.get(e.inputs[0], ())
                places = e.params["dimension_numbers"]["start_index_map"]
                found |= {n for d, n in enumerate(table) if d in places and isinstance(n, int)}
        return sorted(found)

    def step_of(self, place: int, result: int) -> int | None:
        """The constant that is added to an input to give a result; None if the result is another one."""
        for e in self.equations:
            if e.name == "add" and self.outputs[result] in e.outputs and self.inputs[place] in e.inputs:
                steps = [x.number for x in e.inputs if isinstance(x, Atom) and type(x.number) is int]
                return steps[0] if steps else None
        return None

    def keeps(self, place: int, result: int) -> bool:
        """True if a result is an input."""
        return bool(self.outputs[result] == self.inputs[place])

    def bound_of(self, values: Sequence[Value]) -> tuple[int, Any] | None:
        """For a program that only asks whether an input is less than a number: the input and the number."""
        if len(self.equations) != 1 or self.equations[0].name != "lt" or self.outputs != self.equations[0].outputs:
            return None
        left, right = self.equations[0].inputs
        if left not in self.inputs:
            return None
        bound = right.number if isinstance(right, Atom) else values[self.inputs.index(right)]
        first = values[self.inputs.index(left)]
        if isinstance(bound, Tensor) or bound is None or isinstance(first, Tensor):
            return None
        return self.inputs.index(left), bound


def least(limits: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The least limit of each open size."""
    names = {name for each in limits for name in each}
    return {name: min(each[name] for each in limits if name in each) for name in sorted(names)}


def _run_body(run: Run, body: Body, inputs: Sequence[Value]) -> list[Value]:
    return body.run(run, inputs)


def _constant(run: Run, name: str) -> Tensor:
    found = run.constants[name]
    if found.dtype is torch.complex64 and run.real is torch.float64:
        return found.to(torch.complex128)
    return found.to(run.real) if found.dtype is torch.float32 and run.real is not torch.float32 else found


def _bodies(params: Any) -> list[Body]:
    if isinstance(params, Body):
        return [params]
    values = params.values() if isinstance(params, Mapping) else params if isinstance(params, list) else ()
    return [body for value in values for body in _bodies(value)]


def _atom(data: Any) -> int | Atom:
    if isinstance(data, int):
        return data
    return Atom(number=data[1]) if data[0] == "literal" else Atom(constant=data[1])


def _equation(data: Mapping[str, Any], chains: Sequence[tuple[Frame, ...]], dtypes: Mapping[int, str]) -> Equation:
    params = {key: _with_bodies(read_sizes(value), chains, dtypes) for key, value in data["params"].items()}
    return Equation(
        name=data["name"],
        inputs=tuple(map(_atom, data["inputs"])),
        input_dtypes=tuple(dtypes[x] if isinstance(x, int) else x[2] for x in data["inputs"]),
        outputs=tuple(data["outputs"]),
        params=params,
        open_params=tuple(key for key, value in params.items() if has_open_sizes(value)),
        shapes=tuple(tuple(OpenSize(n) if isinstance(n, str) else n for n in a["shape"]) for a in data["avals"]),
        dtypes=tuple(aval["dtype"] for aval in data["avals"]),
        frames=chains[data["chain"]],
        function=functions().get(data["name"]),
    )


def _with_bodies(value: Any, chains: Sequence[tuple[Frame, ...]], dtypes: Mapping[int, str]) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"program"}:
            return Body(value["program"], chains, dtypes)
        return {key: _with_bodies(x, chains, dtypes) for key, x in value.items()}
    return [_with_bodies(x, chains, dtypes) for x in value] if isinstance(value, list) else value


class JaxProgram(nn.Module):
    """A traced program with its constants.

    Args:
        data: The program as the process of JAX writes it.
        constants: Its arrays by name.
        shapes: The shapes of the inputs; a text is an open size.
        limits: The largest number of each open size that has a limit.
        has_weights: Floating-point arrays among the constants may count as weights: the model names none.

    """

    def __init__(
        self, data: Mapping[str, Any], constants: Mapping[str, Tensor], shapes: Sequence[Sequence[int | str]],
        limits: Mapping[str, int], *, has_weights: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        chains = [tuple((f[0], f[1], f[2]) for f in chain) for chain in data["program"]["chains"]]
        self.body = Body(data["program"], chains, {})
        self.output_names = tuple(data["output_names"])
        self.shapes = tuple(map(tuple, shapes))
        self.limits = least([limits, self.body.limits])
        self.names = tuple(constants)
        for name, value in constants.items():
            if has_weights and is_weight(value):
                self.register_parameter(name, nn.Parameter(value, requires_grad=False))
            else:
                self.register_buffer(name, value)

    def sizes_of(self, inputs: Sequence[Tensor]) -> dict[str, Any] | None:
        """The open sizes of inputs; None if the program is not for their shapes."""
        known: dict[str, Any] = {}
        for x, shape in zip(inputs, self.shapes, strict=True):
            if x.ndim != len(shape):
                return None
            for n, size in zip(x.shape, shape, strict=True):
                expected = known.setdefault(size, n) if isinstance(size, str) else size
                if expected is not n and expected != n:
                    return None
        if any(n < LEAST or n > self.limits.get(name, n) for name, n in known.items()):
            return None
        return known

    @property
    def why_unreadable(self) -> str:
        """Why it cannot run with operators of torch; empty if it can."""
        unknown = self.body.unknown
        return f"JAX primitive {unknown[0].name} has no translation to torch{unknown[0].line}" if unknown else ""

    def forward(self, inputs: Sequence[Tensor], known: Known, real: torch.dtype) -> dict[str, Tensor]:
        """The outputs by name. Raises `CaptureError` if a primitive has no translation."""
        if reason := self.why_unreadable:
            raise CaptureError(reason)
        constants = {name: getattr(self, name) for name in self.names}
        found = self.body.run(Run(constants, known, real), inputs)
        dtypes = zip(self.output_names, found, self.body.result_dtypes, strict=True)
        return {n: x if isinstance(x, Tensor) else torch.full((), x, dtype=DTYPES[d]) for n, x, d in dtypes}
