"""The entry map: breaks grouped by operator, origin, module and source line."""

from __future__ import annotations

import linecache
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torch.fx import Node

from orderproof.auditing.explain.source_name import source_name
from orderproof.diagnosis.domain.constants import Constants
from orderproof.diagnosis.rule import RelationBreak
from orderproof.recording.captured_graph import CapturedGraph, module_path
from orderproof.records.audit import Entry, Picture

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
SHOWN_CONSTANTS = 3
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.|$)")

_RESHAPES = {"reshape", "view", "_unsafe_view", "flatten", "unflatten"}


@dataclass(frozen=True)
class Frame:
    """A line of the model's code: "modeling_bert.py:104", its text and its file."""

    source: str = ""
    text: str = ""
    file: str = ""


def frame_of(node: Node) -> Frame:
    """The last line of the model's code that created this node; empty if it has none."""
    frames = list(_FRAME.finditer(str(node.meta.get("stack_trace") or "")))
    own = [f for f in frames if "/torch/" not in f["file"].replace("\\", "/")] or frames
    if not own:
        return Frame()
    return frame_at(own[-1]["file"], int(own[-1]["line"]))


def frame_at(file: str, line: int) -> Frame:
    """A line of a file."""
    return Frame(f"{source_name(file)}:{line}", linecache.getline(file, line).strip(), file)


def source_of(node: Node) -> tuple[str, str]:
    """The last line of the model's code that created this node: ("modeling_bert.py:104", the text of the line)."""
    frame = frame_of(node)
    return frame.source, frame.text


def named_place(node: Node) -> str:
    """An operator with its module and line: "aten.add.Tensor (layers.0, model.py:12)"."""
    place = ", ".join(x for x in (module_path(node), source_of(node)[0]) if x)
    return f"{operator_name(node)}{f' ({place})' if place else ''}"


def group_entries(
    breaks: Iterable[RelationBreak], constants: Constants, picture: Callable[[RelationBreak], Picture | None]
) -> tuple[Entry, ...]:
    """One entry for each distinct (kind, operator, origin, module pattern, line), with a picture of its first break."""
    groups: dict[Entry, list[RelationBreak]] = {}
    for b in breaks:
        constant = b.operand if b.operand is not None and b.operand in constants else None
        line, module = ("", "") if constant is None else constant_origin(constant)
        entry = Entry(
            kind="constant" if b.constant else "operator", operator=operator_name(b.node),
            module=_NUMBER.sub("*", module_path(b.node)), source=source_of(b.node)[0],
            origin="" if constant is None else origin_of(constant, constants),
            origin_source=line, origin_module=_NUMBER.sub("*", module),
        )  # fmt: skip
        groups.setdefault(entry, []).append(b)
    return tuple(_entry_of_group(entry, found, picture(found[0])) for entry, found in groups.items())


def _entry_of_group(entry: Entry, found: Sequence[RelationBreak], picture: Picture | None) -> Entry:
    """The entry of breaks that differ in the number of their layer only; of one layer, its modules are named."""
    first, paths = found[0], {module_path(b.node) for b in found}
    origins = {constant_origin(b.operand)[1] for b in found if b.operand is not None and entry.origin_source}
    return entry.model_copy(
        update={
            "node_count": len(found), "layer_count": len(paths),
            "module": paths.pop() if len(paths) == 1 else entry.module,
            "origin_module": origins.pop() if len(origins) == 1 else entry.origin_module,
            "source_line": source_of(first.node)[1], "picture": picture, "reason": first.reason,
        }
    )  # fmt: skip


def origin_of(node: Node, constants: Constants) -> str:
    """The names of the tensors from which a constant is computed: parameters, else buffers, else generators."""
    leaves = constants.sources(node)
    stored = sorted(x for x in leaves if "." in x or constants.is_parameter(x))
    chosen = [x for x in stored if constants.is_parameter(x)] or stored or sorted(leaves)
    return ", ".join(_NUMBER.sub("*", x) for x in dict.fromkeys(chosen))


def uniform_text(captured: CapturedGraph, constants: Constants) -> str:
    """``bias.table the same for every token at model.py:12``: how a graph differs from that of its model, or empty.

    Of a value that is computed, the tensors from which it is: ``values from wpe.weight the same for every token ...``.
    """
    if not captured.uniform:
        return ""
    by_name = {n.name: n for n in captured.graph.nodes}
    names = [_constant_text(by_name[name], constants) if name in by_name else name for name in captured.uniform]
    lines = [line for node in captured.uniform_at if (line := source_of(node)[0])]
    places = f" at {_first_ones(lines)}" if lines else ""
    return f"{_first_ones(names)} the same for every token{places}"


def _constant_text(node: Node, constants: Constants) -> str:
    origin = origin_of(node, constants) or node.name
    return origin if node.op == "placeholder" else f"values from {origin}"


def _first_ones(texts: Sequence[str]) -> str:
    """``a, b, c and 2 more``."""
    distinct = list(dict.fromkeys(texts))
    more = [f"{len(distinct) - SHOWN_CONSTANTS} more"] if len(distinct) > SHOWN_CONSTANTS else []
    return " and ".join([", ".join(distinct[:SHOWN_CONSTANTS]), *more])


def constant_origin(node: Node) -> tuple[str, str]:
    """The line and module of the first operator that computes a constant; empty for a stored tensor."""
    first, queue, seen = ("", ""), [node], {node}
    while queue:
        here = queue.pop()
        if here.op == "call_function" and not here.all_input_nodes:
            first = (source_of(here)[0], module_path(here)) if source_of(here)[0] else first
        for n in here.all_input_nodes:
            if n not in seen:
                seen.add(n)
                queue.append(n)
    return first


def operator_name(node: Node) -> str:
    """The operator of a node; for one of several results, the operator that gives them."""
    if node.target is operator.getitem:
        return operator_name(node.all_input_nodes[0])
    return str(node.target)


def base_name(node: Node) -> str:
    """The operator without its library and overload: ``softmax`` of ``aten.softmax.int``."""
    return operator_name(node).removeprefix("aten.").partition(".")[0]


def is_reshape(node: Node) -> bool:
    """True for an operator that divides the entries of a tensor into other axes, in their order."""
    return base_name(node) in _RESHAPES
