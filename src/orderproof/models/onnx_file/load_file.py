"""The subject of an ONNX file: its graph as a module, compared with ONNX Runtime where that is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from orderproof.errors import SubjectError, UsageError, first_line
from orderproof.models.plain_module import Inputs, of_layout
from orderproof.models.subject import Subject
from orderproof.optional_packages import missing_packages, require_packages
from orderproof.subject_spec import NO_LAYOUT, Layout

SILENT = 4  # of the runtime's messages: only fatal ones, since an error is raised too

if TYPE_CHECKING:
    from orderproof.models.onnx_file.module import OnnxModule


def load_onnx(
    path: Path,
    *,
    inputs: Inputs | None = None,
    layout: Layout = NO_LAYOUT,
    assume: Mapping[str, Any] | None = None,
    length: int | None = None,
) -> Subject:
    """Read a file and build a subject from its graph.

    Args:
        path: The file; tensors that it stores outside must be in its folder.
        inputs: Example inputs by name, or in the order of the graph; those that are not given are drawn.
        layout: What the user states of its axes.
        assume: See `from_module`.
        length: Of the example inputs [tokens], where the file leaves it open.

    Raises:
        SubjectError: It is no ONNX file, an operator has no translation, or the translation differs from ONNX Runtime.
        UsageError: onnx is not installed, or an argument does not fit.

    """
    name = path.name
    require_packages(f"{name}: reading an ONNX file", "onnx", extra="onnx")
    from orderproof.models.onnx_file import sizes
    from orderproof.models.onnx_file.cache import file_cache, find_sizes
    from orderproof.models.onnx_file.entries import entries_of
    from orderproof.models.onnx_file.inputs import WithComputedInputs, example_inputs
    from orderproof.models.onnx_file.module import OnnxModule

    if layout.mode != "eval":
        raise UsageError(f"{name}: expected no mode with an ONNX file, whose graph is of one mode")
    model = _read(path)
    graph, notes = OnnxModule(model, name).eval(), []
    entries = entries_of(model, name)
    given = sizes.check_given(_by_name(inputs, graph), entries, name)
    shapes = {**layout.shapes, **{key: tuple(x.shape) for key, x in given.items()}}
    open_sizes = sizes.example_sizes(entries, shapes, length, layout, name)
    cache = file_cache([entry for entry in entries if entry.name not in given], graph.output_names)
    drawn = [entry for entry in entries if cache is None or entry.name not in cache.outputs]
    examples = example_inputs(model, drawn, given, open_sizes)
    if not examples:
        raise SubjectError(f"{name}: no input is drawn; give inputs=")
    if length is not None:
        sizes.check_length(length, entries, examples, layout, name)
    elif layout.shapes:
        length = sizes.stated_length(entries, layout.shapes, layout, name)
    module = WithComputedInputs(graph, entries, cache)
    if cache is not None:
        find_sizes(cache, entries, examples, lambda: module(**examples)[cache.name])
    if computed := [f"{e.name} ({e.kind})" for e in drawn if e.name not in examples]:
        notes.append(f"computed for each number of tokens: {', '.join(computed)}")
    notes.append(
        f"{graph.weight_count} tensors of the file count as weights; numbers, masks and triangles among its tensors "
        "keep their values"
    )
    subject = of_layout(module, examples, replace(layout, shapes={}), name=name, assume=assume, length=length)
    subject.wrapped_path = next(place for place, part in subject.module.named_modules() if part is graph)
    calls = [lambda: subject.module(*subject.sample(subject.default_length, 0).inputs)]
    if cache is not None:
        place = sizes.token_axis([entry for entry in drawn if entry.kind == "drawn"], examples, layout, name)
        calls.append(lambda: module.on_cache(examples, None if place is None else place[0].sizes[place[1]]))
    notes.append(_compared(path, graph, calls))
    subject.notes = (*notes, *subject.notes)
    return subject


def _by_name(inputs: Inputs | None, graph: OnnxModule) -> dict[str, Tensor]:
    """Example inputs by the names of the graph. Raises `UsageError` for too many."""
    if isinstance(inputs, Mapping):
        named = dict(inputs)
    else:
        values = () if inputs is None else (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        if len(values) > len(graph.input_names):
            raise UsageError(f"expected inputs for {', '.join(graph.input_names)}; got {len(values)} of them")
        named = dict(zip(graph.input_names, values, strict=False))
    return {key: x if isinstance(x, Tensor) else torch.from_numpy(np.asarray(x)) for key, x in named.items()}


def _read(path: Path) -> Any:
    import onnx
    from onnx import inliner

    from orderproof.models.onnx_file.operators.safe_softmax import with_safe_softmax

    try:
        model = onnx.load(str(path))
    except Exception as error:  # protobuf and onnx raise errors of many classes for a damaged file
        raise SubjectError(f"{path}: it cannot be read as an ONNX file: {first_line(error)}") from error
    if not model.graph.node:
        raise SubjectError(f"{path}: it cannot be read as an ONNX file: its graph has no nodes")
    return with_safe_softmax(inliner.inline_local_functions(model) if model.functions else model)


def _compared(path: Path, graph: OnnxModule, calls: Sequence[Callable[[], object]]) -> str:
    """A note that the translation computes what ONNX Runtime does in these calls. Raises `SubjectError` if not."""
    if missing_packages("onnxruntime"):
        return "onnxruntime is not installed: the translation to torch was compared with nothing"
    import onnxruntime

    from orderproof.models.onnx_file.agreement import check_agreement

    made: list[tuple[tuple[Any, ...], dict[str, Tensor]]] = []
    levels = onnxruntime.GraphOptimizationLevel
    hook = graph.register_forward_hook(lambda _, given, found: made.append((given, found)))
    try:
        with torch.no_grad():
            for call in calls:
                call()
    finally:
        hook.remove()
    gaps = []
    for given, found in made:
        feeds = {name: _array(x) for name, x in zip(graph.input_names, given, strict=True)}
        try:
            expected, written = (
                _run(path, list(found), feeds, level) for level in (levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL)
            )
        except Exception as error:  # noqa: BLE001 - the runtime may lack an operator, or refuse a type
            return f"the translation to torch was compared with nothing: ONNX Runtime fails: {first_line(error)}"
        check_agreement(path.name, graph, given, found, written)
        try:
            check_agreement(path.name, graph, given, found, expected)
        except SubjectError:
            gaps += [float(np.abs(a - b).max()) for a, b in zip(expected, written, strict=True) if a.size]
    count = "on one example" if len(calls) == 1 else "on one example, and on the cache of that call"
    same = f"the translation to torch computes what ONNX Runtime computes {count}"
    return f"{same} without its graph optimizations, which change an output by {max(gaps):.2g}" if gaps else same


def _array(value: Any) -> Any:
    """A tensor or a number that decides a branch, as the runtime takes it."""
    return value.numpy() if isinstance(value, Tensor) else np.array(value.tolist())


def _run(path: Path, names: list[str], feeds: Mapping[str, Any], level: Any) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, SILENT
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(names, feeds)  # type: ignore[no-any-return]
