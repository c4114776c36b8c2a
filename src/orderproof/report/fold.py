"""Folding a proof: its lines by module, and layers that are proved alike shown once.

Two layers are alike when, module by module, the same operators are settled by the same lemmas in the
same order. What is shown is then the first of them, with the number of layers it stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orderproof.record import Step

Path = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """A step and its number in the proof."""

    number: int
    step: Step


@dataclass(frozen=True)
class Group:
    """The lines of one module, or of the same module in several layers."""

    path: Path
    lines: tuple[Line, ...]
    layers: tuple[str, ...] = ()  # one text a folded index: "0-5"
    times: int = 1

    @property
    def module(self) -> str:
        """The dotted path, with * where layers were folded."""
        return ".".join(self.path)

    @property
    def lemmas(self) -> list[tuple[str, int]]:
        """The lemmas used here, in order of first use."""
        return list(Counter(line.step.lemma for line in self.lines).items())


def fold(steps: Sequence[Step]) -> tuple[Group, ...]:
    """Group the steps of a proof by module, in order of first appearance."""
    modules: dict[str, list[Line]] = {}
    for number, step in enumerate(steps, 1):
        modules.setdefault(step.module, []).append(Line(number, step))
    groups = [Group(tuple(module.split(".")) if module else (), tuple(lines)) for module, lines in modules.items()]
    return tuple(_fold_layers(groups, 0))


def _fold_layers(groups: list[Group], start: int) -> list[Group]:
    """Fold the first index found at or after ``start`` in each path, then the ones behind it."""
    blocks: dict[Path, list[Group]] = {}
    at: dict[Path, int] = {}
    for group in groups:
        index = next((i for i in range(start, len(group.path)) if group.path[i].isdecimal()), None)
        block = group.path if index is None else group.path[: index + 1]
        blocks.setdefault(block, []).append(group)
        if index is not None:
            at[block] = index

    alike: dict[object, list[Path]] = {}
    for block, members in blocks.items():
        key: object = block if block not in at else (block[:-1], _signature(members, len(block)))
        alike.setdefault(key, []).append(block)

    folded: list[Group] = []
    for same in alike.values():
        members = blocks[same[0]]
        if same[0] in at:
            members = _fold_layers([_starred(g, same, at[same[0]]) for g in members], at[same[0]] + 1)
        folded.extend(members)
    return folded


def _signature(members: list[Group], depth: int) -> object:
    return tuple((g.path[depth:], tuple((line.step.operator, line.step.lemma) for line in g.lines)) for g in members)


def _starred(group: Group, blocks: list[Path], index: int) -> Group:
    if len(blocks) == 1:
        return group
    path = (*group.path[:index], "*", *group.path[index + 1 :])
    layers = (*group.layers, _ranges([int(block[index]) for block in blocks]))
    return Group(path, group.lines, layers, group.times * len(blocks))


def _ranges(numbers: list[int]) -> str:
    """``0-4, 6-10``."""
    runs: list[list[int]] = []
    for n in sorted(numbers):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
