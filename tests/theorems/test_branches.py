"""Branches that no input takes are cut off, and no others; certificates say why."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from orderproof.errors import CaptureError
from orderproof.laws import find_law
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.branches import NOTHING_AGREES, only_answer, walk_branch
from orderproof.theorems.certificates.agreement import recording_record
from orderproof.theorems.certificates.equivariance import moved_recording_record
from orderproof.theorems.equivariance import prove_equivariance
from orderproof.theorems.open_execution import execute_open
from orderproof.theorems.statement import MASK, POSITIONS, TOKEN_INPUT
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.recheck.theorems.examples import unchecked
from tests.theorems.programs import WIDTH, Program
from tests.theorems.random_questions import asking_program

ROLES = (TOKEN_INPUT, MASK)
Function = Callable[[Program, Tensor, Tensor], Tensor]


def _leaks(x: Tensor) -> Tensor:
    return x.flip(1)


def _positions(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1])[None].expand(x.shape[0], -1)


def _documents(x: Tensor) -> Tensor:
    ids = _positions(x)
    return (torch.diff(ids, prepend=ids[:, :1] - 1, dim=-1) != 1).cumsum(-1)


def _asked_twice(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    real = mask.bool()
    if real.sum() == real.numel():
        return m.first(x)
    return _leaks(x) if real[:, : x.shape[1]].sum() == real.numel() else m.second(x)


def _one_document(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    del mask
    return m.first(x) if (_documents(x)[:, -1] == 0).all() else _leaks(x)


def _no_pads_after_the_end(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    return m.first(x) if (~mask.bool()[:, x.shape[1] :]).all() else _leaks(x)


def _mask_of_one_value(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """A branch of torch: the mask may be a causal one, which it is for one token only."""
    del mask
    n = x.shape[1]
    causal = torch.full((n, n), -torch.inf).triu(1)
    return _leaks(x) if (torch.zeros(n, n) == causal).all() else m.first(x)


IMPOSSIBLE: dict[str, tuple[Function, int]] = {  # and the number of branches that are left
    "a question asked twice": (_asked_twice, 2),
    "positions that go on": (_one_document, 1),
    "tokens after the last": (_no_pads_after_the_end, 1),
    "a mask of one value that may be causal": (_mask_of_one_value, 1),
}


def _another_part(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    real = mask.bool()
    if real.all():
        return m.first(x)
    return _leaks(x) if real[:, 1:].all() else m.second(x)


def _first_token(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    real = mask.bool()
    if real[:, :1].all():
        return m.first(x)
    return _leaks(x) if real[:, -1:].all() else m.second(x)


def _every_other(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    real = mask.bool()
    return m.first(x) if real.sum() == real.numel() // 2 else _leaks(x)


def _some_pads(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    real = mask.bool()
    if real.all():
        return m.first(x)
    return m.second(x) if (~real).all() else _leaks(x)


def _counted_pads(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    return m.first(x) if ((1 - mask).cumsum(-1)[:, -1] == 0).all() else _leaks(x)


def _mask_within_a_band(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """The corners of both are equal, and elements between them differ in long calls."""
    del mask
    i = torch.arange(x.shape[1])
    apart = i[:, None] - i
    return m.first(x) if ((apart > 4) == (apart > 7)).all() else _leaks(x)


POSSIBLE: dict[str, tuple[Function, int]] = {  # and the number of branches
    "another part of the mask": (_another_part, 3),
    "two ends of the mask": (_first_token, 3),
    "half of the mask": (_every_other, 2),
    "all pads": (_some_pads, 3),
    "pads counted to the last token": (_counted_pads, 2),
    "masks that differ between their corners": (_mask_within_a_band, 2),
}


def _record(function: Function) -> list[OpenGraph]:
    torch.manual_seed(0)
    inputs = [
        OpenInput("x", ("batch", "tokens", WIDTH), torch.float32),
        OpenInput("mask", ("batch", "tokens"), torch.int64, fixed=True),
    ]
    solver = Solver()
    return record_open(
        Program(function).eval(), inputs, {"batch": 3, "tokens": 13},
        only_answer=lambda graph: only_answer(graph, ROLES, solver),
    )  # fmt: skip


def _masks(tokens: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    ones = torch.ones(2, tokens, dtype=torch.int64)
    half = torch.arange(2 * tokens).reshape(2, tokens) % 2
    first, last = ones.clone(), ones.clone()
    first[:, 0], last[:, -1] = 0, 0
    return [ones, 0 * ones, half, 1 - half, first, last, torch.randint(2, (2, tokens), generator=generator)]


@pytest.mark.parametrize("name", IMPOSSIBLE | POSSIBLE)
def test_every_call_takes_one_of_the_branches_that_are_left(name: str) -> None:
    function, left = (IMPOSSIBLE | POSSIBLE)[name]
    graphs = _record(function)
    assert sum(not graph.is_cut_off for graph in graphs) == left
    assert any(graph.is_cut_off for graph in graphs) == (name in IMPOSSIBLE)
    for tokens in (3, 5, 13, 20):
        for mask in _masks(tokens):
            found = [execute_open(graph, (torch.randn(2, tokens, WIDTH), mask), {"batch": 2, "tokens": tokens})
                     for graph in graphs]  # fmt: skip
            taken = [outputs for outputs in found if outputs is not None]
            assert len(taken) == 1
            assert taken[0]


@pytest.mark.parametrize("name", IMPOSSIBLE | POSSIBLE)
def test_a_law_is_proved_if_only_impossible_branches_break_it(name: str) -> None:
    function, _ = (IMPOSSIBLE | POSSIBLE)[name]
    statement = find_law("causal").open_statement(frozenset(ROLES[1:]))
    assert statement is not None
    graphs = _record(function)
    results = prove_agreement(graphs, ROLES, statement, Solver())
    assert results["output"].proved == (name in IMPOSSIBLE)
    made = unchecked(graphs, ROLES, "causal", Solver())
    if made is not None:
        check_theorem(made, fill=True)
        check_theorem(made)
        cut_off = [one for one in made["calls"][0]["ranges"][0]["recordings"] if one["output"] is None]
        assert len(cut_off) == 1


def test_a_branch_that_inputs_take_cannot_be_left_out_of_a_certificate() -> None:
    graphs = _record(lambda m, x, mask: m.first(x) if mask.bool().all() else m.second(x))
    made = unchecked(graphs, ROLES, "causal", Solver())
    assert made is not None
    check_theorem(made, fill=True)
    recordings = made["calls"][0]["ranges"][0]["recordings"]
    for place in range(len(recordings)):
        forged = copy.deepcopy(made)
        forged["calls"][0]["ranges"][0]["recordings"][place].update(steps=[], output=None, depth=None)
        with pytest.raises(CertificateError):
            check_theorem(forged, fill=True)


def test_a_cut_off_branch_is_part_of_a_certificate_of_permuted_tokens() -> None:
    torch.manual_seed(0)
    module = Program(lambda m, x: _one_document(m, x, x)).eval()
    roles, solver = (TOKEN_INPUT,), Solver()
    graphs = record_open(
        module, [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)], {"batch": 3, "tokens": 13},
        only_answer=lambda graph: only_answer(graph, roles, solver),
    )  # fmt: skip
    assert [graph.is_cut_off for graph in graphs] == [False, True]
    assert prove_equivariance(graphs, roles, solver)["output"].proved
    made = unchecked(graphs, roles, "causal", solver)
    assert made is not None
    made |= {"law": "permutation", "code": find_law("permutation").code}
    (part,) = made["calls"][0]["ranges"]
    whole = moved_recording_record(graphs[0], roles, "output", solver, without_order=False)
    cut_off = recording_record(walk_branch(graphs[1], roles, NOTHING_AGREES, solver), roles, "output")
    part["recordings"] = [whole, cut_off]
    check_theorem(made, fill=True)
    check_theorem(made)
    taken = recording_record(walk_branch(graphs[0], roles, NOTHING_AGREES, solver), roles, "output")
    taken.update(steps=[], output=None, depth=None)
    part["recordings"] = [taken, cut_off]
    with pytest.raises(CertificateError):
        check_theorem(made, fill=True)


def check_random_programs(seeds: range) -> tuple[int, int]:
    """Compare random programs that ask with their branches: how many were cut off, and how many calls compared."""
    inputs = [
        OpenInput("x", ("batch", "tokens", WIDTH), torch.float32),
        *(OpenInput(name, ("batch", "tokens"), torch.int64, fixed=True) for name in (MASK, POSITIONS)),
    ]
    cut_off, compared, solver = 0, 0, Solver()
    for seed in seeds:
        module = asking_program(seed)
        try:
            graphs = record_open(
                module, inputs, {"batch": 3, "tokens": 13},
                only_answer=lambda graph: only_answer(graph, (TOKEN_INPUT, MASK, POSITIONS), solver),
            )  # fmt: skip
        except CaptureError:
            continue
        cut_off += sum(graph.is_cut_off for graph in graphs)
        for given in _calls(seed):
            sizes = {"batch": given[0].shape[0], "tokens": given[0].shape[1]}
            taken = [outputs for graph in graphs if (outputs := execute_open(graph, given, sizes)) is not None]
            assert len(taken) <= 1, f"program {seed}"  # none, where its conditions exclude the length
            if taken:
                with torch.no_grad():
                    assert torch.allclose(module(*given), taken[0]["output"], atol=1e-4), f"program {seed}"
                compared += 1
    return cut_off, compared


def _calls(seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    for tokens in (2, 3, 5, 8, 17):
        for kind in range(6):
            mask = torch.randint(2, (2, tokens), generator=generator) if kind > 1 else torch.full((2, tokens), kind)
            ids = torch.arange(tokens).expand(2, -1) if kind % 2 else torch.randint(6, (2, tokens), generator=generator)
            yield torch.randn(2, tokens, WIDTH, generator=generator), mask, ids


def test_no_call_of_a_random_program_takes_a_branch_that_was_cut_off() -> None:
    cut_off, compared = check_random_programs(range(16))
    assert cut_off >= 5
    assert compared >= 200


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_no_call_of_many_random_programs_takes_a_branch_that_was_cut_off(block: int) -> None:
    cut_off, _ = check_random_programs(range(1000 + 100 * block, 1100 + 100 * block))
    assert cut_off > 0
