"""Everything about one subject at one length that several laws need, computed once.

The captured graph, whether it is what really runs, which dimensions of the outputs run over tokens, and how
to run the subject (or, for a subject on the meta device, its tiny twin).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.auditing.runs import Runs, named, same_draws
from orderproof.errors import CaptureError, OrderproofError, SubjectError
from orderproof.laws import Axis, Law, TokenDim
from orderproof.prover.capture import Captured, capture, first_line
from orderproof.prover.run import difference, run
from orderproof.subjects import Subject
from orderproof.subjects.settings import PLAIN, in_setting
from orderproof.subjects.uncut import from_the_image

FIDELITY = 1e-4  # relative; exported and real outputs of 212 architectures agreed to 5e-7


@dataclass
class Examination:
    """One subject at one length."""

    subject: Subject
    length: int
    seed: int = 0
    notes: list[str] = field(default_factory=list)
    whole: bool = False  # only whole rows of the input are told apart: no dimension of an output runs over tokens
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # what others compute of it once
    _called: dict[str, Examination | str] = field(default_factory=dict, repr=False)

    def called(self, setting: str) -> Examination | str:
        """The same subject called in another setting; or why it cannot be."""
        if setting == PLAIN:
            return self
        if setting not in self._called:
            made = in_setting(self.subject, setting)
            self._called[setting] = (
                made if isinstance(made, str) else Examination(made, self.length, self.seed, notes=self.notes)
            )
        return self._called[setting]

    def asked(self, law: Law) -> Examination:
        """The examination this law is asked of: of whole rows, an image model is asked from the image on."""
        return self._uncut if law.whole_rows else self

    def __post_init__(self) -> None:
        """A subject whose input has no tokens is one of whole rows."""
        self.whole = self.whole or bool(self.subject.rows_only)

    @cached_property
    def _uncut(self) -> Examination:
        """The same from the image on; itself where nothing is cut, or the rows are not those of the image."""
        if self.subject.cut is None or self.failure is not None or len(self.captured.inputs) != 1:
            return self
        shape = self.captured.inputs[0].meta["val"].shape
        if len(shape) < 2 or shape[0] != self.rows or self.rows == 1:
            return self
        subject = from_the_image(self.subject)
        made = Examination(subject, subject.length, self.seed, notes=self.notes, whole=True)
        made.kept.update(self.kept)
        made.captured = replace(self.captured, start=None)
        return made

    @cached_property
    def rows(self) -> int:
        """The size of the batch; 1 where rows do not come first."""
        if self.failure is None:
            shapes = [(n.meta["val"].shape, axis) for n, axis in self.starts.items()]
        else:
            given = self.subject.sample(self.length, self.seed).inputs
            shapes = [(x.shape, axis) for x, axis in zip(given, self.subject.token_axes, strict=True)]
        return next((int(shape[0]) for shape, axis in shapes if axis == 1), 1)

    @cached_property
    def captured(self) -> Captured:
        """The graph. Raises `CaptureError` or `SubjectError`."""
        s = self.subject
        inputs = s.sample(self.length, self.seed).inputs
        made = capture(s.module, inputs, values=s.values, quiet=s.quiet, cut=s.cut, inside=s.inside)
        if s.device == "meta":
            return made
        self.kept["difference"] = self._difference_from(made)
        if made.read or self.kept["difference"] is None:
            return made
        # Another branch than the one that runs: a constant that could not be read may have decided which.
        try:
            again = capture(s.module, inputs, values=s.values, quiet=s.quiet, cut=s.cut, inside=s.inside, read=True)
        except CaptureError:
            return made
        if self._difference_from(again) is not None:
            return made
        self.kept["difference"] = None
        return again

    @cached_property
    def failure(self) -> str | None:
        """Why there is no graph, or None."""
        try:
            _ = self.captured
        except CaptureError as error:
            return str(error)
        return None

    @cached_property
    def starts(self) -> dict[Node, Axis]:
        """The nodes the walk starts from, and the token axis of each."""
        if self.captured.start is not None:
            return {self.captured.start: 1}
        return dict(zip(self.captured.inputs, self.subject.token_axes, strict=True))

    @cached_property
    def tokens(self) -> int:
        """How many tokens the walk's input has (for vision: patches)."""
        if self.failure is not None and self.subject.cut is None:  # no graph, but the model can still be run
            sample = self.subject.sample(self.length, self.seed)
            sizes = [
                x.shape[d] for x, d in zip(sample.inputs, self.subject.token_axes, strict=True) if isinstance(d, int)
            ]
            if sizes:
                return int(sizes[0])
        for node, axis in self.starts.items() if self.failure is None else ():
            if isinstance(axis, int):
                return int(node.meta["val"].shape[axis])
        if self.failure is not None:
            return self.length
        raise SubjectError(f"{self.subject.name}: no input has a token axis; name it with token_axis=")

    @cached_property
    def numbers(self) -> Examination:
        """The examination to take numbers from: this one, or that of the tiny twin when there are no weights."""
        if self.subject.device != "meta":
            return self
        if self.subject.twin is None:
            raise SubjectError(f"{self.subject.name}: on the meta device without a twin to run")
        twin = self.subject.twin()
        return Examination(twin, twin.length, self.seed, whole=self.whole)

    @cached_property
    def runs(self) -> Runs:
        """How to run it with its own weights."""
        return Runs(self.subject, self.captured if self.failure is None else None)

    def random_runs(self, seed: int) -> Runs:
        """How to run it with every weight drawn anew."""
        captured = self.captured if self.failure is None else None
        return Runs(self.subject, captured, weights="random", seed=seed)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every output."""
        if self.failure is None:
            return {k: tuple(int(s) for s in n.meta["val"].shape) for k, n in self.captured.outputs.items()}
        return {k: tuple(v.shape) for k, v in self.runs.outputs(self.runs.draw(self.length, self.seed).inputs).items()}

    @cached_property
    def output_dims(self) -> dict[str, tuple[TokenDim, ...]]:
        """The dimensions of each output that run over tokens: those that grow by one with each token."""
        if self.whole:
            return dict.fromkeys(self.shapes, ())
        grown = self._grown_shapes()
        found = {}
        for name, shape in self.shapes.items():
            dims = []
            for d, size in enumerate(shape):
                sizes = [size, *(g[name][d] for g in grown if name in g and len(g[name]) == len(shape))]
                steps = {b - a for a, b in pairwise(sizes)}
                if (grown and steps == {1}) or (not grown and self._looks_like_tokens(size)):
                    dims.append(TokenDim(d, size - self.tokens))
            found[name] = tuple(dims)
        return found

    def _looks_like_tokens(self, size: int) -> bool:
        # Without other lengths to compare (a vision model), the tokens and at most two prefix tokens.
        return 0 <= size - self.tokens <= 2

    def _grown_shapes(self) -> list[dict[str, tuple[int, ...]]]:
        if self.subject.cut is not None:
            return []
        try:
            with torch.no_grad():
                return [
                    {k: tuple(v.shape) for k, v in named(self.subject.module(*self.subject.sample(n).inputs)).items()}
                    for n in (self.length + 1, self.length + 2)
                ]
        except OrderproofError:
            return []
        except Exception as error:  # noqa: BLE001 - the model is not ours: anything may come
            self.notes.append(f"outputs at other lengths could not be seen: {type(error).__name__}")
            return []

    @cached_property
    def infidelity(self) -> str | None:
        """How the captured graph differs from the real module on the same inputs; None when it does not."""
        if self.failure is not None:
            return self.failure if self.numbers is self else self.numbers.infidelity
        if self.numbers is not self:
            if self.numbers.failure is None and self.numbers.captured.read and not self.captured.read:
                return "captured a different branch: constants decide it, which have no values on the meta device"
            return self.numbers.infidelity
        difference: str | None = self.kept["difference"]
        return difference

    def _difference_from(self, captured: Captured) -> str | None:
        sample = self.subject.sample(self.length, self.seed + 1)
        with torch.no_grad(), same_draws():
            real = named(self.subject.module(*[x.clone() for x in sample.inputs]))
        try:
            with same_draws():
                recorded = run(captured, tuple(x.clone() for x in sample.inputs))
        except Exception as error:  # noqa: BLE001 - a graph may hold what only the exporter can run
            return f"the recorded graph could not be run: {type(error).__name__}: {first_line(error)}"
        return _compare(real, recorded)


def _compare(real: dict[str, Tensor], recorded: dict[str, Tensor]) -> str | None:
    for name, found in recorded.items():
        expected = real.get(name)
        if expected is None or expected.shape != found.shape:
            return f"captured a different branch: the graph has an output {name!r} the model does not return"
        if not bool(torch.isfinite(expected.float()).all()):
            return f"the model's output {name!r} is not finite (NaN or infinity) on random input"
        gap = difference(expected, found)
        if not math.isfinite(gap) or gap > FIDELITY:
            return (
                f"captured a different branch: output {name!r} of the graph differs from the model's by {gap:.2g} "
                f"on the same input (model {float(expected.flatten()[0]):.6g}, graph {float(found.flatten()[0]):.6g})"
            )
    return None
