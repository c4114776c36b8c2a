"""One operator in a file, run by ONNX Runtime and by its translation, for each type of numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import ModelProto, helper

from orderproof.errors import SubjectError, first_line
from orderproof.models.onnx_file.entries import entries_of
from orderproof.models.onnx_file.module import OnnxModule
from tests.models.onnx_file.graphs import Array, model_of
from tests.models.onnx_file.sweep.draw import MICROSOFT, REAL, Call, Draw, Drawer, numpy_type

onnxruntime.set_default_logger_severity(4)
UNIT = {"float": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
OF_FLOAT = {  # their constants or sums have the type float, also in the runtime's kernels of double
    "Attention", "BatchNormalization", "FastGelu", "GroupNormalization", "QuickGelu", "RMSNormalization",
    "SimplifiedLayerNormalization",
}  # fmt: skip
UNITS = 128  # in the last place of the largest output: sums of some hundred products
MOST_COMBINATIONS = 40  # of types, beyond which one type variable at a time is varied
KINDS = (*REAL, *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "bool", "string")
DEFAULTS = ("float", "int64", "uint8", "int32", "bool")
SAME, REFUSED, NO_KERNEL, RUNTIME_FAILS, OTHER = "same", "refused", "no kernel", "the runtime fails", "differs"


@dataclass(frozen=True)
class Outcome:
    """What became of one call: its types, the sizes that were drawn, and why it was not the same."""

    result: str
    kinds: Mapping[str, str]
    version: int
    sizes: frozenset[int]
    reason: str = ""


def type_combinations(drawer: Drawer) -> list[dict[str, str]]:
    """Types of numbers by type variable: all combinations, or each variable with the others at a usual type."""
    types = drawer.types
    if types is None:
        schema = onnx.defs.get_schema(drawer.name, max(drawer.versions), drawer.domain)
        types = {
            entry.type_param_str: tuple(
                kind for text in sorted(entry.allowed_type_strs) if (kind := text[len("tensor(") : -1]) in KINDS
            )
            for entry in schema.type_constraints
        }
        types = {key: kinds for key, kinds in types.items() if kinds}
    if int(np.prod([len(kinds) for kinds in types.values()])) <= MOST_COMBINATIONS:
        return [dict(zip(types, kinds, strict=True)) for kinds in itertools.product(*types.values())]
    usual = {key: next((k for k in DEFAULTS if k in kinds), kinds[0]) for key, kinds in types.items()}
    varied = [{**usual, key: kind} for key, kinds in types.items() for kind in kinds]
    varied += [{**usual, **{key: kind for key, kinds in types.items() if kind in kinds}} for kind in REAL]
    return [kinds for k, kinds in enumerate(varied) if kinds not in varied[:k]]


def outcomes(drawer: Drawer, seeds: range) -> Iterator[Outcome]:
    """The outcomes of some calls for each combination of types; every second one may have empty axes."""
    for number, kinds in enumerate(type_combinations(drawer)):
        for seed in seeds:
            version = drawer.versions[seed // 2 % len(drawer.versions)]
            draw = Draw(seed * 1000 + number, drawer, kinds, version, empty=bool(seed % 2))
            found = outcome(drawer, draw, drawer.draw(draw))
            yield found
            if found.result == NO_KERNEL:
                break


def outcome(drawer: Drawer, draw: Draw, call: Call) -> Outcome:
    """What becomes of one call."""

    def of(result: str, reason: str = "") -> Outcome:
        return Outcome(result, draw.kinds, draw.version, frozenset(draw.sizes), reason)

    model, feeds = _file(drawer, call, draw.version)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:
        return of(NO_KERNEL, first_line(error))
    try:
        expected = session.run(None, feeds)
    except Exception as error:
        return of(RUNTIME_FAILS, first_line(error))
    try:
        entries_of(model, "file.onnx")
        found = OnnxModule(model, "file.onnx")(*map(torch.from_numpy, feeds.values()))
    except (SubjectError, RuntimeError) as error:  # an error of torch names the operator
        return of(REFUSED, first_line(error))
    except Exception as error:  # any other is a fault of the translation
        return of(OTHER, first_line(error))
    held = len(feeds) < sum(x is not None for x in call.arrays)
    unit = max((UNIT[kind] for kind in draw.kinds.values() if kind in UNIT), default=0.0)
    unit = max(unit, UNIT["float"] * (drawer.name in OF_FLOAT))
    for x, other in zip(found.values(), expected, strict=True):
        if reason := difference(x.numpy(), np.asarray(other), unit, stored=held):
            return of(OTHER, reason)
    return of(SAME)


def _file(drawer: Drawer, call: Call, version: int) -> tuple[ModelProto, dict[str, Array]]:
    """The file of a call and its inputs; those of bfloat16, which the runtime does not take, are cast in the file."""
    arrays = {f"x{k}": np.asarray(x) for k, x in enumerate(call.arrays) if x is not None}
    nodes = list(call.nodes)
    if not nodes:
        names = [f"x{k}" if f"x{k}" in arrays else "" for k in range(len(call.arrays))]
        while names and not names[-1]:
            names.pop()
        nodes = [
            helper.make_node(
                drawer.name, names, list(call.outputs), name="node", domain=drawer.domain, **call.attributes
            )
        ]
    stored = {name: x for name, x in arrays.items() if int(name[1:]) in call.stored}
    feeds = {name: x for name, x in arrays.items() if name not in stored}
    short = numpy_type("bfloat16")
    kinds = {}
    for name, x in list(feeds.items()):
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        if x.dtype == short:
            cast = helper.make_node("Cast", [f"wide_{name}"], [name], to=kind)
            nodes.insert(0, cast)
            feeds[f"wide_{name}"] = feeds.pop(name).astype(np.float32)
            kinds[f"wide_{name}"] = (int(onnx.TensorProto.FLOAT), x.shape)
        else:
            kinds[name] = (kind, x.shape)
    outputs = [name for name in call.outputs if name]
    if any(x.dtype == short for x in arrays.values()):
        nodes += [helper.make_node("Cast", [name], [f"wide_{name}"], to=1) for name in outputs]
        outputs = [f"wide_{name}" for name in outputs]
    feeds = {name: feeds[name] for name in kinds}
    model = model_of(nodes, kinds, outputs, stored, version)
    model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return model, feeds


def difference(x: Array, expected: Array, unit: float, *, stored: bool) -> str:
    """How an output differs by more than rounding; empty if it does not."""
    if x.shape != expected.shape:
        return f"shape {list(x.shape)}, where the runtime has {list(expected.shape)}"
    whole = expected.dtype.kind in "iub"
    if x.dtype != expected.dtype and not (stored and whole and x.dtype.kind in "iub"):
        return f"numbers of type {x.dtype}, where the runtime has {expected.dtype}"
    if whole:
        return "" if np.array_equal(x, expected) else f"{int((x != expected).sum())} of {x.size} integers"
    a, b = x.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "infinite numbers or NaN at other places"
    limit = UNITS * max(unit, float(np.finfo(x.dtype).eps)) * max(1.0, float(np.abs(b[finite]).max(initial=0)))
    apart = float(np.abs(a[finite] - b[finite]).max(initial=0))
    return f"{apart:.2g} apart" if apart > limit else ""
