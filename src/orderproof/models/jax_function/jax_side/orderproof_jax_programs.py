"""A traced function as plain data: primitives with their parameters, and the lines of the user's code.

This file runs in the process of JAX: it imports nothing of orderproof. Functions that JAX calls within a program (jit,
custom derivatives, remat) are written in its place; bodies of loops and branches stay programs of their own.
"""

from __future__ import annotations

import enum
import itertools
from typing import Any

import jax
import numpy as np
from jax._src import source_info_util
from jax.extend import core
from orderproof_jax_sizes import is_open

CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters with the program of a call that is written in its place
CALLS = {
    "jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
    "custom_vjp_call_jaxpr", "custom_lin", "run_state", "xla_call",
}  # fmt: skip
MAX_VALUES = 1 << 24  # of a constant that random numbers give
LIBRARIES = ("jax", "flax", "equinox", "haiku", "keras", "optax", "jaxtyping", "einops", "penzai")
OWN = str(__file__).replace("programs.py", "")

Frame = tuple[str, str, int]


class Untraceable(Exception):
    """A program that cannot be written down; the message says why."""


class Writer:
    """Writes one traced program: `program` is plain data, `constants` has its arrays by name."""

    def __init__(self, closed: Any) -> None:
        self.ids = itertools.count()
        self.constants: dict[str, np.ndarray] = {}
        self.held: dict[int, tuple[str, Any]] = {}  # by id of an array: its name, and the array
        self.chains: dict[tuple[Frame, ...], int] = {}
        if closed.effects:
            kinds = ", ".join(sorted({type(e).__name__ for e in closed.effects}))
            raise Untraceable(f"it has effects ({kinds}) such as printing or callbacks{_effect_line(closed.jaxpr)}")
        self.program = self._program(closed, ())
        self.program["chains"] = [list(map(list, chain)) for chain in self.chains]

    # ------------------------------------------------------------ programs

    def _program(self, closed: Any, outer: tuple[Frame, ...]) -> dict[str, Any]:
        jaxpr = closed.jaxpr
        known: dict[Any, Any] = {}
        self._hold_constants(closed, known)
        names = []
        for variable in jaxpr.invars:
            known[variable] = next(self.ids)
            names.append(known[variable])
        equations: list[dict[str, Any]] = []
        self._write(jaxpr, known, outer, equations)
        return {
            "inputs": names,
            "avals": [_aval(v.aval) for v in jaxpr.invars],
            "equations": equations,
            "outputs": [self._atom(x, known) for x in jaxpr.outvars],
            "results": [_aval(x.aval) for x in jaxpr.outvars],
        }

    def _hold_constants(self, closed: Any, known: dict[Any, Any]) -> None:
        for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            known[variable] = _Known(value)

    def _write(
        self, jaxpr: Any, known: dict[Any, Any], outer: tuple[Frame, ...], found: list[Any], info: Any = None
    ) -> None:
        for equation in jaxpr.eqns:
            chain = _frames(equation, info or jaxpr.debug_info, outer)
            name = equation.primitive.name
            inner = next((equation.params[key] for key in CALLED if key in equation.params), None)
            if name in CALLS and inner is not None:
                closed = inner if hasattr(inner, "jaxpr") else core.ClosedJaxpr(inner, ())
                self._inline(equation, closed, known, chain, found)
            elif name == "scan" and equation.params["num_carry"] == 0:
                body = equation.params["jaxpr"].jaxpr.debug_info
                self._inline(equation, _as_map(equation), known, chain, found, info=body)
            elif not self._computed(equation, known):
                found.append(self._equation(equation, name, known, chain))

    def _inline(
        self, equation: Any, closed: Any, known: dict[Any, Any], chain: Any, found: list[Any], info: Any = None
    ) -> None:
        within: dict[Any, Any] = {}
        self._hold_constants(closed, within)
        within |= {
            v: known[x] if not isinstance(x, core.Literal) else x
            for v, x in zip(closed.jaxpr.invars, equation.invars, strict=True)
        }
        self._write(closed.jaxpr, within, chain, found, info)
        for variable, x in zip(equation.outvars, closed.jaxpr.outvars, strict=True):
            known[variable] = x if isinstance(x, core.Literal) else within[x]

    def _computed(self, equation: Any, known: dict[Any, Any]) -> bool:
        """Compute what follows from random keys and counts alone, which JAX alone draws as it does.

        Single integers that follow from literals, such as the limits of `randint`, are computed too.
        """
        values = [_value(x, known) for x in equation.invars]
        avals = [v.aval for v in equation.outvars]
        is_random = equation.primitive.name.startswith(("random_", "threefry")) or any(
            isinstance(v, _Known) and v.random for v in values
        )
        is_random = is_random or any(str(aval.dtype) == "uint32" for aval in avals)  # counts of drawn keys
        if any(v is None for v in values) or not (is_random or (values and all(map(_is_one_integer, avals)))):
            return False
        if any(not isinstance(n, int) for aval in avals for n in getattr(aval, "shape", ())):
            return False
        if sum(int(np.prod(aval.shape)) for aval in avals) > MAX_VALUES:
            return False
        plain = [v.value if isinstance(v, _Known) else v for v in values]
        result = equation.primitive.bind(*plain, **equation.params)
        results = result if equation.primitive.multiple_results else [result]
        for v, x in zip(equation.outvars, results, strict=True):
            known[v] = _Known(x, random=True) if is_random else core.Literal(np.asarray(x), v.aval)
        return True

    # ------------------------------------------------------------ equations

    def _equation(self, equation: Any, name: str, known: dict[Any, Any], chain: tuple[Frame, ...]) -> dict[str, Any]:
        inputs = [self._atom(x, known) for x in equation.invars]
        params = {key: self._parameter(value, chain) for key, value in equation.params.items()}
        outputs = []
        for variable in equation.outvars:
            known[variable] = next(self.ids)
            outputs.append(known[variable])
        place = self.chains.setdefault(chain, len(self.chains))
        return {
            "name": name, "inputs": inputs, "outputs": outputs, "params": params, "chain": place,
            "avals": [_aval(v.aval) for v in equation.outvars],
        }  # fmt: skip

    def _atom(self, x: Any, known: dict[Any, Any]) -> Any:
        """The number of a variable, `["literal", value, dtype]` or `["constant", name, dtype]`."""
        found = x if isinstance(x, core.Literal) else known[x]
        if isinstance(found, core.Literal):
            if np.ndim(found.val) == 0 and found.aval.dtype.kind != "c":
                return ["literal", np.asarray(found.val).astype(_plain(found.aval.dtype)).item(), str(found.aval.dtype)]
            found = _Known(np.asarray(found.val, found.aval.dtype))
        return ["constant", self._hold(found.value), str(found.value.dtype)] if isinstance(found, _Known) else found

    def _hold(self, value: Any) -> str:
        if id(value) not in self.held:
            name = f"constant{len(self.held)}"
            if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
                value = jax.random.key_data(value)
            self.held[id(value)] = (name, value)
            self.constants[name] = np.asarray(value)
            return name
        return self.held[id(value)][0]

    def _parameter(self, value: Any, chain: tuple[Frame, ...]) -> Any:
        if hasattr(value, "eqns"):
            value = core.ClosedJaxpr(value, ())
        if hasattr(value, "jaxpr") and hasattr(value, "consts"):
            return {"program": self._program(value, chain)}
        if isinstance(value, tuple | list):
            fields = getattr(value, "_fields", None)
            if fields:
                return {f: self._parameter(getattr(value, f), chain) for f in fields}
            return [self._parameter(x, chain) for x in value]
        if isinstance(value, enum.Enum):
            return value.name
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.integer | np.bool_ | np.floating):
            return value.item()
        if isinstance(value, np.dtype) or hasattr(value, "dtype"):
            return str(value)
        if is_open(value):
            return {"size": str(value)}
        fields = getattr(value, "__dataclass_fields__", None)
        if fields:
            return {f: self._parameter(getattr(value, f), chain) for f in fields}
        return str(value)


