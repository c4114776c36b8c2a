"""The branches of a call: the facts of each recording, and which answers to its questions are possible."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch._ops import OpOverload
from torch.fx import Graph, Node

from orderproof.logic.rewriting import Substitution
from orderproof.logic.solver import Solver
from orderproof.logic.terms import FALSE, TRUE, AtMostZero, Formula, as_term, at_most, conditional, negation
from orderproof.recording.arguments import map_leaves
from orderproof.recording.captured_graph import ancestors
from orderproof.recording.loop_operators import LOOP_STATE
from orderproof.recording.open_recording import OpenGraph
from orderproof.recording.open_sizes import LEAST_SIZE
from orderproof.theorems.facts.open_fact import Cases, OpenFact, Value, axis_variable, dims_of, index
from orderproof.theorems.statement import (
    BATCH,
    BLOCKS,
    DOCUMENTS,
    POSITIONS,
    REAL_TOKENS,
    ROW_INPUT,
    TOKEN_INPUT,
    TOKENS,
    Statement,
    document_id,
    position,
    sees_within_document,
)
from orderproof.theorems.uniform_inputs import KINDS, UniformInputs
from orderproof.theorems.walks.context import Context, Count
from orderproof.theorems.walks.open_walk import OpenWalk, derive, walk_open

MOST_AXES = 4  # of a tensor whose corners are looked at


@dataclass(frozen=True)
class Branch:
    """The facts of one recording.

    Attributes:
        graph: The recording.
        statement: The statement that is proved on it.
        asked: The facts by which its answers are judged.
        done: The facts of the proof: the same, or those for uniform shared inputs.
        context: The context of the proof.
        possible: Its answers can be.
        uniform: Its answers say that the shared inputs are of this kind; None if they do not.

    """

    graph: OpenGraph
    statement: Statement
    asked: OpenWalk
    done: OpenWalk
    context: Context
    possible: bool
    uniform: UniformInputs | None = None


def walk_branch(graph: OpenGraph, roles: Sequence[str], statement: Statement, solver: Solver) -> Branch:
    """Derive the facts of one recording."""
    asked, context = _walk_to_questions(graph, roles, statement, solver)
    possible, uniform = _answers(graph, asked, context)
    if not possible:
        return Branch(graph, statement, asked, asked, context, possible)
    if uniform is None:
        done = asked if _has_loops(graph) else _walk_on(graph, asked, context)
        return Branch(graph, statement, done, done, context, possible)
    simpler = uniform.statement(statement)
    fixed: dict[str, Value] = dict.fromkeys(uniform.fixed, TRUE)
    context = _context(graph, simpler, solver)
    done = walk_open(graph, _input_facts(graph, roles, simpler, fixed), context)
    return Branch(graph, simpler, asked, done, context, possible, uniform)


def _has_loops(graph: OpenGraph) -> bool:
    return any(node.target is LOOP_STATE for node in graph.graph.nodes)


def _walk_on(graph: OpenGraph, asked: OpenWalk, context: Context) -> OpenWalk:
    """The facts about all nodes of a graph without loops, given those about some."""
    return derive(graph, [node for node in graph.graph.nodes if node not in asked.facts], asked.facts, context)


def _walk_to_questions(
    graph: OpenGraph, roles: Sequence[str], statement: Statement, solver: Solver
) -> tuple[OpenWalk, Context]:
    """The facts about what the answers of a recording depend on, and their context."""
    context = _context(graph, statement, solver)
    nodes = list(graph.graph.nodes)
    if not _has_loops(graph):  # the facts of a loop are derived together
        needed = ancestors(question.node for question in graph.questions)
        nodes = [node for node in nodes if node in needed]
    return derive(graph, nodes, _input_facts(graph, roles, statement, {}), context), context


def _input_facts(
    graph: OpenGraph, roles: Sequence[str], statement: Statement, fixed: Mapping[str, Value]
) -> dict[Node, OpenFact]:
    return {
        node: input_fact(graph, node, role, statement, fixed) for node, role in zip(graph.inputs, roles, strict=True)
    }


def _context(graph: OpenGraph, statement: Statement, solver: Solver) -> Context:
    sizes = (at_most(LEAST_SIZE, TOKENS), at_most(LEAST_SIZE, BATCH))
    premises = (*sizes, *graph.conditions, *statement.premises)
    return Context(
        solver, premises, statement.candidates, statement.prefix_sums, _greatest_lengths(graph.conditions),
        real_token=statement.pooled, of_inputs=graph.of_inputs,
    )  # fmt: skip


NOTHING_AGREES = Statement(lambda _row, _token: FALSE, lambda _row, _token: FALSE, lambda _row, _token: ())


def only_answer(graph: OpenGraph, roles: Sequence[str], solver: Solver) -> bool | None:
    """The only possible answer to the last question of a graph; None if both may be possible.

    It is decided from what both runs share, so that it holds for every statement.
    """
    facts, context = _walk_to_questions(graph, roles, NOTHING_AGREES, solver)
    *before, last = graph.questions
    possible = [
        answer
        for answer in (False, True)
        if _answers(replace(graph, questions=(*before, replace(last, answer=answer))), facts, context)[0]
    ]
    return possible[0] if len(possible) == 1 else None


def is_possible(graph: OpenGraph, roles: Sequence[str], solver: Solver) -> bool:
    """False if no inputs give the answers of a graph, which is decided from what both runs share."""
    answered: dict[int, bool] = {}
    computations = _computations(graph.graph)
    for question in graph.questions:
        if answered.setdefault(computations[question.node], question.answer) is not question.answer:
            return False
    facts, context = _walk_to_questions(graph, roles, NOTHING_AGREES, solver)
    return _answers(graph, facts, context)[0]


def _computations(graph: Graph) -> dict[Node, int]:
    """A number for each node that it shares with nodes that compute the same from the same."""
    numbers: dict[Hashable, int] = {}
    found: dict[Node, int] = {}
    for node in graph.nodes:
        tags = node.target.tags if isinstance(node.target, OpOverload) else ()
        own = node.op != "call_function" or torch.Tag.nondeterministic_seeded in tags or "empty" in str(node.target)
        arguments = map_leaves(Node, lambda x: f"node {found[x]}", (node.args, node.kwargs))
        found[node] = numbers.setdefault(node if own else (node.target, repr(arguments)), len(numbers))
    return found


def _greatest_lengths(conditions: Sequence[Formula]) -> frozenset[int]:
    """The numbers which the number of tokens is at most, by a condition each."""
    terms = [c.parts[0] for c in conditions if isinstance(c, AtMostZero)]
    return frozenset(-(term - TOKENS).constant for term in terms if (term - TOKENS).is_constant)


def input_fact(graph: OpenGraph, node: Node, role: str, statement: Statement, fixed: Mapping[str, Value]) -> OpenFact:
    """The fact about an input: where the statement says that both runs agree, or its value if both share it."""
    tensor: torch.Tensor = node.meta["val"]
    dims = dims_of(graph.shape(node))
    row, token = index(0), index(1)
    if role == TOKEN_INPUT:
        sizes = [size for axes in dims for size in axes]
        if sizes.count(BATCH) != 1 or sizes.count(TOKENS) != 1:
            return OpenFact(dims, tensor.dtype, same=FALSE)
        at_row, at_token = index(sizes.index(BATCH)), index(sizes.index(TOKENS))
        return OpenFact(dims, tensor.dtype, same=statement.given(at_row, at_token))
    if role == ROW_INPUT:
        if statement.per_token or dims[0] != (BATCH,):
            return OpenFact(dims, tensor.dtype, same=FALSE)
        return OpenFact(dims, tensor.dtype, same=statement.given(row, as_term(0)))
    if role in REAL_TOKENS:
        real = fixed.get(role, REAL_TOKENS[role](row, token))
        assert isinstance(real, Formula)
        value: Value = real if tensor.dtype is torch.bool else conditional(real, as_term(1), as_term(0))
    elif role == POSITIONS:
        value = position(row, token)
    elif role == DOCUMENTS:
        value = document_id(row, token)
    elif role == BLOCKS:
        seen = sees_within_document(row, index(1), index(2))
        value = Cases(((seen, 0.0), (negation(seen), float(torch.finfo(tensor.dtype).min))))
    else:
        return OpenFact(dims, tensor.dtype)
    return OpenFact(dims, tensor.dtype, value=value)


def _answers(graph: OpenGraph, done: OpenWalk, context: Context) -> tuple[bool, UniformInputs | None]:
    """True if the answers of a recording can be true; and the kind of shared inputs that they leave."""
    uniform = None
    answered: dict[object, bool] = {}
    denied: list[Count] = []  # not all of whose elements are true
    for question in graph.questions:
        fact = done.facts.get(question.node)
        asked = fact.value if isinstance(fact, OpenFact) else None
        if asked is (FALSE if question.answer else TRUE):
            return False, None
        about: list[object] = [asked] if isinstance(asked, Formula) else []
        about += [(c.formula, c.sizes) for c in context.counts.values() if asked is c.all_true]
        if any(answered.setdefault(one, question.answer) is not question.answer for one in about):
            return False, None
        for count in context.counts.values():
            if asked is not count.all_true:
                continue
            always = context.proves(count.formula, count.sizes)
            if always is not question.answer and (always or _has_false_corner(count, context)):
                return False, None
            if question.answer:
                uniform = next((kind for kind in KINDS if _says(count, kind, context)), uniform)
            else:
                denied.append(count)
    if uniform is not None and any(_follows(count, uniform, context) for count in denied):
        return False, None
    return True, uniform


def _says(count: Count, kind: UniformInputs, context: Context) -> bool:
    """True if shared inputs are of a kind where all elements of a tensor are true.

    Along its last axis, the tensor may have more elements than the inputs, before or after those: as a mask that is
    joined to that of embeddings which the model adds.
    """
    if count.sizes == kind.sizes and count.formula is kind.element:
        return True
    if count.sizes and count.sizes == kind.sizes[:-1]:  # the last tokens are real, so with pads on the right all are
        return context.proves(kind.element, kind.sizes, count.formula)
    if len(count.sizes) != len(kind.sizes) or count.sizes[:-1] != kind.sizes[:-1]:
        return False
    last, more = len(kind.sizes) - 1, count.sizes[-1] - kind.sizes[-1]
    if not more.is_constant or more.constant < 0:
        return False
    shifted = (Substitution({axis_variable(last): index(last) + k}).formula for k in {0: 0, more.constant: 0})
    return any(context.proves(kind.element, kind.sizes, place(count.formula)) for place in shifted)


def _follows(count: Count, kind: UniformInputs, context: Context) -> bool:
    """True if all elements of a tensor are true where shared inputs are of a kind: as its last column."""
    if count.sizes not in (kind.sizes, kind.sizes[:-1]):
        return False
    last = len(kind.sizes) - 1
    ends = (
        (index(last), as_term(0), kind.sizes[-1] - 1) if count.sizes == kind.sizes else (as_term(0), kind.sizes[-1] - 1)
    )
    known = [Substitution({axis_variable(last): end}).formula(kind.element) for end in ends]
    return context.proves(count.formula, count.sizes, *known)


def _has_false_corner(count: Count, context: Context) -> bool:
    """True if the first or last element along each axis is false for all open sizes: not all elements are true."""
    if len(count.sizes) > MOST_AXES or not all(context.proves(at_most(1, size), ()) for size in count.sizes):
        return False
    corners = product(*(dict.fromkeys((as_term(0), size - 1)) for size in count.sizes))
    elements = (Substitution({axis_variable(k): x for k, x in enumerate(c)}).formula(count.formula) for c in corners)
    return any(context.proves(~element, ()) for element in elements)
