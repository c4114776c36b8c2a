"""The subject of an ONNX file: its graph as a module, compared with ONNX Runtime where that is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
    from orderproof.models.onnx_file.opened import OpenedFile


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
    from orderproof.models.onnx_file.opened import OpenedFile

    if layout.mode != "eval":
        raise UsageError(f"{name}: expected no mode with an ONNX file, whose graph is of one mode")
    file = OpenedFile(_read(path), name, inputs, layout, length)
    subject, notes = _subject(file, name, replace(layout, shapes={}), assume)
    subject.wrapped_path = next(place for place, part in subject.module.named_modules() if part is file.graph)
    calls = [lambda: subject.module(*subject.sample(subject.default_length, 0).inputs)]
    if file.cache is not None:
        calls.append(lambda: file.module.on_cache(file.examples, file.tokens))
    subject.notes = (*file.notes, *notes, _compared(path, file.graph, calls), *subject.notes)
    return subject


def _subject(
    file: OpenedFile, name: str, layout: Layout, assume: Mapping[str, Any] | None
) -> tuple[Subject, tuple[str, ...]]:
    """The subject, with more tokens than usual if the file needs them, and a note on it. Raises `SubjectError`."""
    from orderproof.models.onnx_file.baked_length import kept_row, other_length

    build = partial(of_layout, file.module, layout=layout, name=name, assume=assume)
    try:
        return build(file.examples, length=file.length), ()
    except SubjectError as error:
        if file.given or not isinstance(file.tokens, str):
            raise

        def call(size: str, count: int) -> object:
            return file.module(**file.examples_of(**{size: count}))

        usual = file.sizes[file.tokens]
        other, kept = other_length(file.graph, partial(call, file.tokens), usual)
        if not kept and other is None and file.rows is not None:
            kept = kept_row(file.graph, partial(call, file.rows), file.sizes[file.rows])
        if kept:
            raise SubjectError(f"{name}: {kept}") from error
        if other is None or file.length is not None:
            raise
        note = f"audited at {other} tokens, since a call with {usual} fails"
        return build(file.examples_of(**{file.tokens: other}), length=other), (note,)


def _read(path: Path) -> Any:
    import onnx
    from onnx import inliner

    from orderproof.models.onnx_file.operators.safe_softmax import with_safe_softmax

    try:
        model = onnx.load(str(path))
    except Exception as error:  # protobuf and onnx raise errors of many classes for a damaged file
        raise SubjectError(
            f"{path}: it cannot be read as an ONNX file, which may be cut; export, copy or download it again "
            f"({first_line(error)})"
        ) from error
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
        except Exception as error:  # the runtime may lack an operator, or refuse a type
            if "Type Error:" in str(error):
                raise SubjectError(f"{path.name}: ONNX Runtime refuses the graph: {first_line(error)}") from error
            return f"the translation to torch was compared with nothing: ONNX Runtime fails: {first_line(error)}"
        check_agreement(path.name, graph, given, found, written)
        try:
            check_agreement(path.name, graph, given, found, expected)
        except SubjectError:
            gaps += [float(np.abs(a - b).max()) for a, b in zip(expected, written, strict=True) if a.size]
    count = "on one example" if len(made) <= len(calls) else "on one example, and on the cache of that call"
    same = f"the translation to torch computes what ONNX Runtime computes {count}"
    return f"{same} without its graph optimizations, which change an output by {max(gaps):.2g}" if gaps else same


def _array(value: Any) -> Any:
    """A tensor or a number that decides a branch, as the runtime takes it."""
    return value.numpy() if isinstance(value, Tensor) else np.array(value.tolist())


def _run(path: Path, names: list[str], feeds: Mapping[str, Any], level: Any) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, SILENT
    options.intra_op_num_threads = 1  # several would quantize parts of the rows apart in an LSTM of eight bits
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(names, feeds)  # type: ignore[no-any-return]
