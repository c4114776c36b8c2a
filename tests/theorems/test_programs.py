"""Which laws are proved of small programs for every length, and that no pair of runs contradicts a proof."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from orderproof.errors import CaptureError
from orderproof.laws import find_law
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenInput, record_open
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.open_execution import execute_open
from orderproof.theorems.statement import MASK, TOKEN_INPUT
from tests.pairs import one_in
from tests.theorems import programs
from tests.theorems.extreme_arguments import EXTREME
from tests.theorems.large_numbers import LARGE_NUMBERS
from tests.theorems.loops import IN_CHUNKS, LOOPS
from tests.theorems.low_numbers import LOW
from tests.theorems.operator_programs import defined_by_operators
from tests.theorems.programs import WIDTH, Case, Program
from tests.theorems.refuted import REFUTED
from tests.theorems.seen_by_mutants import SEEN_BY_MUTANTS
from tests.theorems.shared_heads import SHARED_HEADS
from tests.theorems.sparse_attention import SPARSE

CASES = [
    *programs.CASES,
    *REFUTED,
    *SPARSE,
    *LARGE_NUMBERS,
    *LOW,
    *SHARED_HEADS,
    *LOOPS,
    *IN_CHUNKS,
    *EXTREME,
    *defined_by_operators("PROGRAMS"),
    *SEEN_BY_MUTANTS,
]
LAWS = ("causal", "padding", "batch")
LENGTHS = (2, 3, 5, 7, 8, 9, 11, 16, 17, 31, 40)


def _module(case: Case) -> Program:
    torch.manual_seed(0)
    return Program(case.function).eval()


def _record(case: Case) -> tuple[list, tuple[str, ...]]:
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)]
    if case.masked:
        inputs.append(OpenInput("mask", ("batch", "tokens"), torch.int64, fixed=True))
    length = 13
    return record_open(_module(case), inputs, {"batch": 3, "tokens": length}), (TOKEN_INPUT, *[MASK] * case.masked)


@pytest.mark.parametrize("case", one_in(6, CASES), ids=lambda c: c.name)
def test_laws_are_proved_exactly_where_they_hold(case: Case) -> None:
    graphs, roles = _record(case)
    solver = Solver()
    for name in LAWS:
        statement = find_law(name).open_statement(frozenset(roles[1:]))
        if statement is None:
            continue
        results = prove_agreement(graphs, roles, statement, solver)
        assert {r.proved for r in results.values()} == {name in case.laws}, (name, results)


def _changed(x: torch.Tensor, kept: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    other = torch.randn(x.shape, generator=generator) * 3
    return torch.where(kept[..., None], x, other)


@pytest.mark.parametrize("case", one_in(12, CASES), ids=lambda c: c.name)
def test_pairs_of_runs_agree_where_a_law_is_stated(case: Case) -> None:
    """The table of cases itself is true: checked by running the program, not the prover."""
    module, generator = _module(case), torch.Generator().manual_seed(1)
    violated = set()
    for tokens in (n for n in (*LENGTHS, *case.lengths) if case.least <= n <= (case.greatest or n)):
        for trial in range(6):
            x = torch.randn(3, tokens, WIDTH, generator=generator)
            real = torch.rand(3, tokens, generator=generator) < 0.7 if trial else torch.ones(3, tokens).bool()
            if trial == 5:
                real = (torch.arange(tokens) < tokens - 1).expand(3, -1)
            mask = (real.long(),) if case.masked else ()
            cut = int(torch.randint(1, tokens, (), generator=generator)) if tokens > 1 else 1
            before = (torch.arange(tokens) < cut).expand(3, -1)
            row = (torch.arange(3) == trial % 3)[:, None].expand(-1, tokens)
            compared = {"causal": (before, before & real if case.masked else before), "batch": (row, row)}
            if case.masked:
                compared["padding"] = (real, real)
            for name, (kept, shown) in compared.items():
                if case.pooled and name == "causal":  # which says nothing of an output without tokens
                    continue
                with torch.no_grad():
                    first, second = module(x, *mask), module(_changed(x, kept, generator), *mask)
                equal = (first == second) | (first.isnan() & second.isnan())
                gap = (first - second).abs().masked_fill(equal, 0.0)[shown.any(1) if case.pooled else shown]
                scale = 1 + float(first.masked_fill(~first.isfinite(), 0.0).abs().max())
                if gap.numel() and not float(gap.nan_to_num(1.0).max()) < 1e-4 * scale:
                    violated.add(name)
    laws = {*([] if case.pooled else ["causal"]), "batch", *(["padding"] if case.masked else [])}
    assert violated == laws - case.laws


@pytest.mark.parametrize("case", one_in(8, CASES), ids=lambda c: c.name)
def test_one_recording_computes_what_each_call_computes(case: Case) -> None:
    graphs, _ = _record(case)
    module, generator = _module(case), torch.Generator().manual_seed(2)
    for tokens in (2, 6, 19):
        for everything in (True, False):
            x = torch.randn(2, tokens, WIDTH, generator=generator)
            real = torch.ones(2, tokens) if everything else torch.tensor([[0.0], [1.0]]).expand(2, tokens)
            inputs = (x, real.long()) if case.masked else (x,)
            sizes = {"batch": 2, "tokens": tokens}
            taken = [o for g in graphs if (o := execute_open(g, inputs, sizes)) is not None]
            expected = module(*inputs) if case.least <= tokens <= (case.greatest or tokens) else None
            assert len(taken) == (expected is not None)
            for outputs in taken:
                torch.testing.assert_close(outputs["output"], expected, equal_nan=True)


@pytest.mark.parametrize("as_text", [str, repr, "{}".format, lambda n: f"{n}", lambda n: "%s" % n])  # noqa: UP031
def test_a_length_that_is_read_as_text_is_not_left_open(as_text: Callable[[int], str]) -> None:
    case = Case("text", lambda m, x: x.flip(1) if as_text(x.shape[1]) == "7" else x, frozenset())
    with pytest.raises(CaptureError, match="is for 13 tokens only"):
        _record(case)


@pytest.mark.parametrize(
    ("sizes", "function", "holds"),
    [
        (("batch", WIDTH, "tokens"), lambda m, x: x[:, :1].flip(-1).expand_as(x), False),
        (("batch", WIDTH, "tokens"), lambda m, x: x[:, :1].expand_as(x), True),
        (("batch", 1, "tokens", WIDTH), lambda m, x: x.flip(2), False),
        (("tokens", "batch", WIDTH), lambda m, x: x.flip(0), False),
        (("tokens", "batch", WIDTH), lambda m, x: m.first(x), True),
    ],
)
def test_tokens_and_rows_may_be_any_dimension(sizes: tuple, function: Callable, holds: bool) -> None:
    graphs = record_open(
        _module(Case("", function, frozenset())), [OpenInput("x", sizes, torch.float32)], {"batch": 3, "tokens": 13}
    )
    statement = find_law("causal").open_statement(frozenset())
    assert prove_agreement(graphs, (TOKEN_INPUT,), statement, Solver())["output"].proved == holds


def test_logarithms_of_hidden_weights_are_not_the_same_in_both_runs() -> None:
    def weights(m: Program, x: torch.Tensor) -> torch.Tensor:
        scores = (m.first(x) @ m.second(x).mT).masked_fill(~programs.lower(x), torch.finfo(x.dtype).min)
        return x * scores.log_softmax(-1)[..., -1:].clamp(min=-5)

    graphs = record_open(
        _module(Case("", weights, frozenset())), [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)],
        {"batch": 3, "tokens": 13},
    )  # fmt: skip
    statement = find_law("causal").open_statement(frozenset())
    assert statement is not None
    assert prove_agreement(graphs, (TOKEN_INPUT,), statement, Solver())["output"].proved is False
