"""The arguments of a plain module that take a padding mask and position ids: found, or stated by the user."""

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, prove
from orderproof.errors import UsageError
from orderproof.models import from_module, load
from orderproof.subject_spec import Layout, StatedMask, parse_layout

IDS = torch.randint(0, 50, (2, 7))


class Attention(nn.Module):
    """Attention without positions over token ids."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)

    def attend(self, ids: Tensor, hidden: Tensor | None) -> Tensor:
        x = self.embed(ids)
        scores = x @ x.mT
        if hidden is not None:
            scores = scores.masked_fill(hidden[:, None, :], -1e9)
        return scores.softmax(-1) @ x


class Visible(Attention):
    """The mask has a name that says nothing, and True at real tokens."""

    def forward(self, ids: Tensor, keep: Tensor | None = None) -> Tensor:
        return self.attend(ids, None if keep is None else keep == 0)


class MarksPads(Attention):
    """The mask has a common name and True at pads, against the common convention."""

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.attend(ids, None if attention_mask is None else attention_mask != 0)


class IgnoresMask(Attention):
    """A mask that has no effect."""

    def forward(self, ids: Tensor, keep: Tensor | None = None) -> Tensor:
        return self.attend(ids, None)


class Positions(Attention):
    """Position ids with an uncommon name."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(600, 8)

    def forward(self, ids: Tensor, where: Tensor | None = None) -> Tensor:
        places = torch.arange(ids.shape[1]).expand_as(ids) if where is None else where
        x = self.embed(ids) + self.table(places)
        return (x @ x.mT).softmax(-1) @ x


def verdicts(module: nn.Module, law: str, **stated: dict[str, str]) -> dict[str, str]:
    report = audit(module, laws=[law], inputs=IDS, **stated)
    return {f.call_mode: f.verdict for f in report.findings}


def test_a_mask_with_any_name_can_be_stated() -> None:
    assert verdicts(Visible(), "padding") == {"padded": "undecided"}  # it applies to no output
    assert verdicts(Visible(), "padding", roles={"keep": "mask"}) == {"padded": "proved"}
    (note,) = from_module(Visible(), IDS, roles={"keep": "mask"}).notes
    assert note.startswith(
        "argument 'keep' is a padding mask, True at real tokens, which calls decided; --role keep=mask:"
    )


def test_a_convention_that_is_not_stated_is_decided_by_calls_but_not_against_tokenizers() -> None:
    assert verdicts(MarksPads(), "padding") == {"padded": "refuted"}
    assert verdicts(MarksPads(), "padding", roles={"attention_mask": "mask:pads"}) == {"padded": "proved"}
    assert verdicts(MarksPads(), "padding", roles={"attention_mask": "mask"}) == {"padded": "proved"}
    assert verdicts(MarksPads(), "padding", roles={"attention_mask": "mask:real"}) == {"padded": "refuted"}


