"""Programs on which the prover was once wrong: each is a proof, or a fact at a node, that two runs contradict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orderproof import laws
from orderproof.audit.prove import Options, prove_law
from orderproof.prover.fact import EXACT
from tests.prover.walking import TOKENS, WIDTH, Program, examine, malformed, shortfall, violations, walk

FUTURE = torch.ones(TOKENS, TOKENS).triu(1).bool()
ALL_SAME = "FREE is claimed along a dimension although a constant that varies along it was added"
MASK_LOST = "an element stays MASKED through an operator that makes it ordinary again"
MASKED_OUT = "softmax drops the level of a masked entry whose image under the move is not masked"


@dataclass(frozen=True)
class Case:
    """A program, the law it breaks, and the mistake it shows (empty once mended)."""

    name: str
    law: str
    function: Callable[..., Tensor]
    mistake: str = ""
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
        ALL_SAME,
    ),
    Case(
        "layer_norm_over_equal_elements_with_a_ramp_as_bias",
        "order_blind",
        lambda x, w, b: F.layer_norm(level(x), (TOKENS,), w, b) @ x,
        ALL_SAME,
        ("one", "ramp"),
    ),
    Case(
        "rms_norm_over_equal_elements_with_a_ramp_as_weight",
        "order_blind",
        lambda x, w: F.rms_norm(level(x), (TOKENS,), w) @ x,
        ALL_SAME,
        ("ramp",),
    ),
    Case(
        "group_norm_over_equal_channels_with_a_ramp_as_bias",
        "order_blind",
        lambda x, w, b: F.group_norm(level(x), 1, w, b).transpose(1, 2) @ x,
        ALL_SAME,
        ("one", "ramp"),
    ),
    Case(
        "convolution_whose_weight_is_made_of_tokens",
        "order_blind",
        lambda x: F.conv1d(x.transpose(1, 2), x.mean(0)[:, :, None])[:, 0],
        "convolution: a weight that moves along its output channels is taken as unmoved",
    ),
    Case(
        "convolution_whose_bias_is_made_of_tokens",
        "order_blind",
        lambda x: F.conv1d(x.transpose(1, 2), x.new_ones(TOKENS, WIDTH, 1), x.mean((0, 2)))[:, 0],
        "convolution: a bias that moves is taken as unmoved",
    ),
    Case("mask_times_a_tiny_number", "causal", attend(lambda s: ((s + big()) * 1e-9).softmax(-1)), MASK_LOST),
    Case("mask_divided_by_a_large_number", "causal", attend(lambda s: ((s + big()) / 1e9).softmax(-1)), MASK_LOST),
    Case(
        "mask_divided_by_a_large_tensor",
        "causal",
        attend(lambda s: ((s + big()) / torch.full((1,), 1e9)).softmax(-1)),
        MASK_LOST,
    ),
    Case("mask_added_with_alpha_0", "causal", attend(lambda s: s.add(big(), alpha=0).softmax(-1)), MASK_LOST),
    Case("mask_added_with_alpha_minus_1", "causal", attend(lambda s: s.add(big(), alpha=-1).softmax(-1)), MASK_LOST),
    Case("mask_added_and_taken_back", "causal", attend(lambda s: (s + big() + big(1e9)).softmax(-1)), MASK_LOST),
    Case(
        "mask_made_boolean",
        "causal",
        attend(lambda s: (s + big()).to(torch.bool).to(s.dtype).softmax(-1)),
        MASK_LOST,
    ),
    Case(
        "mask_wrapped_round_in_int8",
        "causal",
        attend(lambda s: (s + big()).to(torch.int8).to(s.dtype).softmax(-1)),
        MASK_LOST,
    ),
    Case(
        "mask_beside_visible_entries_as_large",
        "causal",
        attend(lambda s: (s + big(-1e8)).masked_fill(~FUTURE, -99999999.0).softmax(-1)),
        "softmax takes a known entry of -99999999 as an ordinary one beside a mask of -1e8",
    ),
]

WRONG_FACTS = [
    Case(
        "log_softmax_of_a_finite_mask",
        "causal",
        attend(lambda s: (s + big()).log_softmax(-1) + big(1e9)),
        "log_softmax keeps a finitely masked score readable, but its level is dropped",
    ),
    Case("causal_attention", "order_blind", attend(causal), MASKED_OUT),
    Case("causal_attention", "prompt_blind", attend(causal), MASKED_OUT),
    Case(
        "causal_attention_of_equal_keys",
        "prompt_blind",
        lambda x: F.scaled_dot_product_attention(x[:, None], same(x)[:, None], x[:, None], attn_mask=~FUTURE),
        MASKED_OUT,
    ),
    Case(
        "attention_of_equal_queries",
        "order_blind",
        lambda x: F.scaled_dot_product_attention(same(x)[:, None], x[:, None], x[:, None], attn_mask=~FUTURE),
        ALL_SAME,
    ),
    Case(
        "maximum_whose_index_is_not_read",
        "order_blind",
        lambda x: x.max(1).values,
        "the index of a maximum along the tokens is said to be unchanged when nobody reads it",
    ),
    Case(
        "median_whose_index_is_not_read",
        "order_blind",
        lambda x: x.median(1).values,
        "the index of a median along the tokens is said to be unchanged when nobody reads it",
    ),
]


def build(case: Case) -> Program:
    made = {"one": torch.ones(TOKENS), "ramp": torch.arange(TOKENS).float()}
    return Program(case.function, **{name: made[name] for name in case.buffers})


def wrong(reason: str) -> pytest.MarkDecorator:
    """A mistake that is still there; only a failed assertion shows it, no error."""
    return pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)


def parameters(cases: list[Case]) -> list[object]:
    return [pytest.param(c, id=f"{c.name}-{c.law}", marks=[wrong(c.mistake)] if c.mistake else []) for c in cases]


@pytest.mark.parametrize("case", parameters(FALSE_PROOFS))
def test_program_that_breaks_the_law_is_not_proved(case: Case) -> None:
    exam = examine(build(case))
    assert shortfall(exam, walk(exam, laws.get(case.law))) is not None


@pytest.mark.parametrize("case", parameters([*FALSE_PROOFS, *WRONG_FACTS]))
def test_every_fact_holds_in_real_runs(case: Case) -> None:
    exam = examine(build(case))
    done = walk(exam, laws.get(case.law))
    assert [f"{v.node.target}: {v.claim} ({v.deviation:.2g})" for v in violations(exam, done)] == []


@wrong("_proved looks at the float64 deviation only; None there hides any in float32")
def test_proof_contradicted_in_float32_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    law = laws.get("causal")
    monkeypatch.setattr(type(law), "shortfall", lambda *_: None)  # a prover that proves everything
    exam = examine(Program(lambda x: F.linear(x, torch.ones(WIDTH, WIDTH)).flip(1)))  # float32, whatever x is
    (finding,) = prove_law(exam, law)
    assert finding.verdict == "undecided"


@wrong("a model with a float32 constant in forward cannot run as .double(): no witness")
def test_witness_is_found_for_a_model_that_makes_float32_constants() -> None:
    exam = examine(Program(lambda x: F.linear(x, torch.ones(WIDTH, WIDTH)).cumsum(1)))
    (finding,) = prove_law(exam, laws.get("order_blind"))
    assert finding.verdict == "refuted"


@wrong("cat uses the values of a constant (movement._values) without consulting it")
def test_proof_that_used_the_values_of_a_joined_parameter_says_so() -> None:
    gate = nn.Parameter(torch.zeros(2, TOKENS, WIDTH))
    exam = examine(Program(lambda x, g: torch.cat([x, g], -1)[..., WIDTH:] * x.flip(1) + x, gate=gate))
    (finding,) = prove_law(exam, laws.get("causal"), Options(weights="these"))
    assert (finding.verdict, finding.scope.weights, finding.scope.consulted) == ("proved", "these", ("gate",))


@wrong("view.dtype keeps known values although it reads the bits as other numbers")
def test_known_values_are_not_kept_by_a_view_of_the_bits() -> None:
    exam = examine(Program(lambda x: x.masked_fill(torch.ones(TOKENS, WIDTH).bool(), 1.0).view(torch.int32).float()))
    done = walk(exam, laws.get("causal"))
    (output,) = exam.captured.outputs.values()
    known = done.walk.fact(output).known
    assert known is None or not known.where(EXACT).any() or (known.value == 1065353216).all()


@wrong("kthvalue without keepdim gives a fact of the operand's rank")
@pytest.mark.parametrize("dim", [0, 2])
def test_facts_have_the_rank_of_their_tensor(dim: int) -> None:
    exam = examine(Program(lambda x: x.kthvalue(1, dim).values))
    assert malformed(walk(exam, laws.get("causal"))) == []


NEEDLESS = {
    "batch_norm_in_eval": (
        lambda: nn.BatchNorm1d(WIDTH),
        "captured as _native_batch_norm_legit_no_training, a tuple, which has no lemma",
    ),
    "prelu": (lambda: nn.PReLU(WIDTH), "captured as _prelu_kernel, which has no rule"),
}


@pytest.mark.parametrize("make", [pytest.param(m, id=n, marks=wrong(r)) for n, (m, r) in NEEDLESS.items()])
def test_channelwise_layer_over_moved_tokens_is_proved(make: Callable[[], nn.Module]) -> None:
    class Channels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = make()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x.transpose(1, 2)).transpose(1, 2)

    exam = examine(Channels())
    assert shortfall(exam, walk(exam, laws.get("order_blind"))) is None
