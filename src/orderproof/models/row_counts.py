"""A subject called with another number of rows than its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from orderproof.models.sample import Sample
from orderproof.models.subject import Subject

SEED_STEP = 1000  # between the draws of which an input with more rows is made


def with_row_count(subject: Subject, rows: int) -> Subject | None:
    """The subject with inputs of this many rows; None if no axis of its inputs is known to run over rows."""
    has_rows = inputs_with_rows(subject)
    if not any(has_rows) or subject.single_row:
        return None

    def draw(length: int, seed: int) -> Sample:
        samples = [subject.draw(length, seed)]
        place = has_rows.index(True)
        while sum(len(sample.inputs[place]) for sample in samples) < rows:
            samples.append(subject.draw(length, seed + SEED_STEP * len(samples)))
        inputs = (
            torch.cat([sample.inputs[k] for sample in samples])[:rows] if has else samples[0].inputs[k]
            for k, has in enumerate(has_rows)
        )
        return Sample(tuple(inputs), samples[0].labels)

    twin = None if subject.build_tiny_twin is None else _twin_with_row_count(subject.build_tiny_twin, rows)
    return replace(subject, draw=draw, build_tiny_twin=twin)


def _twin_with_row_count(build_twin: Callable[[], Subject], rows: int) -> Callable[[], Subject]:
    def build() -> Subject:
        twin = build_twin()
        return with_row_count(twin, rows) or twin

    return build


def inputs_with_rows(subject: Subject) -> tuple[bool, ...]:
    """True for each input whose first axis runs over rows."""
    if subject.row_inputs is not None:
        return subject.row_inputs
    return tuple(
        subject.starts_with_rows if axis is None else isinstance(axis, tuple) or axis > 0 for axis in subject.token_axes
    )
