"""The axes of a subject's outputs: as it states them, or derived from calls with other numbers of tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from orderproof.auditing.record.execution import named_tensors
from orderproof.diagnosis.index_parts import UNKNOWN
from orderproof.diagnosis.index_paths import follow_indices, kind_of
from orderproof.errors import OrderproofError, failure_reason
from orderproof.laws import TokenDim
from orderproof.laws.proved.proved_law import UNKNOWN_ROWS
from orderproof.models.axes import (
    FROM_GRAPH,
    ROWS,
    TOKENS,
    CalledShapes,
    OutputAxes,
    Shape,
    TokenRun,
    unknown_axes,
)

if TYPE_CHECKING:
    from torch.fx import Node

    from orderproof.auditing.record.context import AuditContext

MAX_PREFIX = 2  # entries of an output of images besides the patches: a class and a distillation token


def find_output_axes(context: AuditContext) -> dict[str, OutputAxes]:
    """The axes of each output."""
    if context.whole_rows_only:
        return {name: OutputAxes(shape, 0 if shape else None, source="") for name, shape in context.shapes.items()}
    if (own := context.subject.output_axes) is not None:
        found = {
            name: own[name] if name in own else unknown_axes(name, shape, "it is not an output of every call")
            for name, shape in context.shapes.items()
        }
        return {name: _axes_by_graph(context, name, axes) for name, axes in found.items()}
    grown = _grown_shapes(context)
    return {name: _axes_by_growth(context, name, shape, grown) for name, shape in context.shapes.items()}


def token_dim(token: TokenRun) -> TokenDim:
    """A token axis as the laws read it: entries besides the tokens precede them unless they are known to follow."""
    before = token.extra if token.before is None else token.before
    return TokenDim(token.axis, before, is_known=token.before is not None)


def _axes_by_graph(context: AuditContext, name: str, axes: OutputAxes) -> OutputAxes:
    """The axes of an output that paths of the graph lead to; unchanged if they do not say which run over tokens."""
    if not (axes.fixed or axes.unknown_rows) or context.export_failure is not None:
        return axes
    if "index paths" not in context.memo:
        context.memo["index paths"] = follow_indices(context.captured.graph, _start_axes(context))
    dims = context.memo["index paths"].get(context.captured.outputs[name])
    if dims is None:
        return axes
    kinds = [kind_of(dim) for dim in dims]
    rows = [d for d, (kind, _) in enumerate(kinds) if kind == ROWS]
    if axes.unknown_rows and rows == [0]:
        axes = replace(axes, row=0, unknown_rows="", source=FROM_GRAPH)
    if not axes.fixed:
        return axes
    tokens = context.token_count
    runs = tuple(
        TokenRun(d, axes.shape[d] - tokens, before)
        for d, (kind, before) in enumerate(kinds)
        if kind == TOKENS and axes.shape[d] - tokens >= before
    )
    # An axis with fewer entries than there are tokens has no entry for each token.
    open_dims = [d for d, (kind, _) in enumerate(kinds) if kind == UNKNOWN and d != axes.row]
    if any(axes.shape[d] == tokens or (not runs and axes.shape[d] > tokens) for d in open_dims):
        return axes
    return replace(axes, tokens=runs, source=FROM_GRAPH, unknown_tokens="", fixed=False)


def _start_axes(context: AuditContext) -> dict[Node, dict[int, str]]:
    """The names of the axes of each input; an axis that may be another one by its size has no name."""
    sizes, found = {context.token_count, context.batch_size}, {}
    for node, axis in context.input_axes.items():
        shape = tuple(int(size) for size in node.meta["val"].shape)
        if isinstance(axis, int):
            found[node] = {axis: TOKENS, **({0: ROWS} if axis else {})}
        else:
            found[node] = {d: UNKNOWN for d, size in enumerate(shape) if size in sizes}
    return found


def _axes_by_growth(context: AuditContext, name: str, shape: Shape, grown: list[dict[str, Shape]]) -> OutputAxes:
    """The axes of an output whose first one runs over rows."""
    row = 0 if shape and shape[0] == context.batch_size else None
    no_row = "" if row == 0 else UNKNOWN_ROWS
    larger = tuple(g[name] for g in grown if name in g)
    if larger and len(larger) == len(grown):
        found = CalledShapes(shape, larger, None, context.token_count, None).axes(name)
        return replace(found, row=row, unknown_rows=found.unknown_rows or no_row)
    found = unknown_axes(name, shape, "it cannot be called with more tokens")
    found = replace(found, row=row, unknown_rows=no_row, fixed=True)
    if context.subject.patch_embedding_path is not None:
        found = _axes_by_graph(context, name, found)
        if found.fixed and context.subject.model_kind == "vision":
            return _axes_by_size(context, name, found)
    return found


def _axes_by_size(context: AuditContext, name: str, found: OutputAxes) -> OutputAxes:
    """The axes of an output of an image model of transformers, whose output has one entry for each patch."""
    shape = found.shape
    dims = [d for d, size in enumerate(shape) if 0 <= size - context.token_count <= MAX_PREFIX]
    for d in dims:
        context.note(f"dimension {d} of output {name!r} is taken to run over tokens because of its size")
    tokens = tuple(TokenRun(d, shape[d] - context.token_count) for d in dims)
    return replace(found, tokens=tokens, source="by their sizes", unknown_tokens="", fixed=False)


def _grown_shapes(context: AuditContext) -> list[dict[str, Shape]]:
    """The shapes of the outputs with one and two tokens more; empty if the subject cannot be called so."""
    subject = context.subject
    if subject.patch_embedding_path is not None:
        return []
    try:
        with torch.no_grad():
            return [
                {k: tuple(v.shape) for k, v in named_tensors(subject.module(*subject.sample(n).inputs)).items()}
                for n in (context.length + 1, context.length + 2)
            ]
    except OrderproofError:
        return []
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        context.note(f"the model could not be called at other lengths: {failure_reason(error)}")
        return []


def token_layouts(dims: tuple[TokenDim, ...]) -> list[tuple[TokenDim, ...]]:
    """The layouts of an output with more entries than tokens: the others precede the tokens, or follow them."""
    return list(dict.fromkeys([dims, tuple(t if t.is_known else TokenDim(t.dim) for t in dims)]))
