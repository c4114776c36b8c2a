"""TorchScript archives, read by torch's own parser of their code, and translated step by step.

The code is compiled and not run by Python; its objects are read by the parser of torch, which makes no others. A module
that has code of its own for being read (`__setstate__`), as quantized ones have, is refused.
"""

from __future__ import annotations

import inspect
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from orderproof.errors import SubjectError, UsageError, first_line
from orderproof.models.plain_module import Inputs, of_layout
from orderproof.models.subject import Subject
from orderproof.models.torchscript.module import ScriptPart, is_known
from orderproof.models.torchscript.program import Block, block_of, steps_of
from orderproof.models.translation_rounding import gap, largest, unit
from orderproof.subject_spec import Layout

OF_OUTPUT = 16  # units in the last place of the largest output: the code of a file may be run in another order
OTHER_FORM = "save the module from which it was made with torch.export.save, as file.pt2"
_RUNS_WHEN_READ = re.compile(rb"^  def __setstate__", re.MULTILINE)


def load_script(path: Path, inputs: Inputs | None, layout: Layout, assume: Mapping[str, Any] | None) -> Subject:
    """The subject of a file. Raises `SubjectError` for a file that is none, and `UsageError` without example inputs."""
    name = path.name
    _check_archive(path)
    native: Any = torch._C  # `torch.jit.load` does the same and keeps no functions
    unit_of_code = native.CompilationUnit()
    try:
        module = native.import_ir_module(unit_of_code, str(path), torch.device("cpu"), {}, False)
    except Exception as error:
        raise SubjectError(f"{name}: torch {torch.__version__} cannot read it: {first_line(error)}") from error
    wrap: Any = torch.jit._recursive.wrap_cpp_module
    original = wrap(module).eval()
    try:
        part = _translated(original, unit_of_code, name).eval()
    except RuntimeError as error:  # places in the code are read late
        raise SubjectError(f"{name}: torch {torch.__version__} cannot read it: {first_line(error)}") from error
    if inputs is None:
        needed = ", ".join(entry.name for entry in part.parameters_of_forward if entry.default is entry.empty)
        raise UsageError(f"{name}: expected example inputs ({needed}); give --example FILE.npz (in Python inputs=)")
    subject = of_layout(part, inputs, layout, name=name, assume=assume)
    subject.notes = (_compared(original, part, inputs, name), *subject.notes)
    return subject


