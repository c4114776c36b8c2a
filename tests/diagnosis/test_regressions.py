"""Programs on which the prover was once wrong: a proof, or a fact at a node, that two runs contradict."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orderproof import laws, prove
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk
from orderproof.diagnosis.node_check import Violation
from orderproof.recording.captured_graph import ancestors
from tests.auditing.internals import ProofOptions, prove_law
from tests.diagnosis.corpus.case import Case, build, name_of
from tests.diagnosis.corpus.false_proofs import FALSE_PROOFS
from tests.diagnosis.corpus.hidden_leaks import ORDINARY, PASSED_FOR_ORDINARY, UNSEEN
from tests.diagnosis.corpus.parts import hidden_attention, rare
from tests.diagnosis.corpus.wrong_facts import WRONG_FACTS
from tests.diagnosis.walking import TOKENS, WIDTH, Program, examine, malformed, shortfall, violations, walk


class Together(nn.Module):
    """Every case as one module: what takes time is the capture."""

    def __init__(self, cases: list[Case]) -> None:
        super().__init__()
        self.programs = nn.ModuleDict({name_of(c): build(c) for c in cases})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {name: program(x) for name, program in self.programs.items()}


@cache
def captured() -> AuditContext:
    """The examination of all cases."""
    return examine(Together([*FALSE_PROOFS, *WRONG_FACTS]))


@cache
def walked(law: str) -> tuple[LawWalk, list[Violation]]:
    """The walk of all cases for one law, and its facts that runs contradict."""
    done = walk(captured(), laws.find_proved_law(law))
    return done, list(violations(captured(), done))


def parameters(cases: list[Case]) -> list[object]:
    return [pytest.param(c, id=name_of(c)) for c in cases]


@pytest.mark.parametrize("case", parameters(FALSE_PROOFS))
def test_program_that_breaks_the_law_is_not_proved(case: Case) -> None:
    done, _ = walked(case.law)
    node, dims = (made[name_of(case)] for made in (captured().captured.outputs, captured().output_dims))
    assert done.law.missing_property(done.walk.fact(node), dims, TOKENS) is not None


@pytest.mark.parametrize("case", parameters([*FALSE_PROOFS, *WRONG_FACTS]))
def test_every_fact_holds_in_real_runs(case: Case) -> None:
    done, found = walked(case.law)
    own = ancestors([done.captured.outputs[name_of(case)]])
    assert len(own) > 2
    assert [f"{v.node.target}: {v.claim} ({v.deviation:.2g})" for v in found if v.node in own] == []


def test_proof_contradicted_in_float32_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    law = laws.find_proved_law("causal")
    monkeypatch.setattr(type(law), "missing_property", lambda *_: None)  # a prover that proves everything
    context = examine(Program(lambda x: F.linear(x, torch.ones(WIDTH, WIDTH)).flip(1)))  # float32, whatever x is
    (finding,) = prove_law(context, law)
    assert finding.verdict == "undecided"


def test_witness_is_found_for_a_model_that_makes_float32_constants() -> None:
    context = examine(Program(lambda x: F.linear(x, torch.ones(WIDTH, WIDTH)).cumsum(1)))
    (finding,) = prove_law(context, laws.find_proved_law("permutation"))
    assert finding.verdict == "refuted"


def test_proof_that_used_the_values_of_a_joined_parameter_says_so() -> None:
    gate = nn.Parameter(torch.zeros(2, TOKENS, WIDTH))
    context = examine(Program(lambda x, g: torch.cat([x, g], -1)[..., WIDTH:] * x.flip(1) + x, gate=gate))
    (finding,) = prove_law(context, laws.find_proved_law("causal"), ProofOptions(weights="these", every_length=False))
    assert (finding.verdict, finding.scope.weights, finding.scope.tensors_read) == ("proved", "these", ("gate",))


def test_known_values_are_not_kept_by_a_view_of_the_bits() -> None:
    context = examine(Program(lambda x: x.masked_fill(torch.ones(TOKENS, WIDTH).bool(), 1.0).view(torch.int32).float()))
    done = walk(context, laws.find_proved_law("causal"))
    (output,) = context.captured.outputs.values()
    known = done.walk.fact(output).ranges
    assert known is None or not known.exact.any() or (known.low == 1065353216).all()


@pytest.mark.parametrize("dim", [0, 2])
def test_facts_have_the_rank_of_their_tensor(dim: int) -> None:
    context = examine(Program(lambda x: x.kthvalue(1, dim).values))
    assert malformed(walk(context, laws.find_proved_law("causal"))) == []


CHANNELWISE: dict[str, Callable[[], nn.Module]] = {  # captured as a tuple, and as _prelu_kernel
    "batch_norm_in_eval": lambda: nn.BatchNorm1d(WIDTH),
    "prelu": lambda: nn.PReLU(WIDTH),
}


@pytest.mark.parametrize("make", [pytest.param(m, id=n) for n, m in CHANNELWISE.items()])
def test_channelwise_layer_over_moved_tokens_is_proved(make: Callable[[], nn.Module]) -> None:
    class Channels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = make()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x.transpose(1, 2)).transpose(1, 2)

    context = examine(Channels())
    assert shortfall(context, walk(context, laws.find_proved_law("permutation"))) is None


@pytest.mark.parametrize("case", parameters(UNSEEN))
def test_leak_that_random_runs_do_not_see_is_not_reported_as_proved(case: Case) -> None:
    program = build(case)
    first = torch.ones(2, TOKENS, WIDTH)
    second = torch.cat([first[:, :-1], 100 * first[:, -1:]], 1)
    one, two = (program(x).flatten(0, -2)[0] for x in (first, second))
    assert not torch.allclose(one, two), "the program is causal after all"
    (finding,) = prove_law(examine(program), laws.find_proved_law(case.law))
    assert finding.verdict != "proved"


@pytest.mark.parametrize("name", list(ORDINARY))
def test_ordinary_entry_hides_a_masked_entry_next_to_it(name: str) -> None:
    context = examine(Program(lambda x: hidden_attention(ORDINARY[name](x), rare(x), x)))
    assert shortfall(context, walk(context, laws.find_proved_law("causal"))) is None


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
@pytest.mark.parametrize(
    "name",
    list(PASSED_FOR_ORDINARY),
)
def test_leak_behind_a_masked_or_infinite_entry_is_not_reported_as_proved(name: str) -> None:
    case = PASSED_FOR_ORDINARY[name]
    program = build(case)
    first = torch.ones(2, TOKENS, WIDTH) + torch.rand(2, TOKENS, WIDTH)
    if case.law == "causal":
        second = torch.cat([first[:, :-1], 100 * first[:, -1:]], 1)
        one, two = (program(x).flatten(0, -2)[0] for x in (first, second))
    else:
        first = first * torch.tensor([1.0, 100.0, 1.0, 1.0, 1.0])[:, None]
        one, two = program(first).flip(1), program(first.flip(1))
    if torch.allclose(one, two):
        pytest.fail("the program obeys the law after all", pytrace=False)
    (finding,) = prove_law(examine(program), laws.find_proved_law(case.law))
    assert finding.verdict != "proved"


class SharedHeads(nn.Module):
    """Attention whose query heads are the tokens, to keys and values that groups of them share."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.rand(1, 2, 3, WIDTH, generator=torch.Generator().manual_seed(0)))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        y: Tensor = F.scaled_dot_product_attention(x, self.keys, self.keys, enable_gqa=True)
        return y


def test_constants_that_groups_of_moving_heads_share_are_named() -> None:
    finding = prove(SharedHeads().eval(), "permutation", inputs=torch.randn(2, 4, 3, WIDTH), token_axis=1)
    assert finding.verdict == "refuted"
    assert "a constant that is not the same for every token along dimension 1" in finding.reason
