"""Sequences, optional values, conditions and loops: several nodes, whose numbers have one type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper

from tests.models.onnx_file.sweep.draw import Call, Draw, drawn

ANY = (
    "float", "double", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bool", "string",
)  # fmt: skip
node = helper.make_node


def _graph(draw: Draw, nodes: Sequence[NodeProto], inputs: dict[str, str], outputs: dict[str, str]) -> GraphProto:
    """A branch or a body; inputs and outputs have a type or a type variable."""

    def entries(named: dict[str, str]) -> list[object]:
        kinds = {name: TensorProto.DataType.Value(draw.kinds.get(of, of).upper()) for name, of in named.items()}
        return [
            helper.make_tensor_value_info(name, kind, [] if name in ("turn", "go") else None)
            for name, kind in kinds.items()
        ]

    return helper.make_graph(list(nodes), "inner", entries(inputs), entries(outputs))


@drawn(
    "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength",
    "SequenceMap", "ConcatFromSequence", types={"T": ANY},
)  # fmt: skip
def sequence(draw: Draw) -> Call:
    """Three tensors in a sequence that is changed and read."""
    shape = draw.shape(1, 2)
    arrays = [*(draw.tensor(*shape) for _ in range(3)), np.array(draw.number(-2, 1)), np.array(0)]
    dtype = TensorProto.DataType.Value(draw.kinds["T"].upper())
    made = [node("SequenceConstruct", ["x0", "x1", "x2"], ["s"])]
    if draw.name in ("SequenceEmpty", "SequenceInsert"):
        made = [
            node("SequenceEmpty", [], ["none"], dtype=dtype), node("SequenceInsert", ["none", "x0"], ["one"]),
            node("SequenceInsert", ["one", "x1", "x4"], ["two"]), node("SequenceInsert", ["two", "x2", "x3"], ["s"]),
        ]  # fmt: skip
    elif draw.name == "SequenceErase":
        made += [node("SequenceErase", draw.pick(["s", "x3"], ["s"]), ["t"])]
    elif draw.name == "SequenceMap":
        body = _graph(draw, [node("Identity", ["a"], ["c"])], {"a": "T"}, {"c": "T"})
        made += [node("SequenceMap", ["s"], ["t"], body=body)]
    last = made[-1].output[0]
    if draw.name == "SequenceLength":
        return Call(arrays, nodes=[*made, node("SequenceLength", [last], ["y"])], stored=(3, 4))
    if draw.name == "ConcatFromSequence":
        attributes = {"axis": draw.axis(len(shape)), "new_axis": draw.flag()}
        return Call(arrays, nodes=[*made, node("ConcatFromSequence", [last], ["y"], **attributes)], stored=(3, 4))
    return Call(arrays, nodes=[*made, node("SequenceAt", [last, "x3"], ["y"])], stored=(3, 4))


@drawn("SplitToSequence", types={"T": ANY, "I": ("int32", "int64")})
def parts(draw: Draw) -> Call:
    """Parts of one entry, of a size that divides the axis or not, or of several sizes."""
    shape = [draw.size(1), draw.size(1)]
    axis = draw.axis(2)
    size, cut = shape[axis], draw.number(0, shape[axis])
    split = draw.pick(None, np.array(draw.number(1, size)), np.array([cut, size - cut]))
    attributes = {"axis": axis, **(draw.some(keepdims=draw.flag()) if split is None else {})}
    nodes = [
        node("SplitToSequence", ["x0"] if split is None else ["x0", "x1"], ["s"], **attributes),
        node("SequenceAt", ["s", "x2"], ["y"]),
    ]
    split = None if split is None else split.astype(draw.tensor(of="I").dtype)
    return Call([draw.tensor(*shape), split, np.array(-1)], nodes=nodes, stored=(1, 2))


@drawn("Optional", "OptionalGetElement", "OptionalHasElement", types={"T": ANY})
def optional(draw: Draw) -> Call:
    """A value that is there."""
    last = ("OptionalHasElement" if draw.name == "OptionalHasElement" else "OptionalGetElement", ["maybe"], ["y"])
    return Call([draw.tensor(*draw.shape())], nodes=[node("Optional", ["x0"], ["maybe"]), node(*last)])


@drawn("If", types={"T": ANY})
def condition(draw: Draw) -> Call:
    """A condition that the file stores or that data decide, between two tensors of the graph around."""
    shape = draw.shape()
    branches = {
        f"{name}_branch": _graph(draw, [node("Identity", [x], [name])], {}, {name: "T"})
        for name, x in (("then", "x1"), ("else", "x2"))
    }
    arrays = [np.array(bool(draw.flag())), draw.tensor(*shape), draw.tensor(*shape)]
    return Call(arrays, nodes=[node("If", ["x0"], ["y"], **branches)], stored=draw.pick((), (0,)))


@drawn("Loop", "Scan", types={"T": ANY})
def loop(draw: Draw) -> Call:
    """The entries of an axis, each given back, and the last one carried."""
    turns, x = draw.size(), draw.shape(0, 2)
    first, rows = draw.tensor(*x), draw.tensor(turns, *x)
    out = [node("Identity", ["row"], ["next"]), node("Identity", ["last"], ["each"])]
    if draw.name == "Scan":
        body = _graph(draw, out, {"last": "T", "row": "T"}, {"next": "T", "each": "T"})
        return Call([first, rows], outputs=("y", "all"), nodes=[
            node("Scan", ["x0", "x1"], ["y", "all"], body=body, num_scan_inputs=1)
        ])  # fmt: skip
    inner = [node("Gather", ["x1", "turn"], ["row"]), *out, node("Identity", ["go"], ["go_on"])]
    inputs = {"turn": "int64", "go": "bool", "last": "T"}
    body = _graph(draw, inner, inputs, {"go_on": "bool", "next": "T", "each": "T"})
    nodes = [node("Loop", ["x2", "", "x0"], ["y", "all"], body=body)]
    return Call([first, rows, np.array(turns)], outputs=("y", "all"), nodes=nodes, stored=(2,))
