"""Proofs of laws for every number of tokens and rows, and every value of the inputs that both runs share.

The subject is recorded with open sizes, and the law's open statement is proved on the recordings. Where the call asks
about the number of tokens, further recordings extend the lengths for which it is proved. Each recording is compared
with eager calls at several lengths before anything is claimed of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from orderproof.auditing.context import AuditContext
from orderproof.auditing.execution import fixed_rng, named_tensors
from orderproof.auditing.length_ranges import EXAMPLE_ROWS, Coverage, Piece, covered_lengths, length_bounds
from orderproof.errors import INTERNAL_ERROR, CaptureError, first_line
from orderproof.kernel_switch import without_compiled_kernels
from orderproof.laws import ProvedLaw
from orderproof.models import Subject
from orderproof.models.axes import OutputAxes
from orderproof.models.sample import seeded_generator
from orderproof.models.settings import DEFAULT_SETTING, candidate_inputs, mask_dtype
from orderproof.models.subject import prime_length, tensor_sizes
from orderproof.prover.captured_graph import module_path
from orderproof.prover.compiled_code import without_compilation
from orderproof.prover.execution import relative_difference
from orderproof.prover.logic.solver import Solver
from orderproof.prover.logic.terms import Term
from orderproof.prover.recording.module_state import preserved_state
from orderproof.prover.recording.open_recording import OpenInput, record_open
from orderproof.prover.recording.open_sizes import LEAST_SIZE
from orderproof.prover.symbolic.equivariance.theorem import FIXED, EntryMap, map_entries, prove_equivariance
from orderproof.prover.symbolic.open_execution import execute_open
from orderproof.prover.symbolic.statement import BATCH, BLOCKS, MASK, POSITIONS, TOKENS, Equivariance, Statement
from orderproof.prover.symbolic.theorem import TOKEN_INPUT, OutputProof, prove
from orderproof.records.audit import OPEN_CALL_ASSUMPTION, Finding, Theorem
from orderproof.tolerances import SAME_GRAPH

EXAMPLE_LENGTH = 23  # [tokens] of an open recording: more than the windows of tiny models
MAX_PIECES = 6  # recordings for different lengths
MAX_NODES = 10_000  # of recordings, after which no recording is made that only widens a theorem
OPEN_MODES = (DEFAULT_SETTING, "padded", "packed", "blocked", "labelled")  # in which the inputs of a setting are open


class NoTheorem(Exception):
    """Nothing is proved for every length; the message says why."""


Proofs = list[tuple[Piece, dict[str, OutputProof]]]


@dataclass
class OpenCalls:
    """The open recordings of a subject, by call mode; each is made once."""

    subject: Subject
    solver: Solver = field(default_factory=Solver)
    _pieces: dict[str, list[Piece] | str] = field(default_factory=dict)
    _roles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _shared: dict[str, tuple[str, ...]] = field(default_factory=dict)  # inputs besides the tokens
    _nodes: int = 0  # of all recordings
    _differences: dict[str, str] = field(default_factory=dict)

    def prove(self, law: ProvedLaw, call_mode: str) -> dict[str, Theorem]:
        """The theorem about each output of a call mode. Raises `NoTheorem`."""
        statement = self.statement(law, call_mode)
        found = self.proofs(law, call_mode)
        first = found[0][1]
        held = [f"input_{k}" for k, role in enumerate(self._roles[call_mode]) if role == FIXED]
        same = (f"the same in both runs: {', '.join(held)}",) if held else ()
        theorems = {name: join_theorem(name, found, statement, self.solver) for name in first}
        return {
            name: theorem.model_copy(update={"assumptions": (*theorem.assumptions, *same)})
            if theorem.proved
            else theorem
            for name, theorem in theorems.items()
        }

    def may_widen(self, call_mode: str) -> bool:
        """True if a recording of a call mode that only widens a theorem was made, or is worth its time."""
        return self._nodes < MAX_NODES or call_mode in self._pieces

    def statement(self, law: ProvedLaw, call_mode: str) -> Statement | Equivariance:
        """The statement of a law for a call mode. Raises `NoTheorem`."""
        if call_mode not in OPEN_MODES:
            raise NoTheorem("its inputs are not open yet in this call mode")
        statement = law.open_statement(frozenset(self._inputs(call_mode)))
        if statement is None:
            raise NoTheorem("the law has no statement for every length yet")
        return statement

    def proofs(self, law: ProvedLaw, call_mode: str) -> Proofs:
        """The proofs on the recordings of a call mode, which come for each range of lengths. Raises `NoTheorem`."""
        statement, pieces = self.statement(law, call_mode), self.recorded(call_mode)
        roles = self._roles[call_mode]
        if isinstance(statement, Equivariance):
            return [(piece, prove_equivariance(piece.graphs, roles, self.solver)) for piece in pieces]
        return [(piece, prove(piece.graphs, roles, statement, self.solver)) for piece in pieces]

    def entry_maps(self, call_mode: str) -> list[tuple[Piece, dict[str, EntryMap]]]:
        """Where order enters the recordings of a call mode. Raises `NoTheorem`."""
        roles = self.roles(call_mode)
        return [(piece, map_entries(piece.graphs, roles, self.solver)) for piece in self.recorded(call_mode)]

    def map_proofs(self, call_mode: str) -> Proofs:
        """The proofs that order enters a call mode at constants only. Raises `NoTheorem`."""
        maps = self.entry_maps(call_mode)
        return [(piece, {name: one.proof for name, one in found.items()}) for piece, found in maps]

    def roles(self, call_mode: str) -> tuple[str, ...]:
        """The roles of the inputs of a call mode. Raises `NoTheorem`."""
        self.recorded(call_mode)
        return self._roles[call_mode]

    def recorded(self, call_mode: str) -> list[Piece]:
        """The recordings of a call mode. Raises `NoTheorem`."""
        if call_mode not in self._pieces:
            try:
                self._pieces[call_mode] = list(self._record(call_mode))
            except (CaptureError, NoTheorem) as error:
                self._pieces[call_mode] = str(error)
            except Exception as error:  # noqa: BLE001 - third-party code: a call with open sizes may fail in any way
                self._pieces[call_mode] = f"it cannot be recorded with open sizes: {first_line(error)}"
        found = self._pieces[call_mode]
        if isinstance(found, str):
            raise NoTheorem(found)
        return found

    def has_axes(self, call_mode: str, output: str, axes: OutputAxes | None) -> bool:
        """True if an output of the recordings runs over rows and tokens along these axes."""
        if axes is None or axes.unknown_rows or axes.unknown_tokens:
            return axes is not None and not axes.unknown_tokens
        shapes = [g.shape(g.outputs[output]) for piece in self.recorded(call_mode) for g in piece.graphs]
        tokens = [run.axis for run in axes.tokens]
        rows = [] if axes.row is None else [axes.row]
        return all(_places(shape, TOKENS) == tokens and _places(shape, BATCH) == rows for shape in shapes)

    def _record(self, call_mode: str) -> Iterator[Piece]:
        module, inputs, roles = self.call(call_mode)
        self._roles[call_mode] = roles
        avoided = tensor_sizes(module) | {x for one in inputs for x in one.sizes if isinstance(x, int)}
        example = prime_length(EXAMPLE_LENGTH, avoided)
        limit = self.subject.max_length
        example = example if limit is None else min(example, limit)
        pieces: list[Piece] = []
        tried: set[int] = set()
        while len(tried) < MAX_PIECES and (not tried or self.may_widen(call_mode)):
            tokens = next((n for n in self._uncovered(pieces, example) if n not in tried), None)
            if tokens is None:
                break
            tried.add(tokens)
            try:
                piece = self._piece(module, inputs, tokens)
            except Exception:
                if pieces:  # the model refuses this number of tokens
                    continue
                raise
            pieces.append(piece)
            yield piece

    def _uncovered(self, pieces: Sequence[Piece], example: int) -> Iterator[int]:
        """The lengths next to those of the recordings, the nearest to the example first and shorter ones before."""
        limit = self.subject.max_length
        ends = [example, *(piece.least for piece in pieces), *(p.greatest for p in pieces if p.greatest is not None)]
        last = max(ends) + EXAMPLE_LENGTH
        for n in [*range(example, LEAST_SIZE - 1, -1), *range(example + 1, min(last, limit or last) + 1)]:
            if not any(piece.has(n) for piece in pieces):
                yield n

    def _piece(self, module: nn.Module, inputs: Sequence[OpenInput], tokens: int) -> Piece:
        sizes = {"batch": EXAMPLE_ROWS, "tokens": tokens}
        patched = ""
        try:
            graphs = record_open(module, inputs, sizes)
        except Exception as error:
            if self.subject.export_context is nullcontext:
                raise
            patched = first_line(error)
            with self.subject.export_context():
                graphs = record_open(module, inputs, sizes)
        self._nodes += sum(len(graph.graph.nodes) for graph in graphs)
        least, greatest, others = length_bounds([c for graph in graphs for c in graph.conditions], self.solver)
        limit = self.subject.max_length
        if limit is not None:
            greatest = limit if greatest is None else min(greatest, limit)
        piece = Piece(tuple(graphs), least, greatest, others, patched)
        if not piece.has(tokens):  # from conditions that contradict each other everything would follow
            raise NoTheorem("the conditions of the recording do not hold for the length at which it was made")
        return piece

    def _inputs(self, call_mode: str) -> tuple[str, ...]:
        """The inputs of a call mode besides the tokens, the first that the module takes."""
        if call_mode not in self._shared:
            self._shared[call_mode] = self._accepted(call_mode)
        return self._shared[call_mode]

    def _accepted(self, call_mode: str) -> tuple[str, ...]:
        if call_mode == DEFAULT_SETTING:
            return ()
        candidates = candidate_inputs(self.subject, call_mode)
        for names in candidates[:-1]:
            setting = self.subject.bind_inputs and self.subject.bind_inputs(names, call_mode)
            if setting and (self.subject.device == "meta" or not self._call_fails(setting[0].eval(), call_mode, names)):
                return names
        return candidates[-1]

    def _call_fails(self, module: nn.Module, call_mode: str, names: tuple[str, ...]) -> bool:
        try:
            with torch.no_grad(), preserved_state(module):
                module(*next(self._examples(call_mode, EXAMPLE_LENGTH, names)))
        except Exception:  # noqa: BLE001 - third-party code: it does not take these inputs
            return True
        return False

    def call(self, call_mode: str) -> tuple[nn.Module, list[OpenInput], tuple[str, ...]]:
        """The module of a call mode, its open inputs, and their roles."""
        subject, shared = self.subject, self._inputs(call_mode)
        samples = subject.sample(subject.default_length, 0).inputs
        inputs, roles = [], []
        for k, (x, axis) in enumerate(zip(samples, subject.token_axes, strict=True)):
            sizes: list[int | str] = list(x.shape)
            if isinstance(axis, int):
                sizes[axis] = "tokens"
                if axis:
                    sizes[0] = "batch"
            elif axis is not None:
                raise NoTheorem("an input has several token axes")
            inputs.append(OpenInput(f"input_{k}", tuple(sizes), x.dtype, fixed=axis is None))
            roles.append(FIXED if axis is None else TOKEN_INPUT)
        if TOKEN_INPUT not in roles:
            raise NoTheorem("no input has a token axis")
        module: nn.Module = subject.module
        if shared:
            bound = None if subject.bind_inputs is None else subject.bind_inputs(shared, call_mode)
            if bound is None:
                raise NoTheorem("it does not take the inputs of this call mode")
            module = bound[0].eval()
        dtype = mask_dtype(module, samples[0])
        for name in shared:
            sizes = ["batch", 1, "tokens", "tokens"] if name == BLOCKS else ["batch", "tokens"]
            inputs.append(OpenInput(name, tuple(sizes), dtype if name == BLOCKS else torch.int64, fixed=True))
        return module, inputs, (*roles, *shared)

    # ------------------------------------------------------------------ comparison with eager calls

    def difference(self, call_mode: str) -> str:
        """How the recordings of a call mode differ from eager calls; empty if they agree."""
        if call_mode not in self._differences:
            self._differences[call_mode] = self._difference(call_mode)
        return self._differences[call_mode]

    def _difference(self, call_mode: str) -> str:
        pieces = self.recorded(call_mode)
        module, _, _ = self.call(call_mode)
        compared = 0
        with preserved_state(module):
            for piece in pieces:
                for tokens in piece.compared_lengths:
                    for inputs in self._examples(call_mode, tokens):
                        if len(inputs[0]) < LEAST_SIZE:
                            continue
                        if found := self._differs(module, piece, inputs, tokens):
                            return f"with {len(inputs[0])} rows of {tokens} tokens {found}"
                        compared += 1
        return "" if compared else "no call of several rows could be compared with it"

    def _examples(
        self, call_mode: str, tokens: int, names: tuple[str, ...] | None = None
    ) -> Iterator[tuple[Tensor, ...]]:
        shared = self._inputs(call_mode) if names is None else names
        sample = self.subject.sample(tokens, 1).inputs
        rows = sample[0].shape[0]
        generator = seeded_generator(tokens)
        for kind in ("all", "random") if shared else ("all",):
            extras: list[Tensor] = []
            mask = torch.ones(rows, tokens, dtype=torch.int64)
            if kind == "random":
                mask = torch.randint(0, 2, (rows, tokens), generator=generator)
                mask[:, tokens // 2] = 1
            for name in shared:
                if name == MASK:
                    extras.append(mask)
                elif name == POSITIONS:
                    positions = torch.arange(tokens).repeat(rows, 1)
                    if kind == "random" and call_mode == "packed":
                        positions = restarting_positions(mask.bool())
                    elif kind == "random":
                        positions = torch.randperm(tokens, generator=generator).repeat(rows, 1)
                    extras.append(self.subject.first_position + positions)
                else:
                    dtype = mask_dtype(self.subject.module, sample[0])
                    seen = (mask[:, None, :, None] == mask[:, None, None, :]) & torch.ones(tokens, tokens).tril().bool()
                    extras.append(torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype))
            yield (*sample, *extras)

    def _differs(self, module: nn.Module, piece: Piece, inputs: tuple[Tensor, ...], tokens: int) -> str:
        sizes = {"batch": inputs[0].shape[0], "tokens": tokens}
        try:
            with torch.no_grad(), fixed_rng(), without_compilation(), without_compiled_kernels():
                real = named_tensors(module(*(x.clone() for x in inputs)))
        except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
            return f"an eager call fails: {first_line(error)}"
        try:
            found = [execute_open(graph, inputs, sizes) for graph in piece.graphs]
        except Exception as error:  # noqa: BLE001 - a recording that is not the call's may fail in any way
            return f"the recording cannot be run: {first_line(error)}"
        taken = [outputs for outputs in found if outputs is not None]
        if len(taken) != 1:
            return f"{len(taken)} of {len(piece.graphs)} recordings describe the call"
        for name, expected in real.items():
            if name not in taken[0] or taken[0][name].shape != expected.shape:
                return f"the recording has no output {name} of this shape"
            if relative_difference(expected, taken[0][name]) > SAME_GRAPH:
                return f"the recording computes another {name}"
        return ""


def restarting_positions(begins: Tensor) -> Tensor:
    """The position ids [row, token] of documents, by the tokens at which they begin; the first token does."""
    place = torch.arange(begins.shape[1]).expand(begins.shape)
    return place - torch.where(begins, place, 0).cummax(dim=1).values


def with_theorem(context: AuditContext, law: ProvedLaw, call_mode: str, finding: Finding) -> Finding:
    """The finding with what is proved for every length, if it is proved at the recorded one."""
    if finding.verdict != "proved":
        return finding
    calls = context.memo.setdefault("open calls", OpenCalls(context.subject))
    theorems: list[Theorem] = []
    modes = [call_mode] if call_mode != DEFAULT_SETTING else [DEFAULT_SETTING, "padded"]
    for mode in modes:
        if theorems and not calls.may_widen(mode):
            break
        try:
            theorem = calls.prove(law, mode).get(finding.output) or without_theorem("it has no output of this name")
            if theorem.proved and not calls.has_axes(mode, finding.output, context.output_axes.get(finding.output)):
                theorem = without_theorem("with open sizes the output has other axes than those that are stated")
            if theorem.proved and context.subject.device != "meta" and (wrong := calls.difference(mode)):
                theorem = without_theorem(f"the open recording is not the program that runs: {wrong}")
        except (NoTheorem, CaptureError) as error:
            theorem = without_theorem(str(error))
        except Exception as error:  # noqa: BLE001 - the proof at the recorded length stays
            theorem = without_theorem(f"{INTERNAL_ERROR}{first_line(error)}")
        theorems.append(theorem)
    chosen = theorems[0]
    if len(theorems) == 2 and chosen.proved and theorems[1].proved and theorems[1].covers:
        chosen = _with_and_without_mask(*theorems)
    return finding.model_copy(update={"theorem": chosen})


def _with_and_without_mask(without: Theorem, masked: Theorem) -> Theorem:
    """One theorem for the calls without and with a mask: for the lengths and sizes at which both hold."""
    ends = [t.greatest_length for t in (without, masked) if t.greatest_length is not None]
    least = max(without.least_length, masked.least_length)
    if ends and min(ends) < least:
        return without
    return masked.model_copy(
        update={
            "covers": ("no attention mask", *masked.covers),
            "least_length": least,
            "greatest_length": min(ends, default=None),
            "every_depth": without.every_depth and masked.every_depth,
            "conditions": tuple(dict.fromkeys([*without.conditions, *masked.conditions])),
            "assumptions": tuple(dict.fromkeys([*without.assumptions, *masked.assumptions])),
        }
    )


def _places(shape: Sequence[Term], size: Term) -> list[int]:
    """The axes whose size depends on an open one."""
    return [axis for axis, term in enumerate(shape) if size.variables & term.variables]


def without_theorem(reason: str) -> Theorem:
    """That nothing is proved for every length, and why."""
    return Theorem(proved=False, reason=reason)


def proved_lengths(name: str, found: Proofs, solver: Solver) -> Coverage:
    """The lengths that a theorem about an output covers."""
    return covered_lengths([piece for piece, own in found if name in own and own[name].proved], solver)


def join_theorem(name: str, found: Proofs, statement: Statement | Equivariance, solver: Solver) -> Theorem:
    """The theorem about one output from the results for adjoining ranges of lengths."""
    result = found[0][1][name]
    if not result.proved:
        where = "" if result.node is None else f"{result.node.target} ({module_path(result.node)}): "
        return without_theorem(f"{where}{result.reason}")
    covered = proved_lengths(name, found, solver)
    pieces = covered.pieces
    results = [own[name] for piece, own in found if any(piece is one for one in pieces)]
    assumptions = [text for piece in pieces for text in piece.assumptions]
    assumptions += [text for one in results for text in one.assumptions]
    return Theorem(
        proved=True, least_length=covered.least, greatest_length=covered.greatest,
        every_depth=all(one.every_depth for one in results),
        covers=statement.covers,
        conditions=tuple(map(str, covered.conditions)),
        assumptions=(OPEN_CALL_ASSUMPTION, *dict.fromkeys(assumptions)),
    )  # fmt: skip
