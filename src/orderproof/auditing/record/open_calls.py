"""The recordings of a subject with open sizes, by call mode, and what is proved on them.

Where a call asks about the number of tokens, further recordings extend the lengths for which something is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from torch import nn

from orderproof.auditing.record.length_ranges import EXAMPLE_ROWS, Piece, length_bounds
from orderproof.auditing.record.open_comparison import disagreement
from orderproof.auditing.record.open_examples import open_examples
from orderproof.auditing.record.open_inputs import EXAMPLE_LENGTH, NO_TOKENS, OPEN_MODES, NoTheorem, OpenInputs
from orderproof.errors import CaptureError, first_line
from orderproof.laws import ProvedLaw
from orderproof.logic.solver import Solver
from orderproof.logic.terms import Term
from orderproof.models import Subject
from orderproof.models.axes import OutputAxes
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.models.subject import prime_length, tensor_sizes
from orderproof.recording.capture import recorded_in_some_way
from orderproof.recording.open_recording import OpenInput, UnreadableCondition, record_open
from orderproof.recording.open_sizes import LEAST_SIZE
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.branches import is_possible, only_answer
from orderproof.theorems.equivariance import EntryMap, map_entries, prove_equivariance
from orderproof.theorems.output_proof import OutputProof
from orderproof.theorems.statement import BATCH, TOKENS, Equivariance, Statement
from orderproof.time_limit import TimeLimitExceeded

MAX_EXAMPLE_LENGTH = 4500  # [tokens] of a recording: an eager call of that length is compared with it
MAX_PIECES = 6  # recordings for different lengths
MAX_NODES = 10_000  # of recordings, after which no recording is made that only widens a theorem


Proofs = list[tuple[Piece, dict[str, OutputProof]]]
EntryMaps = list[tuple[Piece, dict[str, EntryMap]]]


@dataclass
class OpenCalls:
    """The open recordings of a subject, by call mode; each is made once.

    Attributes:
        subject: The subject.
        length: The number of tokens, if only the number of rows is open; None if both are.
        solver: Decides implications.
        inputs: The inputs of the call modes.

    """

    subject: Subject
    length: int | None = None  # [tokens]
    solver: Solver = field(default_factory=Solver)
    inputs: OpenInputs = field(init=False)
    _pieces: dict[str, list[Piece] | str] = field(default_factory=dict)
    _roles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _same_calls: dict[tuple[tuple[str, ...], bool], str] = field(default_factory=dict)
    _nodes: int = 0  # of all recordings
    _proofs: dict[tuple[str, str], Proofs] = field(default_factory=dict)  # by law and call mode
    _maps: dict[str, EntryMaps] = field(default_factory=dict)
    _disagreements: dict[str, str] = field(default_factory=dict)
    _recorded_again: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.inputs = OpenInputs(self.subject, self.length)

    @property
    def open_length(self) -> bool:
        """The number of tokens is open, and not only the number of rows."""
        return self.length is None

    def may_widen(self, call_mode: str) -> bool:
        """True if a recording of a call mode that only widens a theorem was made, or is worth its time."""
        return self._nodes < MAX_NODES or self._recorded_mode(call_mode) in self._pieces

    def statement(self, law: ProvedLaw, call_mode: str) -> Statement | Equivariance:
        """The statement of a law for a call mode. Raises `NoTheorem`."""
        if call_mode not in OPEN_MODES:
            raise NoTheorem("a theorem is made for calls without a mask, and for every mask, not for this one")
        statement = law.open_statement(frozenset(self.inputs.shared_roles(call_mode)))
        if statement is None:
            raise NoTheorem("the law has no statement for every length yet")
        if not self.open_length and (call_mode != DEFAULT_SETTING or not _is_about_rows(statement)):
            raise NoTheorem("the law is not about rows only")
        return statement

    def proofs(self, law: ProvedLaw, call_mode: str) -> Proofs:
        """The proofs on the recordings of a call mode, which come for each range of lengths. Raises `NoTheorem`."""
        key = (law.name, call_mode)
        if key not in self._proofs:
            statement, roles, pieces = self.statement(law, call_mode), self.roles(call_mode), self.recorded(call_mode)
            if isinstance(statement, Equivariance):
                found = [(piece, prove_equivariance(piece.graphs, roles, self.solver)) for piece in pieces]
            else:
                found = [(piece, prove_agreement(piece.graphs, roles, statement, self.solver)) for piece in pieces]
            self._proofs[key] = found
        return self._proofs[key]

    def entry_maps(self, call_mode: str) -> EntryMaps:
        """Where order enters the recordings of a call mode. Raises `NoTheorem`."""
        if call_mode not in self._maps:
            roles, pieces = self.roles(call_mode), self.recorded(call_mode)
            self._maps[call_mode] = [(piece, map_entries(piece.graphs, roles, self.solver)) for piece in pieces]
        return self._maps[call_mode]

    def map_proofs(self, call_mode: str) -> Proofs:
        """The proofs that order enters a call mode at constants only. Raises `NoTheorem`."""
        maps = self.entry_maps(call_mode)
        return [(piece, {name: one.proof for name, one in found.items()}) for piece, found in maps]

    def roles(self, call_mode: str) -> tuple[str, ...]:
        """The roles of the inputs of a call mode. Raises `NoTheorem`."""
        self.recorded(call_mode)
        return self._roles[call_mode]

    def recorded(self, call_mode: str) -> list[Piece]:
        """The recordings of a call mode. Raises `NoTheorem`.

        Call modes with the same inputs share them: a recording does not depend on the values of its inputs.
        """
        asked, call_mode = call_mode, self._recorded_mode(call_mode)
        if call_mode not in self._pieces:
            try:
                pieces = list(self._record(call_mode))
                self._pieces[call_mode] = pieces or NO_TOKENS  # it takes one only, which is not recorded as open
            except TimeLimitExceeded:  # for the next law it would take as long
                self._pieces[call_mode] = "there was no time to record it with open sizes"
                raise
            except (CaptureError, NoTheorem) as error:
                self._pieces[call_mode] = str(error)
            except Exception as error:  # noqa: BLE001 - third-party code: a call with open sizes may fail in any way
                self._pieces[call_mode] = f"it cannot be recorded with open sizes: {first_line(error)}"
        found = self._pieces[call_mode]
        if isinstance(found, str):
            raise NoTheorem(found)
        self._roles[asked] = self._roles[call_mode]
        return found

    def _recorded_mode(self, call_mode: str) -> str:
        """The first call mode that was asked for with the inputs of this one: as a causal model's documents and ids.

        Patches that a recording may need differ where position ids may restart, so `packed` shares with none.
        """
        key = (self.inputs.shared_roles(call_mode), call_mode == "packed")
        return self._same_calls.setdefault(key, call_mode)

    def has_axes(self, call_mode: str, output: str, axes: OutputAxes | None) -> bool:
        """True if an output of the recordings runs over rows and tokens along these axes."""
        if axes is None or (axes.unknown_tokens and self.open_length):
            return False
        if axes.unknown_rows:
            return self.open_length
        graphs = [g for piece in self.recorded(call_mode) for g in piece.graphs if not g.is_cut_off]
        if any(output not in graph.outputs for graph in graphs):
            return False
        shapes = [g.shape(g.outputs[output]) for g in graphs]
        tokens = [run.axis for run in axes.tokens] if self.open_length else []
        rows = [] if axes.row is None else [axes.row]
        return all(
            _places(shape, TOKENS) == tokens
            and _places(shape, BATCH) == rows
            and all(shape[axis] is TOKENS for axis in tokens)  # an equal size may be that of another axis
            for shape in shapes
        )

    def _record(self, call_mode: str) -> Iterator[Piece]:
        module, inputs, roles = self.inputs.call(call_mode)
        self._roles[call_mode] = roles
        if self.length is not None:
            # No size of the inputs, which are fixed, is the number of tokens.
            yield self._piece(call_mode, module, inputs, max(self.length, LEAST_SIZE))
            return
        avoided = tensor_sizes(module) | {x for one in inputs for x in one.sizes if isinstance(x, int)}
        example = prime_length(EXAMPLE_LENGTH, avoided)
        limit = self.subject.max_length
        example = example if limit is None else min(example, limit)
        pieces: list[Piece] = []
        tried: set[int] = set()
        left_out: set[bool] = set()  # of shorter and of longer calls than the example: those of which nothing follows
        while len(tried) < MAX_PIECES and (not tried or self.may_widen(call_mode)):
            lengths = (n for n in self._uncovered(pieces, example) if n not in tried and (n > example) not in left_out)
            tokens = next(lengths, None)
            if tokens is None:
                break
            tried.add(tokens)
            try:
                piece = self._piece(call_mode, module, inputs, tokens, kept=("tokens",) if pieces else ())
            except UnreadableCondition:
                left_out.add(tokens > example)
                continue
            except Exception:
                if pieces:  # the model refuses this number of tokens
                    continue
                raise
            if pieces and _open_axes(piece) != _open_axes(pieces[0]):  # a number is the size of an axis of tokens
                continue
            pieces.append(piece)
            yield piece

    def _uncovered(self, pieces: Sequence[Piece], example: int) -> Iterator[int]:
        """The lengths next to those of the recordings, the nearest to the example first and shorter ones before."""
        limit = MAX_EXAMPLE_LENGTH if self.subject.max_length is None else self.subject.max_length
        ends = sorted({example, *(p.least for p in pieces), *(p.greatest for p in pieces if p.greatest is not None)})
        above = [range(end + 1, end + EXAMPLE_LENGTH + 1) for end in ends if end >= example]
        for n in chain(range(example, LEAST_SIZE - 1, -1), *above):
            if n <= min(limit, MAX_EXAMPLE_LENGTH) and not any(piece.has(n) for piece in pieces):
                yield n

    def _piece(
        self, call_mode: str, module: nn.Module, inputs: Sequence[OpenInput], tokens: int, *, kept: Sequence[str] = ()
    ) -> Piece:
        sizes = {"batch": EXAMPLE_ROWS, "tokens": tokens}
        decide = partial(only_answer, roles=self._roles[call_mode], solver=self.solver)
        record = partial(
            record_open, module, inputs, sizes, values=self.subject.buffer_values, only_answer=decide, kept=kept
        )
        graphs, patched = recorded_in_some_way(record, self.inputs.replaced(call_mode))
        self._nodes += sum(len(graph.graph.nodes) for graph in graphs)
        least, greatest, others = length_bounds([c for graph in graphs for c in graph.conditions], self.solver)
        limit = self.subject.max_length if self.open_length else None
        if limit is not None:
            greatest = limit if greatest is None else min(greatest, limit)
        piece = Piece(tuple(graphs), least, greatest, others, patched)
        if not piece.has(tokens):  # from conditions that contradict each other everything would follow
            raise NoTheorem("the conditions of the recording do not hold for the length at which it was made")
        return piece

    def may_record_again(self, call_mode: str) -> bool:
        """True the first time that this is asked of a call mode."""
        mode = self._recorded_mode(call_mode)
        first = mode not in self._recorded_again
        self._recorded_again.add(mode)
        return first

    def forget(self, call_mode: str) -> None:
        """Forget the recordings of a call mode, so that they are made again."""
        mode = self._recorded_mode(call_mode)
        self._pieces.pop(mode, None)
        self._proofs.clear()
        self._maps.clear()
        for one in [one for one in self._disagreements if self._recorded_mode(one) == mode]:
            del self._disagreements[one]

    def disagreement(self, call_mode: str) -> str:
        """How the recordings of a call mode differ from eager calls; empty if they agree."""
        if call_mode not in self._disagreements:
            module, _, _ = self.inputs.call(call_mode)
            shared = self.inputs.names(call_mode)
            self._disagreements[call_mode] = disagreement(
                module,
                self.recorded(call_mode),
                lambda tokens, more: open_examples(self.subject, shared, call_mode, tokens, more=more),
                partial(is_possible, roles=self.roles(call_mode), solver=self.solver),
                None if self.length is None else [self.length],
                self.inputs.replaced(call_mode),
            )
        return self._disagreements[call_mode]


def _is_about_rows(statement: Statement | Equivariance) -> bool:
    """True if a statement does not speak of tokens."""
    return isinstance(statement, Statement) and not statement.per_token


def _open_axes(piece: Piece) -> set[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """The outputs of the recordings, each with its axes of tokens and of rows."""
    return {
        (name, tuple(_places(graph.shape(node), TOKENS)), tuple(_places(graph.shape(node), BATCH)))
        for graph in piece.graphs
        if not graph.is_cut_off
        for name, node in graph.outputs.items()
    }


def _places(shape: Sequence[Term], size: Term) -> list[int]:
    """The axes whose size depends on an open one."""
    return [axis for axis, term in enumerate(shape) if size.variables & term.variables]
