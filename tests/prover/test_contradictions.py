"""Programs on which the prover was once wrong: each is a proof, or a fact at a node, that two runs contradict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orderproof import laws
from orderproof.auditing.verdict import Options, prove_law
from orderproof.prover.fact import EXACT
from tests.prover.walking import TOKENS, WIDTH, Program, examine, malformed, shortfall, violations, walk

FUTURE = torch.ones(TOKENS, TOKENS).triu(1).bool()


@dataclass(frozen=True)
class Case:
    """A program, and the law that it breaks or under which a fact of its walk was once wrong."""

    name: str
    law: str
    function: Callable[..., Tensor]
    buffers: tuple[str, ...] = ()


def attend(change: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Self-attention with something done to its scores."""
    return lambda x: change(x @ x.transpose(1, 2)) @ x


def same(x: Tensor) -> Tensor:
    """Every token replaced by the mean token: constant along the tokens."""
    return x.mean(1, keepdim=True).expand_as(x)


def level(x: Tensor) -> Tensor:
    """One number a row, repeated to [batch, token, token]."""
    return x.mean((1, 2)).view(-1, 1, 1).expand(x.shape[0], TOKENS, TOKENS)


def big(sign: float = -1e9) -> Tensor:
    """A finite mask."""
    return torch.zeros(TOKENS, TOKENS).masked_fill(FUTURE, sign)


def causal(scores: Tensor) -> Tensor:
    """Causal attention weights."""
    return scores.masked_fill(FUTURE, -torch.inf).softmax(-1)


FALSE_PROOFS = [
    Case(
        "attention_of_equal_scores_under_a_causal_mask",
        "order_blind",
        lambda x: F.scaled_dot_product_attention(same(x), same(x), x, is_causal=True),
    ),
    Case(
        "layer_norm_over_equal_elements_with_a_ramp_as_bias",
        "order_blind",
        lambda x, w, b: F.layer_norm(level(x), (TOKENS,), w, b) @ x,
        ("one", "ramp"),
    ),
    Case(
        "rms_norm_over_equal_elements_with_a_ramp_as_weight",
        "order_blind",
        lambda x, w: F.rms_norm(level(x), (TOKENS,), w) @ x,
        ("ramp",),
    ),
    Case(
        "group_norm_over_equal_channels_with_a_ramp_as_bias",
        "order_blind",
        lambda x, w, b: F.group_norm(level(x), 1, w, b).transpose(1, 2) @ x,
        ("one", "ramp"),
    ),
    Case(
        "convolution_whose_weight_is_made_of_tokens",
        "order_blind",
        lambda x: F.conv1d(x.transpose(1, 2), x.mean(0)[:, :, None])[:, 0],
    ),
    Case(
        "convolution_whose_bias_is_made_of_tokens",
        "order_blind",
        lambda x: F.conv1d(x.transpose(1, 2), x.new_ones(TOKENS, WIDTH, 1), x.mean((0, 2)))[:, 0],
    ),
    Case("mask_times_a_tiny_number", "causal", attend(lambda s: ((s + big()) * 1e-9).softmax(-1))),
    Case("mask_divided_by_a_large_number", "causal", attend(lambda s: ((s + big()) / 1e9).softmax(-1))),
    Case(
        "mask_divided_by_a_large_tensor",
        "causal",
        attend(lambda s: ((s + big()) / torch.full((1,), 1e9)).softmax(-1)),
    ),
    Case("mask_added_with_alpha_0", "causal", attend(lambda s: s.add(big(), alpha=0).softmax(-1))),
    Case("mask_added_with_alpha_minus_1", "causal", attend(lambda s: s.add(big(), alpha=-1).softmax(-1))),
    Case("mask_added_and_taken_back", "causal", attend(lambda s: (s + big() + big(1e9)).softmax(-1))),
    Case(
        "mask_made_boolean",
        "causal",
        attend(lambda s: (s + big()).to(torch.bool).to(s.dtype).softmax(-1)),
    ),
    Case(
        "mask_wrapped_round_in_int8",
        "causal",
        attend(lambda s: (s + big()).to(torch.int8).to(s.dtype).softmax(-1)),
    ),
    Case(
        "mask_beside_visible_entries_as_large",
        "causal",
        attend(lambda s: (s + big(-1e8)).masked_fill(~FUTURE, -99999999.0).softmax(-1)),
    ),
]

