"""Grouping the steps of a proof by module; layers with equal proofs are shown once.

Two layers have equal proofs when, module by module, the same lemmas apply to the same operators in the same order. The
first of them is shown, with the number of layers that it represents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orderproof.records.audit import ProofStep

ModulePath = tuple[str, ...]


@dataclass(frozen=True)
class NumberedStep:
    """A step and its number in the proof."""

    number: int
    step: ProofStep


@dataclass(frozen=True)
class ModuleGroup:
    """The steps of one module, or of the same module in several layers."""

    path: ModulePath
    steps: tuple[NumberedStep, ...]
    layer_ranges: tuple[str, ...] = ()  # one text for each merged index: "0-5"
    repetitions: int = 1

    @property
    def module(self) -> str:
        """The dotted path, with * where layers are merged."""
        return ".".join(self.path)

    @property
    def lemmas(self) -> list[tuple[str, int]]:
        """The lemmas used here, in order of first use."""
        return list(Counter(line.step.lemma for line in self.steps).items())


def group_by_module(steps: Sequence[ProofStep]) -> tuple[ModuleGroup, ...]:
    """Group the steps of a proof by module, in order of first appearance."""
    modules: dict[str, list[NumberedStep]] = {}
    for number, step in enumerate(steps, 1):
        modules.setdefault(step.module, []).append(NumberedStep(number, step))
    groups = [
        ModuleGroup(tuple(module.split(".")) if module else (), tuple(lines)) for module, lines in modules.items()
    ]
    return tuple(_merge_identical_layers(groups, 0))


def _merge_identical_layers(groups: list[ModuleGroup], start: int) -> list[ModuleGroup]:
    """Merge over the first index at or after ``start`` in each path, then over the later ones."""
    blocks: dict[ModulePath, list[ModuleGroup]] = {}
    at: dict[ModulePath, int] = {}
    for group in groups:
        index = next((i for i in range(start, len(group.path)) if group.path[i].isdecimal()), None)
        block = group.path if index is None else group.path[: index + 1]
        blocks.setdefault(block, []).append(group)
        if index is not None:
            at[block] = index

    equal_blocks: dict[object, list[ModulePath]] = {}
    for block, members in blocks.items():
        key: object = block if block not in at else (block[:-1], _layer_signature(members, len(block)))
        equal_blocks.setdefault(key, []).append(block)

    merged: list[ModuleGroup] = []
    for same in equal_blocks.values():
        members = blocks[same[0]]
        if same[0] in at:
            members = _merge_identical_layers([_with_wildcard(g, same, at[same[0]]) for g in members], at[same[0]] + 1)
        merged.extend(members)
    return merged


def _layer_signature(members: list[ModuleGroup], depth: int) -> object:
    return tuple((g.path[depth:], tuple((line.step.operator, line.step.lemma) for line in g.steps)) for g in members)


def _with_wildcard(group: ModuleGroup, blocks: list[ModulePath], index: int) -> ModuleGroup:
    if len(blocks) == 1:
        return group
    path = (*group.path[:index], "*", *group.path[index + 1 :])
    layers = (*group.layer_ranges, _ranges([int(block[index]) for block in blocks]))
    return ModuleGroup(path, group.steps, layers, group.repetitions * len(blocks))


def _ranges(numbers: list[int]) -> str:
    """``0-4, 6-10``."""
    runs: list[list[int]] = []
    for n in sorted(numbers):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