class MarksPadsInIntegers(nn.Module):
    """A mask of integers with 1 at pads, which a boolean switches off."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, drop: Tensor | None = None) -> Tensor:
        y: Tensor = self.linear(x)
        return y if drop is None or drop.dtype is torch.bool else y + x.mean(1, keepdim=True)


def test_a_mask_that_is_said_to_have_1_at_pads_is_given_integers() -> None:
    torch.manual_seed(0)
    module, x = MarksPadsInIntegers().eval(), torch.randn(2, 7, 8)
    assert from_module(module, x, roles={"drop": "mask:pads"}).notes == (
        "argument 'drop' is a padding mask, 1 at pads, as stated",
    )
    assert prove(module, "padding", inputs=x, roles={"drop": "mask:pads"}).verdict == "refuted"


def test_a_guessed_mask_leaves_a_note_that_says_how_to_state_another() -> None:
    (note,) = from_module(MarksPads(), IDS).notes
    assert note.startswith(
        "argument 'attention_mask' hides tokens the other way round in calls than its name or its example states; it "
        "is given with True at real tokens; if calls are right, state it: --role attention_mask=mask:pads"
    )


def test_a_module_can_be_said_to_take_no_mask() -> None:
    assert verdicts(MarksPads(), "padding", roles={"attention_mask": "held"}) == {"padded": "undecided"}


def test_a_stated_mask_without_an_effect_needs_its_convention() -> None:
    with pytest.raises(UsageError, match="expected argument 'keep' of forward\\(ids, keep\\) to hide tokens; it hides"):
        from_module(IgnoresMask(), IDS, roles={"keep": "mask"})
    assert verdicts(IgnoresMask(), "padding", roles={"keep": "mask:real"}) == {"padded": "refuted"}


def test_position_ids_with_any_name_can_be_stated() -> None:
    assert verdicts(Positions(), "position_ids") == {"labelled": "undecided"}
    assert verdicts(Positions(), "position_ids", roles={"where": "positions"}) == {"labelled": "proved"}
    noted = from_module(Positions(), IDS, roles={"where": "positions"}).notes
    assert noted == ("argument 'where' takes position ids, as stated",)


def test_a_module_can_be_said_to_take_no_position_ids() -> None:
    class Common(Positions):
        def forward(self, ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
            return super().forward(ids, position_ids)

    assert verdicts(Common(), "position_ids") == {"labelled": "proved"}
    assert verdicts(Common(), "position_ids", roles={"position_ids": "held"}) == {"labelled": "undecided"}


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"kept": "mask"}, "expected an argument of forward\\(ids, keep\\) that is a padding mask; got 'kept'"),
        ({"at": "positions"}, "expected an argument of forward\\(ids, keep\\) that takes position ids; got 'at'"),
        ({"keep": "mask:tokens"}, "expected a role, one of mask, mask:real, mask:pads, .*; got 'mask:tokens'"),
    ],
)
def test_statements_that_do_not_fit_are_refused(stated: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_module(Visible(), IDS, roles=stated)


def test_a_stated_mask_of_tokens_along_axis_0_must_hide_one() -> None:
    with pytest.raises(
        UsageError, match=r"expected argument 'hx' of forward\(input, hx\) to hide tokens; it hides none"
    ):
        from_module(nn.GRU(16, 16), torch.randn(7, 2, 16), token_axis=0, roles={"hx": "mask"})


def test_a_model_of_transformers_states_its_mask_itself() -> None:
    with pytest.raises(UsageError, match="expected no mask and position_ids with a model of transformers"):
        load("arch:llama", tiny=True, layout=Layout(mask=StatedMask("attention_mask"), position_ids="none"))
    with pytest.raises(UsageError, match="expected no mask with against"):
        audit("arch:llama", against="mlx", roles={"attention_mask": "mask"})


def test_a_stated_mask_is_read_from_text() -> None:
    assert parse_layout(None, None, roles=["keep=mask"]).mask == StatedMask("keep")
    assert parse_layout(None, None, roles=["hidden=mask:pads"]).mask == StatedMask("hidden", marks_pads=True)
    assert parse_layout(None, None, roles=["keep=mask:real", "where=positions"]).stated == "mask and position_ids"


def test_a_proof_of_one_law_takes_the_statement_too() -> None:
    assert prove(Visible(), "padding", inputs=IDS, roles={"keep": "mask"}).verdict == "proved"


def test_an_example_input_can_be_stated_to_be_the_mask() -> None:
    subject = from_module(Visible(), (IDS, torch.ones(2, 7)), roles={"keep": "mask"})
    assert subject.token_axes == (1,)
    (note,) = subject.notes
    assert note.startswith(
        "argument 'keep' is a padding mask, 1 at real tokens, which calls decided; --role keep=mask:pads"
    )


@pytest.mark.parametrize("role", ["mask", "positions"])
def test_an_example_input_of_another_form_cannot_be_stated_to_be_one(role: str) -> None:
    with pytest.raises(UsageError, match="expected input 'keep' to "):
        from_module(Visible(), (IDS, torch.randn(2, 7)), roles={"keep": role})


def test_a_mask_among_the_example_inputs_hides_tokens_as_calls_show() -> None:
    notes = from_module(MarksPads(), (IDS, torch.zeros(2, 7))).notes
    assert any("padding mask, 1 at pads, since it hides a token" in note for note in notes)
