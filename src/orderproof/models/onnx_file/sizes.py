"""The sizes of the inputs of an ONNX file: fixed in the file, stated, or chosen for those that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from orderproof.errors import SubjectError, UsageError
from orderproof.models.onnx_file.entries import Entry, Size, is_past, is_row_name
from orderproof.models.token_axes import resolve_token_axes
from orderproof.registry import did_you_mean
from orderproof.subject_spec import TOKEN_AXIS_OPTION, Layout

ROWS, TOKENS = 2, 7  # of the examples; other sizes are drawn from them


def size_of(size: Size, known: Mapping[str, int], other: int | None) -> int:
    """A size: a number, a name, or a sum of these; ``other`` is that of a name that is not known."""
    if isinstance(size, int):
        return size
    if size in known:
        return known[size]
    if "+" in size:
        parts = [part.strip() for part in size.split("+")]
        return sum(int(part) if part.isdigit() else size_of(part, known, other) for part in parts)
    if is_past(size):
        return 0
    if other is None:
        raise SubjectError(f"the size {size!r} of an input is not known from the others; state it with --shape")
    return other


def check_given(given: Mapping[str, Tensor], entries: Sequence[Entry], name: str) -> dict[str, Tensor]:
    """Example inputs with the types of the file. Raises `UsageError` for another name, or numbers of another kind."""
    found = {}
    for key, x in given.items():
        entry = _entry(key, entries, name)
        if not torch.can_cast(x.dtype, entry.dtype):
            raise UsageError(f"{name}: expected input {key!r} of {_dtype(entry.dtype)}; got {_dtype(x.dtype)}")
        found[key] = x.to(entry.drawn_dtype)
    return found


def example_sizes(
    entries: Sequence[Entry], shapes: Mapping[str, Sequence[int]], length: int | None, layout: Layout, name: str
) -> dict[str, int]:
    """The sizes that the file leaves open, by name: as these shapes state them, or chosen. Raises `UsageError`."""
    sizes: dict[str, int] = {}
    for key, shape in shapes.items():
        entry = _entry(key, entries, name)
        fits = len(shape) == len(entry.sizes)
        for size, n in zip(entry.sizes, shape, strict=False):
            fits = fits and (size == n if isinstance(size, int) else "+" in size or sizes.setdefault(size, n) == n)
        if not fits:
            known = ", ".join(
                str(sizes.get(size, size)) if isinstance(size, str) else str(size) for size in entry.sizes
            )
            raise UsageError(f"{name}: expected input {key!r} of shape [{known}]; got {list(shape)}")
    rows = next((shape[0] for shape in shapes.values() if len(shape) > 1), ROWS)
    tokens = length or stated_length(entries, shapes, layout, name) or TOKENS
    for entry in sorted(entries, key=lambda entry: -len(entry.sizes)):  # a size of one axis may be that of rows
        for axis, size in enumerate(entry.sizes):
            if isinstance(size, str) and "+" not in size and not is_past(size):
                is_row = (axis == 0 and len(entry.sizes) > 1) or is_row_name(size)
                sizes.setdefault(size, rows if is_row else tokens)
    return sizes


def stated_length(
    entries: Sequence[Entry], shapes: Mapping[str, Sequence[int]], layout: Layout, name: str
) -> int | None:
    """The number of tokens in a stated shape; None if none of the shapes is that of the tokens."""
    stated = [entry for entry in entries if entry.name in shapes]
    tensors = {entry.name: torch.zeros((), dtype=entry.dtype).expand(*shapes[entry.name]) for entry in stated}
    found = token_axis([entry for entry in stated if entry.kind == "drawn"], tensors, layout, name)
    return None if found is None else tensors[found[0].name].shape[found[1]]


def token_axis(
    entries: Sequence[Entry], examples: Mapping[str, Tensor], layout: Layout, name: str
) -> tuple[Entry, int] | None:
    """The first of some inputs that has tokens, and the axis along which they run; None without one."""
    stated = layout.token_axis
    chosen = [entry for entry in entries if entry.name in examples]
    if not chosen:
        return None
    if isinstance(stated, Sequence):
        placed = dict(zip((entry.name for entry in chosen), stated, strict=False))
        found = next((entry for entry in chosen if placed.get(entry.name) is not None), None)
        return None if found is None else (found, int(placed[found.name] or 0) % max(len(found.sizes), 1))
    try:
        axes = resolve_token_axes(tuple(examples[entry.name] for entry in chosen), stated, name)
    except (SubjectError, UsageError):
        return None  # the subject is built with the same axes later, and says what is wrong with them
    return next((entry, axis) for entry, axis in zip(chosen, axes, strict=True) if axis is not None)


def check_length(
    length: int, entries: Sequence[Entry], examples: Mapping[str, Tensor], layout: Layout, name: str
) -> None:
    """Raises `UsageError` for a length that the file excludes."""
    found = token_axis([entry for entry in entries if entry.kind == "drawn"], examples, layout, name)
    if found is None:
        raise UsageError(
            f"{name}: expected no length, since no axis of its inputs is known to run over tokens; state one with "
            f"{TOKEN_AXIS_OPTION}, or sizes with --shape (in Python shapes=)"
        )
    entry, axis = found
    if isinstance(size := entry.sizes[axis], int) and size != length:
        raise UsageError(
            f"{name}: expected no other length than {size}, which the file fixes for axis {axis} of input "
            f"{entry.name!r}; got {length}"
        )
    if examples[entry.name].shape[axis] != length:
        raise UsageError(
            f"{name}: expected one length; got {length}, and an input {entry.name!r} with "
            f"{examples[entry.name].shape[axis]} tokens"
        )


def _entry(key: str, entries: Sequence[Entry], name: str) -> Entry:
    names = [entry.name for entry in entries]
    if key not in names:
        raise UsageError(
            f"{name}: expected the name of an input, one of {', '.join(names)}; got {key!r}{did_you_mean(key, names)}"
        )
    return entries[names.index(key)]


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
