"""Packing by position ids for every layout: proved exactly where it holds, with certificates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from orderproof.auditing.record.open_examples import restarting_positions
from orderproof.laws import find_law
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenInput, record_open
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.statement import POSITIONS, TOKEN_INPUT
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.pairs import one_in
from tests.recheck.theorems.examples import unchecked
from tests.theorems.programs import WIDTH, Program, attend, lower

LAW = find_law("packing")
ROLES = (TOKEN_INPUT, POSITIONS)


def documents(positions: Tensor) -> Tensor:
    """The number of the document of each token, as transformers computes it."""
    steps = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
    return (steps != 1).cumsum(-1)


def pairs(x: Tensor) -> Tensor:
    """[row, query, key] whether both are of one document."""
    return x[:, :, None] == x[:, None, :]


def causal_within(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """Causal attention within documents."""
    return attend(m, x, pairs(documents(positions)) & lower(x))


def bidirectional_within(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """Attention within documents."""
    return attend(m, x, pairs(documents(positions)))


def without_mask_for_one_document(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """Attention that leaves the mask out where each row is one document."""
    found = documents(positions)
    if (found[:, -1] == 0).all():
        return attend(m, x, lower(x))
    return attend(m, x, pairs(found) & lower(x))


def windowed_within(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """A window within documents."""
    i = torch.arange(x.shape[1])
    return attend(m, x, pairs(documents(positions)) & lower(x) & (i[None, :] > i[:, None] - 5))


def counted_from_one(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """Documents whose number is one more."""
    found = documents(positions) + 1
    return attend(m, x, (found[:, :, None] - found[:, None, :] == 0) & lower(x))


def by_long_numbers(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """Documents summed as integers, not booleans."""
    steps = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
    return attend(m, x, pairs((steps != 1).long().cumsum(-1)) & lower(x))


def without_mask(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """Causal attention that ignores the documents."""
    return attend(m, x, lower(x)) + positions[..., None]


def without_mask_for_two_documents(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """The branches of the call exchanged."""
    found = documents(positions)
    if (found[:, -1] == 0).all():
        return attend(m, x, pairs(found) & lower(x))
    return attend(m, x, lower(x))


def without_mask_where_the_first_row_is_one(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """The question asks about the token before the last one."""
    found = documents(positions)
    if (found[:, -2] == 0).all():
        return attend(m, x, lower(x))
    return attend(m, x, pairs(found) & lower(x))


def also_the_next(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """A document sees the one before it."""
    found = documents(positions)
    return attend(m, x, (found[:, :, None] - found[:, None, :] <= 1) & lower(x))


def shifted(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """Documents that begin one token late."""
    found = documents(positions)
    late = torch.cat([found[:, :1] * 0, found[:, :-1]], 1)
    return attend(m, x, pairs(late) & lower(x))


def summed_differently(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """Documents that begin only where positions fall by exactly one."""
    steps = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
    return attend(m, x, pairs((steps == -1).cumsum(-1)) & lower(x))


def summed_over_rows(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """The sum runs along the rows of the batch."""
    steps = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
    return attend(m, x, pairs((steps != 1).cumsum(0)) & lower(x))


def averaged(m: Program, x: Tensor, positions: Tensor) -> Tensor:
    """A mean over the row added to attention within documents."""
    return causal_within(m, x, positions) + x.mean(1, keepdim=True)


@dataclass(frozen=True)
class Packed:
    """A module of tokens and position ids, and if it keeps documents apart."""

    function: Callable[..., Tensor]
    holds: bool


CASES = [
    *(Packed(f, holds=True) for f in (
        causal_within, bidirectional_within, without_mask_for_one_document, windowed_within, counted_from_one,
        by_long_numbers,
    )),
    *(Packed(f, holds=False) for f in (
        without_mask, without_mask_for_two_documents, without_mask_where_the_first_row_is_one, also_the_next, shifted,
        summed_differently, summed_over_rows, averaged,
    )),
]  # fmt: skip
all_cases = pytest.mark.parametrize("case", one_in(2, CASES), ids=lambda c: c.function.__name__)


def module_of(case: Packed) -> Program:
    """The module, with the same weights each time."""
    torch.manual_seed(0)
    return Program(case.function).eval()


def recorded(case: Packed) -> list:
    """The recordings of a case."""
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32),
              OpenInput("positions", ("batch", "tokens"), torch.int64, fixed=True)]  # fmt: skip
    return record_open(module_of(case), inputs, {"batch": 3, "tokens": 13})


@all_cases
def test_packing_is_proved_exactly_where_it_holds(case: Packed) -> None:
    statement = LAW.open_statement(frozenset({POSITIONS}))
    results = prove_agreement(recorded(case), ROLES, statement, Solver())
    assert {r.proved for r in results.values()} == {case.holds}, results


@all_cases
def test_pairs_of_runs_agree_where_packing_holds(case: Packed) -> None:
    """The table of cases itself is true: checked by running the program, not the prover."""
    module, generator = module_of(case), torch.Generator().manual_seed(1)
    violated = False
    for tokens in (2, 3, 5, 8, 13, 30):
        for trial in range(12):
            begins = torch.rand(3, tokens, generator=generator) < (0.0, 0.1, 0.4)[trial % 3]
            if trial == 11:
                begins[:, -1] = True
            positions = restarting_positions(begins)
            document = begins.index_fill(1, torch.tensor([0]), False).cumsum(1)
            own = int(torch.randint(0, 3, (), generator=generator))
            kept = document == own
            x = torch.randn(3, tokens, WIDTH, generator=generator)
            other = torch.where(kept[..., None], x, 3 * torch.randn(x.shape, generator=generator))
            with torch.no_grad():
                first, second = module(x, positions), module(other, positions)
            gap = (first - second).abs()[kept]
            violated |= bool(gap.numel()) and not float(gap.max()) < 1e-4 * (1 + float(first.abs().max()))
    assert violated != case.holds


@all_cases
def test_recheck_accepts_the_certificate_of_each_theorem(case: Packed) -> None:
    made = unchecked(recorded(case), ROLES, "packing", Solver())
    assert (made is not None) == case.holds
    if made is not None:
        check_theorem(made, fill=True)
        assert "every layout of documents" in check_theorem(made).theorem


@pytest.mark.parametrize("case", [c for c in CASES if not c.holds], ids=lambda c: c.function.__name__)
def test_recheck_refuses_what_a_defect_of_the_solver_would_prove(case: Packed) -> None:
    class LyingSolver(Solver):
        def implies(self, premises: object, conclusion: object) -> bool:
            return True

    made = unchecked(recorded(case), ROLES, "packing", LyingSolver())
    assert made is not None
    with pytest.raises(CertificateError):
        check_theorem(made, fill=True)


def test_restarting_positions_count_from_the_last_beginning():
    begins = torch.tensor([[False, False, True, False, True], [True, True, False, False, False]])
    assert restarting_positions(begins).tolist() == [[0, 1, 0, 1, 0], [0, 0, 1, 2, 3]]
