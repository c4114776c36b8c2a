"""The subject of a model of JAX: its program as a module, compared with JAX."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError, UsageError
from orderproof.models.jax_function.agreement import check_agreement
from orderproof.models.jax_function.module import JaxModule, NamedInputs, traced
from orderproof.models.jax_function.process import NEEDS_JAX, JaxProcess
from orderproof.models.jax_function.program import JaxProgram
from orderproof.models.plain_module import Inputs, of_layout
from orderproof.models.subject import Subject
from orderproof.subject_spec import JAX_PYTHON_VARIABLE, NO_LAYOUT, Layout

MOST_TOKENS = 4096  # a larger limit is not looked for
_IMPORTS_JAX = re.compile(r"^\s*(?:from|import)\s+(?:jax|flax|equinox|haiku)\b|KERAS_BACKEND\W+jax", re.MULTILINE)
_IMPORTS_TORCH = re.compile(r"^\s*(?:from|import)\s+torch\b", re.MULTILINE)


def is_of_jax(path: Path) -> bool:
    """True if a file imports JAX, or a library on it, and not torch."""
    if path.suffix != ".py" or not path.is_file():
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    return bool(_IMPORTS_JAX.search(text)) and not _IMPORTS_TORCH.search(text)


def jax_python() -> str:
    """The interpreter that has jax. Raises `UsageError` without one."""
    if stated := os.environ.get(JAX_PYTHON_VARIABLE):
        return stated
    if importlib.util.find_spec("jax") is None:
        raise UsageError(NEEDS_JAX)
    return sys.executable


def load_jax(
    spec: str, *, inputs: Inputs | None = None, layout: Layout = NO_LAYOUT, assume: Mapping[str, Any] | None = None
) -> Subject:
    """Start a process of JAX with the model, and build a subject from the program that JAX traces.

    Args:
        spec: `file.py:name`: (model, inputs) or (model, variables, inputs), or a function that returns one of these.
        inputs: Must be None: the examples are those of the file.
        layout: What the user states of its axes.
        assume: See `from_module`.

    Raises:
        SubjectError: The model cannot be loaded or traced, or its translation differs from JAX.
        UsageError: There is no jax, or an argument does not fit.

    """
    if inputs is not None:
        raise UsageError(f"{spec}: expected no inputs with a model of JAX, whose function gives them")
    if layout.mode != "eval":
        raise UsageError(f"{spec}: expected no mode with a model of JAX, which is audited as for inference")
    process = JaxProcess(jax_python())
    process.load(spec)
    subject = subject_of(process, layout, assume)
    process.announce_files()
    return subject


def subject_of(process: JaxProcess, layout: Layout = NO_LAYOUT, assume: Mapping[str, Any] | None = None) -> Subject:
    """The subject of the model that a process holds. Raises `SubjectError`, as `load_jax` does."""
    head, arrays = process.ask({"do": "describe"})
    examples = {name: arrays[f"input {k}"] for k, name in enumerate(head["inputs"])}
    weights = {name: arrays[f"weight {k}"] for k, name in enumerate(head["weights"])}
    program, why_fixed = _open_program(process, list(examples.values()), has_weights=not weights)
    if program is not None and (number := _last_filled(process, program, list(examples.values()))):
        program = traced(process, program.shapes, {**program.limits, "tokens": number}, has_weights=not weights)
        why_fixed = (*why_fixed, f"at most {number} tokens: with more the model reads past a table, which gives NaN")
    model = JaxModule(process, weights, program).eval()
    module: nn.Module = model
    given: Any = tuple(examples.values())
    if len(examples) > 1:
        module, given = NamedInputs(model, tuple(examples)).eval(), examples
    subject = of_layout(module, given, layout, name=process.spec.rpartition(":")[2], assume=assume)
    compared = _compared(model, subject)
    model.calls_jax = True
    made = f"{head['kind']}, traced and called by JAX {head['version']}"
    subject.notes = (made, compared, *why_fixed, *subject.notes)
    return subject


# ---------------------------------------------------------------- open sizes


def _open_program(
    process: JaxProcess, examples: Sequence[Tensor], *, has_weights: bool
) -> tuple[JaxProgram | None, tuple[str, ...]]:
    """The program for open sizes, as many as JAX leaves open; and a note if it leaves none."""
    reason = ""
    every = _open_shapes(examples)
    for shapes in every:
        kept = sorted(_names(every[0]) - _names(shapes))
        fixed = tuple(f"the number of {name} stays that of a call: JAX cannot leave it open: {reason}" for name in kept)
        try:
            return _counting(traced(process, shapes, {}, has_weights=has_weights), fixed)
        except SubjectError as error:
            reason = reason or str(error).removeprefix(f"{process.spec}: ")
        limits = _limits(process, shapes)
        try:
            program = traced(process, shapes, limits, has_weights=has_weights)
        except SubjectError:
            continue
        notes = (f"at most {number} {name}: JAX refuses more" for name, number in limits.items())
        return _counting(program, (*notes, *fixed))
    return None, (f"JAX traces the model for each shape apart, not for open sizes: {reason}",)


def _counting(program: JaxProgram, notes: tuple[str, ...]) -> tuple[JaxProgram, tuple[str, ...]]:
    """A program, and a note if it counts in float32."""
    found = (f"at most {number} {name}: with more the model counts past the integers of float32"
             for name, number in program.body.limits.items() if number == program.limits[name])  # fmt: skip
    return program, (*notes, *found)


def _names(shapes: Sequence[Sequence[int | str]]) -> set[str]:
    return {n for shape in shapes for n in shape if isinstance(n, str)}


def _limits(process: JaxProcess, shapes: Sequence[Sequence[int | str]]) -> dict[str, int]:
    """The largest number of each open size that has a limit."""
    names = sorted(_names(shapes))
    request = {"do": "limit", "shapes": [list(shape) for shape in shapes], "most": MOST_TOKENS}
    found = {name: process.ask({**request, "name": name})[0]["limit"] for name in names}
    return {name: number for name, number in found.items() if 0 < number < MOST_TOKENS}


def _last_filled(process: JaxProcess, program: JaxProgram, examples: Sequence[Tensor]) -> int | None:
    """The number of tokens from which on JAX gives NaN because it reads past a table of that size; None without one."""
    for number in program.body.filled_tables(len(examples)):
        if _is_finite(process, program, examples, number) and not _is_finite(process, program, examples, number + 1):
            return number
    return None


def _is_finite(process: JaxProcess, program: JaxProgram, examples: Sequence[Tensor], tokens: int) -> bool:
    """True if JAX computes no NaN with this number of tokens, those of the examples again and again."""
    inputs = list(examples)
    for place, shape in enumerate(program.shapes):
        for d in (d for d, n in enumerate(shape) if n == "tokens"):
            inputs[place] = inputs[place].index_select(d, torch.arange(tokens) % inputs[place].shape[d])
    try:
        return not any(bool(x.isnan().any()) for x in process.call(inputs).values())
    except SubjectError:
        return False


def _open_shapes(examples: Sequence[Tensor]) -> list[list[list[int | str]]]:
    """Shapes of the inputs with rows and tokens open, then only tokens, then only rows."""
    first = examples[0]
    has_rows = first.ndim > (2 if first.is_floating_point() else 1)
    rows = first.shape[0] if has_rows else None
    tokens = first.shape[1 if has_rows else 0] if first.ndim else None
    found: list[list[list[int | str]]] = []
    for names in ({"rows": rows, "tokens": tokens}, {"tokens": tokens}, {"rows": rows}):
        shapes = [_named(x, names) for x in examples]
        if shapes not in found and any(isinstance(n, str) for shape in shapes for n in shape):
            found.append(shapes)
    return found


def _named(x: Tensor, names: Mapping[str, int | None]) -> list[int | str]:
    """A shape with names for the sizes of rows, at the first axis, and of tokens."""
    sizes: list[int | str] = list(x.shape)
    kept = x.ndim - 1 if x.is_floating_point() and x.ndim > 1 else x.ndim  # the last axis of numbers has features
    for d, n in enumerate(x.shape):
        if d == 0 and n == names.get("rows"):
            sizes[d] = "rows"
        elif n == names.get("tokens") and (d < kept or x.shape[d - 1] == n):
            sizes[d] = "tokens"
    return sizes


# ---------------------------------------------------------------- comparison


def _compared(model: JaxModule, subject: Subject) -> str:
    """A note that the translation computes what JAX does. Raises `SubjectError` if it does not."""
    calls: list[tuple[Tensor, ...]] = []
    hook = model.register_forward_pre_hook(lambda _, given: calls.append(given))
    try:
        with torch.no_grad():
            subject.module(*subject.sample(subject.default_length, 0).inputs)
    finally:
        hook.remove()
    if reason := model.why_unreadable(calls[-1]):
        return f"nothing can be proved: {reason}; runs and measured laws call JAX"
    check_agreement(model.process.spec, model, calls[-1], model.process.call(calls[-1]))
    return "the translation to torch computes what JAX computes on one example; runs and measured laws call JAX itself"
