"""The axes of a subject's outputs: as it states them, or derived from calls with other numbers of tokens."""

from __future__ import annotations

from dataclasses import replace

from orderproof.auditing.record.execution import named_tensors
from orderproof.auditing.record.recorded_call import RecordedCall
from orderproof.diagnosis.index_parts import UNKNOWN
from orderproof.diagnosis.index_paths import kind_of
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
from orderproof.recording.low_rank import call_for_shapes

MAX_PREFIX = 2  # entries of an output of images besides the patches: a class and a distillation token


def find_output_axes(call: RecordedCall) -> dict[str, OutputAxes]:
    """The axes of each output."""
    if call.whole_rows_only:
        return {name: OutputAxes(shape, 0 if shape else None, source="") for name, shape in call.shapes.items()}
    if (own := call.subject.output_axes) is not None:
        found = {
            name: own[name] if name in own else unknown_axes(name, shape, "it is not an output of every call")
            for name, shape in call.shapes.items()
        }
        return {name: _axes_by_graph(call, name, axes) for name, axes in found.items()}
    grown = _grown_shapes(call)
    return {name: _axes_by_growth(call, name, shape, grown) for name, shape in call.shapes.items()}


def token_dim(token: TokenRun) -> TokenDim:
    """A token axis as the laws read it: entries besides the tokens precede them unless they are known to follow."""
    before = token.extra if token.before is None else token.before
    return TokenDim(token.axis, before, is_known=token.before is not None)


def _axes_by_graph(call: RecordedCall, name: str, axes: OutputAxes) -> OutputAxes:
    """The axes of an output that paths of the graph lead to; unchanged if they do not say which run over tokens."""
    if not (axes.fixed or axes.unknown_rows) or call.export_failure is not None:
        return axes
    dims = call.index_paths.get(call.captured.outputs[name])
    if dims is None:
        return axes
    kinds = [kind_of(dim) for dim in dims]
    rows = [d for d, (kind, _) in enumerate(kinds) if kind == ROWS]
    if axes.unknown_rows and rows == [0]:
        axes = replace(axes, row=0, unknown_rows="", source=FROM_GRAPH)
    if not axes.fixed:
        return axes
    tokens = call.token_count
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


def _axes_by_growth(call: RecordedCall, name: str, shape: Shape, grown: list[dict[str, Shape]]) -> OutputAxes:
    """The axes of an output whose first one runs over rows."""
    row = 0 if shape and shape[0] == call.batch_size else None
    no_row = "" if row == 0 else UNKNOWN_ROWS
    larger = tuple(g[name] for g in grown if name in g)
    if larger and len(larger) == len(grown):
        found = CalledShapes(shape, larger, None, call.token_count, None).axes(name)
        return replace(found, row=row, unknown_rows=found.unknown_rows or no_row)
    found = unknown_axes(name, shape, "it cannot be called with more tokens")
    found = replace(found, row=row, unknown_rows=no_row, fixed=True)
    if call.subject.patch_embedding_path is not None:
        found = _axes_by_graph(call, name, found)
        if found.fixed and call.subject.model_kind == "vision":
            return _axes_by_size(call, name, found)
    return found


def _axes_by_size(call: RecordedCall, name: str, found: OutputAxes) -> OutputAxes:
    """The axes of an output of an image model of transformers, whose output has one entry for each patch."""
    shape = found.shape
    dims = [d for d, size in enumerate(shape) if 0 <= size - call.token_count <= MAX_PREFIX]
    for d in dims:
        call.note(f"dimension {d} of output {name!r} is taken to run over tokens because of its size")
    tokens = tuple(TokenRun(d, shape[d] - call.token_count) for d in dims)
    return replace(found, tokens=tokens, source="by their sizes", unknown_tokens="", fixed=False)


def _grown_shapes(call: RecordedCall) -> list[dict[str, Shape]]:
    """The shapes of the outputs with one and two tokens more; empty if the subject cannot be called so."""
    subject = call.subject
    if subject.patch_embedding_path is not None:
        return []
    try:
        called = [call_for_shapes(subject.module, subject.sample(call.length + more).inputs) for more in (1, 2)]
        return [{k: tuple(v.shape) for k, v in named_tensors(outputs).items()} for outputs in called]
    except OrderproofError:
        return []
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        call.note(f"the model could not be called at other lengths: {failure_reason(error)}")
        return []


def token_layouts(dims: tuple[TokenDim, ...]) -> list[tuple[TokenDim, ...]]:
    """The layouts of an output with more entries than tokens: the others precede the tokens, or follow them."""
    return list(dict.fromkeys([dims, tuple(t if t.is_known else TokenDim(t.dim) for t in dims)]))