def _check_archive(path: Path) -> None:
    """Raises `SubjectError` for code that runs when the file is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".py") and _RUNS_WHEN_READ.search(archive.read(name)):
                    raise SubjectError(
                        f"{path.name}: {name.partition('/')[2]} has code that runs when the file is read "
                        "(__setstate__), so it is not read; save the module before it is quantized"
                    )
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise SubjectError(f"{path.name}: it cannot be read as an archive: {first_line(error)}") from error


def _translated(original: Any, unit_of_code: Any, name: str) -> ScriptPart:
    """The module with all its parts. Raises `SubjectError` for operators that cannot be run."""
    functions: dict[str, Block] = {}
    pending = [original]
    methods: dict[int, dict[str, Block]] = {}
    while pending:
        each = pending.pop()
        names = [method for method in each._c._method_names() if not method.startswith("__")]
        methods[id(each)] = {method: block_of(each._c._get_method(method).graph, method) for method in names}
        pending += list(each.children())
    open_blocks = [block for own in methods.values() for block in own.values()]
    while open_blocks:
        for step in steps_of(open_blocks.pop()):
            if step.kind == "prim::Constant" and step.name and step.name not in functions:
                functions[step.name] = block_of(unit_of_code.find_function(step.name).graph, step.name.split(".")[-1])
                open_blocks.append(functions[step.name])
    blocks = [*functions.values(), *(block for own in methods.values() for block in own.values())]
    unknown = Counter(step.kind for block in blocks for step in steps_of(block) if not is_known(step))
    if unknown:
        listed = ", ".join(f"{kind} ({count})" for kind, count in unknown.most_common(8))
        raise SubjectError(f"{name}: these operators of TorchScript are not read: {listed}; {OTHER_FORM}")
    return _part(original, methods, functions, name)


def _part(
    original: Any, methods: Mapping[int, Mapping[str, Block]], functions: Mapping[str, Block], name: str
) -> ScriptPart:
    """A part with its parameters, buffers, attributes and parts. Raises `SubjectError` for an attribute."""
    own = methods[id(original)]
    part = ScriptPart(own, functions, _arguments(original) if "forward" in own else ())
    part.train(original.training)
    for key, child in original.named_children():
        part.add_module(key, _part(child, methods, functions, name))
    for key, weight in original.named_parameters(recurse=False):
        part.register_parameter(key, nn.Parameter(weight.detach().clone(), requires_grad=False))
    for key, tensor in original.named_buffers(recurse=False):
        part.register_buffer(key, tensor.detach().clone())
    for step in (step for block in own.values() for step in steps_of(block) if step.kind == "prim::GetAttr"):
        if not hasattr(part, step.name) and hasattr(original, step.name):
            _add_attribute(part, original, step.name, name)
    return part


def _add_attribute(part: ScriptPart, original: Any, key: str, name: str) -> None:
    """Keep an attribute that the code reads; a list of own parameters as their names, so that a copy has its own."""
    value = getattr(original, key)
    if isinstance(value, list) and value and all(isinstance(x, Tensor) for x in value):
        held = (*original.named_parameters(recurse=False), *original.named_buffers(recurse=False))
        own = {x.data_ptr(): own_name for own_name, x in held}
        part.tensor_lists[key] = [own.get(x.data_ptr(), f"{key}_{k}") for k, x in enumerate(value)]
        for own_name, x in zip(part.tensor_lists[key], value, strict=True):
            if not hasattr(part, own_name):
                part.register_buffer(own_name, x.detach().clone())
        return
    plain = (bool, int, float, str, Tensor, torch.device, torch.dtype, type(None))
    if not all(isinstance(x, plain) for x in tree_leaves(value)):
        raise SubjectError(
            f"{name}: expected attributes that are numbers, texts or tensors; {key!r} is an object of "
            f"{type(value).__name__}; {OTHER_FORM}"
        )
    if isinstance(value, Tensor):
        part.register_buffer(key, value.detach().clone())
    else:
        setattr(part, key, tree_map_only(Tensor, lambda x: x.detach().clone(), value))


def _arguments(original: Any) -> list[inspect.Parameter]:
    """The arguments of the method `forward`."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [
        inspect.Parameter(
            entry.name, kind, default=entry.default_value if entry.has_default_value() else inspect.Parameter.empty
        )
        for entry in original._c._get_method("forward").schema.arguments[1:]
    ]


def _compared(original: Any, part: ScriptPart, inputs: Inputs, name: str) -> str:
    """A note that the steps compute what TorchScript computes. Raises `SubjectError` if not."""
    given = [inputs] if isinstance(inputs, Tensor) else inputs
    values, named = ([], dict(given)) if isinstance(given, Mapping) else (list(given), {})
    with torch.no_grad():
        try:
            expected = tree_leaves(original(*values, **named))
        except Exception as error:
            raise SubjectError(f"{name}: TorchScript cannot run it on the example: {first_line(error)}") from error
        found = tree_leaves(part(*values, **named))
    for own, other in zip(found, expected, strict=True):
        if not isinstance(other, Tensor):
            continue
        apart = gap(own, other)
        if own.shape != other.shape or not apart <= OF_OUTPUT * unit(other) * largest(other):
            raise SubjectError(
                f"{name}: its steps compute another output than TorchScript ({apart:.2g} apart); please report it"
            )
    return "the graph of the file was run step by step, and computes what TorchScript computes on one example"
