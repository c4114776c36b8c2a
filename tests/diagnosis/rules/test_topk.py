"""Keys chosen by the k largest scores: those that are visible are among them, where there are no more than k."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orderproof import laws
from orderproof.diagnosis.domain.fact import Fact
from tests.auditing.internals import prove_law
from tests.diagnosis.corpus.parts import LOWEST
from tests.diagnosis.corpus.top_k import BROKEN, OPEN, PROVED
from tests.diagnosis.walking import Program, examine, walk


@pytest.mark.parametrize("name", PROVED)
def test_a_line_with_few_visible_keys_keeps_them_all(name: str) -> None:
    (finding,) = prove_law(examine(Program(PROVED[name])), laws.find_proved_law("causal"))
    assert finding.verdict == "proved", finding.reason


@pytest.mark.parametrize("name", [*BROKEN, *OPEN])
def test_nothing_else_is_kept(name: str) -> None:
    (finding,) = prove_law(examine(Program((BROKEN | OPEN)[name])), laws.find_proved_law("causal"))
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
        context = examine(Program(function), tokens=4, width=5)
        done = walk(context, laws.find_proved_law("causal"))
        node = next(n for n in context.captured.graph.nodes if "topk" in str(n.target))
        facts = done.walk.facts[node]
        assert isinstance(facts, tuple)
        places: Fact = facts[1]
        if places.index_coverage is None:
            continue
        sure = np.broadcast_to(places.index_coverage.covered, (1, 4, 5))[0]
        for _ in range(8):
            found = (torch.from_numpy(drawn.normal(size=(4, 5)) * 3).float() + fill).topk(count, -1).indices
            for line in range(4):
                kept = set(np.flatnonzero(sure[line]).tolist())
                assert kept <= set(found[line].tolist())
                said += len(kept)
    assert said > 60