def _as_map(scan: Any) -> Any:
    """The program of a scan that hands nothing on: its body for all entries at once."""
    body, consts = scan.params["jaxpr"], scan.params["num_consts"]
    places = [None] * consts + [0] * (len(scan.invars) - consts)
    function = jax.vmap(core.jaxpr_as_fun(body), in_axes=places)
    return jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in scan.invars))


class _Known:
    """An array whose values are known while a program is written."""

    def __init__(self, value: Any, *, random: bool = False) -> None:
        self.value = value
        keys = hasattr(value, "dtype") and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
        self.random = random or bool(keys)


def _value(x: Any, known: dict[Any, Any]) -> Any:
    """The literal or known array of an atom; None for another."""
    found = x if isinstance(x, core.Literal) else known[x]
    if isinstance(found, core.Literal):
        return found.val
    return found if isinstance(found, _Known) else None


def _is_one_integer(aval: Any) -> bool:
    is_one = not any(is_open(n) or n != 1 for n in aval.shape)
    return is_one and getattr(aval.dtype, "kind", "") in ("i", "u", "b")


def _aval(aval: Any) -> dict[str, Any]:
    return {"shape": [n if isinstance(n, int) else str(n) for n in getattr(aval, "shape", ())],
            "dtype": str(getattr(aval, "dtype", "token"))}  # fmt: skip


def _plain(dtype: Any) -> Any:
    """A dtype of numpy's own that holds the values of a dtype."""
    return np.float32 if str(dtype) in ("bfloat16", "float16") or str(dtype).startswith("float8") else dtype


# ---------------------------------------------------------------- lines


def _frames(equation: Any, info: Any, outer: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The lines of the user for an equation, outermost first.

    JAX keeps the program of a function that it calls, with the lines of the first call. So of an equation within such
    a function only the lines of this function and of what it calls count; those around it are of the call at hand.
    """
    own = []
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        if frame.file_name.startswith(OWN):
            break
        own.append((frame.file_name, frame.function_name, frame.start_line))
    if outer:
        last = max((k for k, f in enumerate(own) if f[0] == info.func_filename and _is_function(f[1], info.func_name)),
                   default=-1)  # fmt: skip
        own = own[: last + 1]
    frames = (*outer, *reversed(own))
    return tuple(f for f in frames if not _is_of_library(f[0])) or frames


def _is_of_library(file: str) -> bool:
    """True of a file of a library that models are written with: the line of its caller says more."""
    return any(f"/site-packages/{name}/" in file for name in LIBRARIES)


def _is_function(frame: str, name: str | None) -> bool:
    return name is not None and frame.rpartition(".")[2] == name.rpartition(".")[2]


def _effect_line(jaxpr: Any) -> str:
    for equation in jaxpr.eqns:
        if equation.effects:
            frame = next(iter(source_info_util.user_frames(equation.source_info.traceback)), None)
            return f", {frame.file_name.rpartition('/')[2]}:{frame.start_line}" if frame else ""
    return ""
