"""Keys chosen by the k largest scores: those that are visible are among them, where there are no more than k."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from orderproof import laws
from orderproof.auditing.completion import certificate
from orderproof.prover.fact import Fact
from orderproof.prover.recheck import recheck
from tests.audit.internals import prove_law
from tests.prover.walking import Program, examine, walk

Function = Callable[[Tensor], Tensor]
LOWEST = torch.finfo(torch.float32).min


def band(x: Tensor, width: int) -> Tensor:
    """What is added to the scores so that a token sees itself and the ones just before it."""
    place = torch.arange(x.shape[1])
    distance = place[:, None] - place
    return torch.zeros(distance.shape).masked_fill((distance < 0) | (distance >= width), LOWEST)


def ranked(x: Tensor, mask: Tensor) -> Tensor:
    """Scores by which keys are chosen, not those that weigh them."""
    return x.sin() @ x.cos().transpose(1, 2) + mask


def chosen(x: Tensor, places: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Attention to the chosen keys alone, under a mask that is added."""
    left_out = torch.ones(x.shape[0], x.shape[1], x.shape[1], dtype=torch.bool).scatter(dim, places, False)
    return (x @ x.transpose(1, 2) + mask.masked_fill(left_out, LOWEST)).softmax(-1) @ x


def sparse(x: Tensor, width: int, count: int, *, largest: bool = True, narrow: bool = False) -> Tensor:
    mask = band(x, width)
    places = ranked(x, mask).topk(count, -1, largest).indices
    return chosen(x, places.int().long() if narrow else places, mask)


def all_of_them(x: Tensor, *, largest: bool = True) -> Tensor:
    """As many as there are keys: whichever order they come in, each is chosen."""
    return chosen(x, (x @ x.transpose(1, 2)).topk(x.shape[1], -1, largest).indices, band(x, x.shape[1]))


def of_two(x: Tensor, *, second: bool) -> Tensor:
    """Two choices of which as much is known, but not the same: the smallest are no visible keys."""
    mask = band(x, 2)
    ranks = ranked(x, mask)
    return chosen(x, ranks.topk(2, -1).indices, mask) + chosen(x, ranks.topk(2, -1, not second).indices, mask)


PROVED: dict[str, Function] = {
    "as_many_as_are_visible": lambda x: sparse(x, 2, 2),
    "more_than_are_visible": lambda x: sparse(x, 2, 4),
    "through_narrower_numbers": lambda x: sparse(x, 3, 3, narrow=True),
    "all_of_them": all_of_them,
    "all_of_them_from_the_smallest": lambda x: all_of_them(x, largest=False),
    "of_queries_for_each_key": lambda x: chosen(x, ranked(x, band(x, 2)).topk(2, 1).indices, band(x, 2), dim=1),
    "two_choices": lambda x: of_two(x, second=False),
}
BROKEN: dict[str, Function] = {
    "the_smallest": lambda x: sparse(x, 2, 2, largest=False),
    "scores_without_a_mask": lambda x: chosen(x, ranked(x, torch.zeros(())).topk(2, -1).indices, band(x, 2)),
    "places_moved_on": lambda x: chosen(x, (ranked(x, band(x, 2)).topk(2, -1).indices + 1) % x.shape[1], band(x, 2)),
    "written_across": lambda x: chosen(x, ranked(x, torch.zeros(())).topk(x.shape[1], -1).indices, band(x, 2), dim=1),
    "two_choices_of_which_one_is_of_the_smallest": lambda x: of_two(x, second=True),
}
OPEN: dict[str, Function] = {  # true, and not said: one of them is, but not which
    "fewer_than_are_visible": lambda x: sparse(x, 3, 2),
}


@pytest.mark.parametrize("name", PROVED)
def test_a_line_with_few_visible_keys_keeps_them_all(name: str) -> None:
    exam = examine(Program(PROVED[name]))
    law = laws.get("causal")
    (finding,) = prove_law(exam, law)
    assert finding.verdict == "proved", finding.reason
    made = certificate(exam, law, finding.output)
    assert made is not None
    assert recheck(made).assumptions == tuple(made["assumptions"])


@pytest.mark.parametrize("name", [*BROKEN, *OPEN])
def test_nothing_else_is_kept(name: str) -> None:
    (finding,) = prove_law(examine(Program((BROKEN | OPEN)[name])), laws.get("causal"))
    assert finding.verdict == ("undecided" if name in OPEN else "refuted")
    assert "error in the prover" not in finding.reason


def test_places_said_to_be_among_the_largest_are() -> None:
    """Lines of visible, masked and other entries at random, against the places that torch gives."""
    drawn = np.random.default_rng(0)
    said = 0
    for _ in range(12):
        kinds = drawn.choice(["visible", "masked", "hidden", "high"], size=(4, 5), p=[0.4, 0.45, 0.1, 0.05])
        fill = torch.from_numpy(np.select([kinds == "masked", kinds == "hidden"], [LOWEST, -np.inf], 0.0)).float()
        fill = fill.masked_fill(torch.from_numpy(kinds == "high"), torch.inf)
        count = int(drawn.integers(1, 5))
        function = lambda x, fill=fill, count=count: (x + fill).topk(count, -1).indices.to(x.dtype) * 1.0  # noqa: E731
        exam = examine(Program(function), tokens=4, width=5)
        done = walk(exam, laws.get("causal"))
        node = next(n for n in exam.captured.graph.nodes if "topk" in str(n.target))
        facts = done.walk.facts[node]
        assert isinstance(facts, tuple)
        places: Fact = facts[1]
        if places.among is None:
            continue
        sure = np.broadcast_to(places.among.sure, (1, 4, 5))[0]
        for _ in range(8):
            found = (torch.from_numpy(drawn.normal(size=(4, 5)) * 3).float() + fill).topk(count, -1).indices
            for line in range(4):
                kept = set(np.flatnonzero(sure[line]).tolist())
                assert kept <= set(found[line].tolist())
                said += len(kept)
    assert said > 60
