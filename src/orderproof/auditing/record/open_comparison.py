"""Comparison of recordings with open sizes and the outputs of eager calls of several lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import torch
from torch import Tensor, nn

from orderproof.auditing.record.execution import named_tensors
from orderproof.auditing.record.length_ranges import COMPARED_LENGTHS, Piece
from orderproof.auditing.record.open_examples import MORE_EXAMPLES
from orderproof.cast_on_use import is_large
from orderproof.errors import first_line
from orderproof.kernel_switch import without_compiled_kernels
from orderproof.models.subject import prime_length, tensor_sizes
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.execution import relative_difference
from orderproof.recording.low_rank import low_rank_weights
from orderproof.recording.module_state import RANDOM_GENERATOR, preserved_state
from orderproof.recording.open_recording import OpenGraph
from orderproof.recording.open_sizes import LEAST_SIZE
from orderproof.recording.owned_state import OwnedState, owned_state
from orderproof.recording.restored_state import restored_state
from orderproof.seeded_random import seeded_random
from orderproof.theorems.open_execution import execute_open
from orderproof.tolerances import SAME_GRAPH

Examples = Callable[[int, int], Iterator[tuple[Tensor, ...]]]
MIN_BEYOND, MAX_BEYOND = 67, 320  # [tokens]
MORE_LENGTHS = 4  # next to the compared ones, for a branch that no call takes


def disagreement(
    module: nn.Module, pieces: Sequence[Piece], examples: Examples,
    is_possible: Callable[[OpenGraph], bool], lengths: Sequence[int] | None = None,
    replaced: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> str:  # fmt: skip
    """How recordings differ from eager calls of a module; empty if they agree.

    Args:
        module: The module that was recorded.
        pieces: Its recordings, each for a range of lengths.
        examples: The inputs of calls, by their number of tokens and the number of a further choice of masks.
        is_possible: False of a recording whose branches no inputs take.
        lengths: The numbers of tokens of the calls, if the recordings have no open one.
        replaced: The block in which a recording was made for which parts of the model were replaced.

    """
    comparison = _Comparison(module)
    for patched, group in groupby(pieces, lambda piece: bool(piece.patched_because)):
        own = list(group)
        # What is replaced is replaced first: the state of the module includes the functions that it calls.
        with replaced() if patched else nullcontext(), comparison.of_state_changes(own):
            for piece in own:
                if found := _compare_piece(comparison, piece, examples, is_possible, lengths):
                    return found
    return "" if comparison.taken else comparison.failure or "no call of several rows could be compared with it"


def _compare_piece(
    comparison: _Comparison, piece: Piece, examples: Examples, is_possible: Callable[[OpenGraph], bool],
    lengths: Sequence[int] | None,
) -> str:  # fmt: skip
    compared = _compared_lengths(piece, comparison.module) if lengths is None else lengths
    if not compared:
        return "no length of its range could be compared"
    for tokens in compared:
        # A long call takes most of the time. It is compared once where no branch depends on the inputs besides tokens.
        once = lengths is None and tokens > max(COMPARED_LENGTHS) and len(piece.graphs) == 1
        for inputs in list(examples(tokens, 0))[-1 if once else 0 :]:
            if found := comparison.difference(piece, inputs, tokens):
                return found
    for graph in piece.graphs:
        if not (graph.is_cut_off or id(graph) in comparison.taken) and is_possible(graph):
            if found := _compare_branch(comparison, piece, graph, examples, compared):
                return found
    return ""


def _compared_lengths(piece: Piece, module: nn.Module) -> list[int]:
    """The lengths [tokens] of the calls with which a recording is compared, from the shortest to the longest."""
    beyond, longest = _beyond(piece, module), max(COMPARED_LENGTHS)
    replaced = beyond and piece.least < longest  # by a longer one
    return [*(n for n in piece.compared_lengths if not (replaced and n == longest)), *beyond]


def _beyond(piece: Piece, module: nn.Module) -> list[int]:
    """A length [tokens] above the numbers in the code of a module, and the sizes of its tensors, up to a limit.

    A program that treats long calls in another way compares their length with some number, or indexes a table with it.
    """
    numbers = tensor_sizes(module) | owned_state(module).numbers
    above = max((n for n in numbers if n < MAX_BEYOND), default=0) + 1
    return [n for n in [prime_length(max(above, MIN_BEYOND), ())] if piece.has(n)]


def _compare_branch(
    comparison: _Comparison, piece: Piece, graph: OpenGraph, examples: Examples, lengths: Sequence[int]
) -> str:
    """How a recording of a branch that no call took so far differs from one that takes it; why there is none."""
    near = range(max(lengths), max(lengths) + MORE_LENGTHS)
    for tokens in [*lengths, *(n for n in near if piece.has(n))]:
        for more in range(1, MORE_EXAMPLES + 1):
            for inputs in examples(tokens, more):
                if found := comparison.difference(piece, inputs, tokens):
                    return found
                if id(graph) in comparison.taken:
                    return ""
    if not comparison.taken:
        return comparison.failure
    lines = dict.fromkeys(question.line.removeprefix(", ") for question in graph.questions)
    return f"no compared call takes a branch at {', '.join(lines)}"


@dataclass
class _Comparison:
    """The comparison of calls of a module with recordings.

    Attributes:
        module: The module.
        taken: The ids of the recordings with which a call was compared.
        failure: How the last call failed that could not be compared.

    """

    module: nn.Module
    taken: set[int] = field(default_factory=set)
    failure: str = ""
    _reached: OwnedState | None = None  # if calls change it

    @contextmanager
    def of_state_changes(self, pieces: Sequence[Piece]) -> Iterator[None]:
        """A block of comparisons whose changes of the module's state are undone.

        If the recorded calls change it, each call starts from the state at that time: a recording is of one call.
        """
        changed = any(set(graph.changed_state) - {RANDOM_GENERATOR} for piece in pieces for graph in piece.graphs)
        reached = owned_state(self.module)
        self._reached = reached if changed else None
        with preserved_state(self.module, reached):
            yield

    def difference(self, piece: Piece, inputs: tuple[Tensor, ...], tokens: int) -> str:
        """How a call differs from its recording; empty if it does not, or if it fails or has too few rows.

        A large module is called with weights of low rank first: with its own, a call takes many times as long.
        """
        if len(inputs[0]) < LEAST_SIZE:
            return ""
        if self._is_large:
            with low_rank_weights(self.module) as replaced:
                graph = self._described(piece, inputs, tokens, replaced)
            if isinstance(graph, OpenGraph):
                self.taken.add(id(graph))
                return ""
        outputs = self._outputs(inputs)
        if isinstance(outputs, str):  # a proof is about calls in which no operator raises an error
            self.failure = outputs
            return ""
        graph = _recording_of(piece, outputs, inputs, {"batch": len(inputs[0]), "tokens": tokens}, {})
        if isinstance(graph, OpenGraph):
            self.taken.add(id(graph))
            return ""
        return f"with {len(inputs[0])} rows of {tokens} tokens {graph}"

    def _described(
        self, piece: Piece, inputs: tuple[Tensor, ...], tokens: int, replaced: Mapping[int, Tensor]
    ) -> OpenGraph | str:
        """The recording that describes a call of the module with these weights, by the memory of its own."""
        outputs = self._outputs(inputs)
        if isinstance(outputs, str):
            return outputs
        return _recording_of(piece, outputs, inputs, {"batch": len(inputs[0]), "tokens": tokens}, replaced)

    @cached_property
    def _is_large(self) -> bool:
        return is_large(self.module)

    def _first_state(self) -> AbstractContextManager[None]:
        return nullcontext() if self._reached is None else restored_state(self.module, self._reached)

    def _outputs(self, inputs: tuple[Tensor, ...]) -> dict[str, Tensor] | str:
        """The outputs of an eager call, or how it fails."""
        try:
            with (
                self._first_state(), torch.no_grad(), seeded_random(0),
                without_compilation(), without_compiled_kernels(),
            ):  # fmt: skip
                return named_tensors(self.module(*(x.clone() for x in inputs)))
        except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
            return f"an eager call fails: {first_line(error)}"


def _recording_of(
    piece: Piece, real: dict[str, Tensor], inputs: tuple[Tensor, ...], sizes: Mapping[str, int],
    replaced: Mapping[int, Tensor],
) -> OpenGraph | str:  # fmt: skip
    """The recording that describes a call; how it differs. `replaced`: weights by the memory of those in its place."""
    try:
        found = [(graph, execute_open(graph, inputs, sizes, replaced)) for graph in piece.graphs]
    except Exception as error:  # noqa: BLE001 - a recording that is not the call's may fail in any way
        return f"the recording cannot be run: {first_line(error)}"
    taken = [(graph, outputs) for graph, outputs in found if outputs is not None]
    if len(taken) != 1:
        return f"{len(taken)} of {len(piece.graphs)} recordings describe the call"
    ((graph, own),) = taken
    for name, expected in real.items():
        if name not in own or own[name].shape != expected.shape:
            return f"the recording has no output {name} of this shape"
        if relative_difference(expected, own[name]) > SAME_GRAPH:
            return f"the recording computes another {name}"
    return graph