WRONG_FACTS = [
    Case(
        "log_softmax_of_a_finite_mask",
        "causal",
        attend(lambda s: (s + big()).log_softmax(-1) + big(1e9)),
    ),
    Case("causal_attention", "order_blind", attend(causal)),
    Case("causal_attention", "prompt_blind", attend(causal)),
    Case(
        "causal_attention_of_equal_keys",
        "prompt_blind",
        lambda x: F.scaled_dot_product_attention(x[:, None], same(x)[:, None], x[:, None], attn_mask=~FUTURE),
    ),
    Case(
        "attention_of_equal_queries",
        "order_blind",
        lambda x: F.scaled_dot_product_attention(same(x)[:, None], x[:, None], x[:, None], attn_mask=~FUTURE),
    ),
    Case(
        "maximum_whose_index_is_not_read",
        "order_blind",
        lambda x: x.max(1).values,
    ),
    Case(
        "median_whose_index_is_not_read",
        "order_blind",
        lambda x: x.median(1).values,
    ),
]


def build(case: Case) -> Program:
    made = {"one": torch.ones(TOKENS), "ramp": torch.arange(TOKENS).float()}
    return Program(case.function, **{name: made[name] for name in case.buffers})


def parameters(cases: list[Case]) -> list[object]:
    return [pytest.param(c, id=f"{c.name}-{c.law}") for c in cases]


@pytest.mark.parametrize("case", parameters(FALSE_PROOFS))
def test_program_that_breaks_the_law_is_not_proved(case: Case) -> None:
    exam = examine(build(case))
    assert shortfall(exam, walk(exam, laws.get(case.law))) is not None


@pytest.mark.parametrize("case", parameters([*FALSE_PROOFS, *WRONG_FACTS]))
def test_every_fact_holds_in_real_runs(case: Case) -> None:
    exam = examine(build(case))
    done = walk(exam, laws.get(case.law))
    assert [f"{v.node.target}: {v.claim} ({v.deviation:.2g})" for v in violations(exam, done)] == []


def test_proof_contradicted_in_float32_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    law = laws.get("causal")
    monkeypatch.setattr(type(law), "shortfall", lambda *_: None)  # a prover that proves everything
    exam = examine(Program(lambda x: F.linear(x, torch.ones(WIDTH, WIDTH)).flip(1)))  # float32, whatever x is
    (finding,) = prove_law(exam, law)
    assert finding.verdict == "undecided"


def test_witness_is_found_for_a_model_that_makes_float32_constants() -> None:
    exam = examine(Program(lambda x: F.linear(x, torch.ones(WIDTH, WIDTH)).cumsum(1)))
    (finding,) = prove_law(exam, laws.get("order_blind"))
    assert finding.verdict == "refuted"


def test_proof_that_used_the_values_of_a_joined_parameter_says_so() -> None:
    gate = nn.Parameter(torch.zeros(2, TOKENS, WIDTH))
    exam = examine(Program(lambda x, g: torch.cat([x, g], -1)[..., WIDTH:] * x.flip(1) + x, gate=gate))
    (finding,) = prove_law(exam, laws.get("causal"), Options(weights="these"))
    assert (finding.verdict, finding.scope.weights, finding.scope.consulted) == ("proved", "these", ("gate",))


def test_known_values_are_not_kept_by_a_view_of_the_bits() -> None:
    exam = examine(Program(lambda x: x.masked_fill(torch.ones(TOKENS, WIDTH).bool(), 1.0).view(torch.int32).float()))
    done = walk(exam, laws.get("causal"))
    (output,) = exam.captured.outputs.values()
    known = done.walk.fact(output).known
    assert known is None or not known.where(EXACT).any() or (known.value == 1065353216).all()


@pytest.mark.parametrize("dim", [0, 2])
def test_facts_have_the_rank_of_their_tensor(dim: int) -> None:
    exam = examine(Program(lambda x: x.kthvalue(1, dim).values))
    assert malformed(walk(exam, laws.get("causal"))) == []


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

    exam = examine(Channels())
    assert shortfall(exam, walk(exam, laws.get("order_blind"))) is None
