"""Tensors as expressions: the arguments of recorded calls, as names and slices of few variables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import ReproductionError
from orderproof.reproduction.model_code import LINE_LENGTH, literal

NAMES = {"input_ids": "ids", "attention_mask": "mask", "position_ids": "positions", "inputs_embeds": "embeddings"}
NAMES |= {f"decoder_{key}": value for key, value in NAMES.items()}
SEEDS = tuple(range(6)) + tuple(range(1000, 1006))  # with which orderproof draws tokens
MAX_CHANGES = 4  # elements
ROW_SELECTIONS = ([0], [1], [1, 0], [1, 0, 1])


class TensorVariables:
    """The variables of a script that hold tensors, and the lines that define them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._known: list[tuple[str, Tensor]] = []

    def expression(self, argument: str, value: Tensor) -> str:
        """An expression with this value: a variable, a part of one, or a new variable."""
        for name, known in self._known:
            for text, part in _parts(name, known, value):
                if part.dtype == value.dtype and torch.equal(part, value):
                    return text
        name = NAMES.get(argument, argument or "tokens")
        taken = sum(known.rstrip("0123456789") == name for known, _ in self._known)
        name += str(taken + 1) if taken else ""
        self.lines += self._changed(name, value) or definition(name, value)
        self._known.append((name, value))
        return name

    def _changed(self, name: str, value: Tensor) -> list[str]:
        """The lines for a long tensor that differs in few elements from another one; none if there is no such one."""
        for text, known in self._known:
            if known.shape != value.shape or known.dtype != value.dtype or value.dim() != 2:
                continue
            places = (known != value).nonzero()
            if len(places) <= MAX_CHANGES and not _short_literal(name, value):
                rows, columns = places.T.tolist()
                new = literal(value[rows, columns].tolist())
                return [f"{name} = {text}.clone()", f"{name}[{rows}, {columns}] = torch.tensor({new})"]
        return []

    def output(self, states: str) -> str:
        """A variable for the output of an encoder with these states."""
        line = f"encoder = transformers.modeling_outputs.BaseModelOutput({states})"
        if line not in self.lines:
            self.lines.append(line)
        return "encoder"


def _parts(name: str, known: Tensor, value: Tensor) -> Iterator[tuple[str, Tensor]]:
    """A tensor and its slices that have the shape of another one."""
    if known.shape == value.shape:
        yield name, known
    if known.dim() < 2 or known.dim() != value.dim() or known.shape[2:] != value.shape[2:]:
        return
    rows: list[tuple[str, Tensor]] = [(":", known)] if len(known) == len(value) else []
    for chosen in ROW_SELECTIONS:
        if len(chosen) == len(value) and max(chosen) < len(known):
            text = f"{chosen[0]}:{chosen[0] + 1}" if len(chosen) == 1 else str(chosen)
            rows.append((":1" if text == "0:1" else text, known[chosen]))
    width = value.shape[1]
    for (row_text, part), start in product(rows, range(known.shape[1] - width + 1)):
        column = f"{start or ''}:{start + width if start + width < known.shape[1] else ''}"
        if column == ":":
            yield f"{name}[{row_text}]", part
        else:
            yield f"{name}[{row_text}, {column}]", part[:, start : start + width]


def definition(name: str, value: Tensor) -> list[str]:
    """The lines that define a variable with this value. Raises `ReproductionError` if it has no short form."""
    text = _constant(value) or _short_literal(name, value) or _random(value)
    if text:
        return [f"{name} = {text}"]
    if value.is_floating_point() or value.dim() != 2:
        raise ReproductionError(f"the argument {name} {list(value.shape)} has no short form")
    rows = [line for row in value.tolist() for line in _wrapped(row)]
    return [f"{name} = torch.tensor([", *rows, "])  # fmt: skip"]


def _wrapped(row: list[Any]) -> list[str]:
    """A row of numbers over several lines."""
    lines, text = [], "    ["
    for k, value in enumerate(row):
        entry = f"{value}{', ' if k + 1 < len(row) else ']'}"
        if len(text) + len(entry) > LINE_LENGTH - 2:
            lines.append(text.rstrip())
            text = "     "
        text += entry
    return [*lines, text + ","]


def _constant(value: Tensor) -> str:
    shape = ", ".join(map(str, value.shape))
    kind = {torch.int64: ", dtype=torch.long", torch.bool: ", dtype=torch.bool"}.get(value.dtype, "")
    for number, name in ((1, "ones"), (0, "zeros")):
        if bool((value == number).all()):
            return f"torch.{name}({shape}{kind})"
    if value.dtype == torch.int64 and value.dim() == 2:
        first = int(value[0, 0])
        if torch.equal(value, torch.arange(first, first + value.shape[1]).expand_as(value)):
            ends = f"{first}, {first + value.shape[1]}" if first else str(value.shape[1])
            return f"torch.arange({ends}).repeat({len(value)}, 1)"
    return ""


def _short_literal(name: str, value: Tensor) -> str:
    if value.is_floating_point():
        return ""
    text = f"torch.tensor({literal(value.tolist()) if value.dtype != torch.bool else value.tolist()})"
    return text if len(name) + 3 + len(text) <= LINE_LENGTH else ""


def _random(value: Tensor) -> str:
    """The call that draws these numbers, if orderproof drew them with one of its seeds."""
    if value.dim() < 2:
        return ""
    if value.is_floating_point() and len(value) > 1 and bool((value == value[:1]).all()):
        return f"{text}.expand({len(value)}, -1, -1)" if (text := _random(value[:1])) and value.dim() > 2 else ""
    for seed, rows in product(SEEDS, sorted({len(value), 2})):
        shape = (rows, *value.shape[1:])
        drawn_by = f"generator=torch.Generator().manual_seed({seed})"
        cut = f"[:{len(value)}]" if rows > len(value) else ""
        generator = torch.Generator().manual_seed(seed)
        if value.is_floating_point():
            if torch.equal(torch.randn(shape, generator=generator)[: len(value)].to(value.dtype), value):
                return f"torch.randn({shape}, {drawn_by}){cut}"
        elif value.dtype == torch.int64:
            for low, high in ((8, 128), (8, 99), (8, int(value.max()) + 1)):
                if high > low and torch.equal(
                    torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))[: len(value)], value
                ):
                    return f"torch.randint({low}, {high}, {shape}, {drawn_by}){cut}"
    return ""
