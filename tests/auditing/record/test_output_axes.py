"""Axes of outputs are derived from calls of other sizes, or stated; a coincidence of sizes decides nothing."""

import pytest
import torch
from torch import nn

from orderproof import audit, prove
from orderproof.auditing.api import audit_context
from orderproof.auditing.decide.verdict import prove_law
from orderproof.errors import UsageError
from orderproof.laws import find_proved_law
from orderproof.models import from_module

EIGHT = torch.randn(2, 8, 16)
LAWS = ("causal", "permutation", "batch")


class Pooled(nn.Module):
    """One vector of eight numbers for each row, which reads a fixed number of tokens."""

    def __init__(self, tokens):
        super().__init__()
        self.head = nn.Linear(tokens * 16, 8)

    def forward(self, x):
        return self.head(x.flatten(1))


class WithMemory(nn.Module):
    """A causal sum, and a memory of eight slots that each read all of the seven tokens."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(7, 16))
        self.slots = nn.Linear(7, 8)

    def forward(self, x):
        x = x + self.positions
        return x.cumsum(1), self.slots(x.transpose(1, 2)).transpose(1, 2)


def verdicts(module, inputs, **options):
    report = audit(module, laws=LAWS, inputs=inputs, **options)
    return {(f.law, f.output): f for f in report.findings}, report.subject.axes


@pytest.mark.parametrize("layers", [2, 3])
def test_the_states_of_an_lstm_have_layers_before_rows(layers):
    rows = torch.randn(layers, 7, 16)
    found, axes = verdicts(nn.LSTM(16, 16, layers, batch_first=True), rows, roles={"hx": "held"})
    for state in ("output.1.0", "output.1.1"):
        assert axes[state].startswith(f"[{layers}, batch, 16]")
        assert found["batch", state].verdict == "proved"
        assert found["causal", state].verdict == "not_applicable"
    assert axes["output.0"].startswith("[batch, token, 16]")
    assert found["causal", "output.0"].verdict == "proved"


def test_rows_of_a_sequence_first_lstm_are_its_second_axis():
    found, axes = verdicts(nn.LSTM(16, 16, 2), torch.randn(7, 2, 16), token_axis=0, roles={"hx": "held"})
    assert axes["output.0"].startswith("[token, batch, 16]")
    assert {found["batch", name].verdict for name in ("output.0", "output.1.0", "output.1.1")} == {"proved"}


@pytest.mark.parametrize("tokens", [8, 7])  # as many as the entries of the output, and one less
def test_entries_of_a_pooled_output_are_no_tokens(tokens):
    found, axes = verdicts(Pooled(tokens), torch.randn(2, tokens, 16))
    for law in ("causal", "permutation"):
        assert found[law, "output"].verdict == "undecided"
        assert f"a call with {tokens + 1} tokens failed" in found[law, "output"].reason
        assert "--output-axes" in found[law, "output"].reason
    assert found["batch", "output"].verdict == "proved"
    assert "not known" in axes["output"]


def test_the_slots_of_a_memory_are_no_tokens():
    found, axes = verdicts(WithMemory(), torch.randn(2, 7, 16))
    assert axes["output.1"].startswith("[batch, 8, 16]")
    assert found["causal", "output.1"].verdict == "undecided"
    assert "token -1" not in found["causal", "output.1"].reason


def test_a_stated_pooled_output_is_decided():
    found, axes = verdicts(Pooled(8), EIGHT, outputs=("batch", "feature"))
    assert axes["output"] == "[batch, 8], as stated"
    assert found["causal", "output"].verdict == "undecided"
    assert "does not apply" in found["causal", "output"].reason, "a law that is named is expected to hold"
    assert found["permutation", "output"].verdict == "refuted"


def test_stated_tokens_are_read_as_tokens():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Parameter(torch.randn(8, 8))

        def forward(self, x):
            return self.mix.tril() @ x

    assert prove(Fixed(), "causal", inputs=EIGHT).verdict == "undecided"
    for outputs in ("batch,token,width", {"output": ("batch", "token", "width")}):
        assert prove(Fixed(), "causal", inputs=EIGHT, outputs=outputs, token_axis=1).verdict == "proved"


def test_stated_entries_before_the_tokens_are_not_looked_for_after_them():
    class Prefixed(nn.Module):
        def forward(self, x):
            return torch.cat([x[:, :1], x], 1).cumsum(1)

    assert prove(Prefixed(), "causal", inputs=EIGHT).verdict == "undecided"  # its first entry reads token 0
    assert prove(Prefixed(), "causal", inputs=EIGHT, outputs="batch,token+1,width").verdict == "proved"
    reason = prove(Prefixed(), "causal", inputs=EIGHT, outputs="batch,1+token,width").reason
    assert "entry 0 of the output, before token 0 does not read token 0" in reason


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("batch,width", "expected 3 axes for output 'output' of shape"),
        ("batch,batch,width", "expected one axis 'batch'"),
        ("width,token,batch", "which is not 'batch'"),
        ("batch,2+token,width", "which is not '2\\+token'"),
        ({"logits": "batch,token,width"}, "expected an output, one of output; got 'logits'"),
    ],
)
def test_stated_axes_that_do_not_fit_are_refused(outputs, message):
    with pytest.raises(UsageError, match=message):
        from_module(nn.Identity(), torch.randn(3, 8, 16), outputs=outputs)


def test_merged_rows_and_tokens_are_named():
    class Merged(nn.Module):
        def forward(self, x):
            return x.cumsum(1).flatten(0, 1)[1:]

    found, _ = verdicts(Merged(), EIGHT)
    assert {f.verdict for f in found.values()} == {"undecided"}
    assert "axis 0 of output 'output' has 13 entries with 2 rows of 7 tokens, 15 with 8 tokens" in (
        found["causal", "output"].reason
    )


def test_an_output_without_rows_has_no_rows_to_compare():
    class Loss(nn.Module):
        def forward(self, x):
            return x.cumsum(1), x.square().mean()

    found, axes = verdicts(Loss(), EIGHT)
    assert axes["output.1"].startswith("[]")
    assert (found["batch", "output.1"].verdict, found["batch", "output.0"].verdict) == ("not_applicable", "proved")
    assert found["batch", "output.1"].reason == "no axis of the output runs over rows"


def test_tokens_that_may_run_along_the_last_axis_are_not_guessed():
    class Convolution(nn.Conv1d):
        def forward(self, x):
            return super().forward(nn.functional.pad(x, (2, 0)))

    module, inputs = Convolution(4, 4, 3), torch.randn(2, 4, 9)
    found, _ = verdicts(module, inputs)  # a matrix over tokens that is given tokens along axis 1 looks the same
    reason = "the module takes other sizes of axis 2 of input 0, and not of axis 1; state which one runs over tokens"
    assert (found["causal", "output"].verdict, found["batch", "output"].verdict) == ("undecided", "proved")
    assert reason in found["causal", "output"].reason
    found, _ = verdicts(module, inputs, token_axis=2)
    assert (found["causal", "output"].verdict, found["batch", "output"].verdict) == ("proved", "proved")


def test_source_and_target_are_two_sequences_unless_stated():
    model = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
    pair = (torch.randn(2, 7, 16), torch.randn(2, 7, 16))
    alone = from_module(model, pair)
    assert alone.token_axes == (1, None)
    assert [role.role for role in alone.input_roles if role.name == "tgt"] == [
        "a sequence of its own, held in other laws"
    ]
    assert from_module(model, pair, together=True).token_axes == (1, 1)
    assert from_module(model, pair, token_axis=(None, 1)).token_axes == (None, 1)


def test_rows_moved_to_the_front_are_proved_apart():
    subject = from_module(nn.LSTM(16, 16, 2), torch.randn(7, 2, 16), token_axis=0, roles={"hx": "held"})
    context = audit_context(subject)
    found = [f for law in ("causal", "batch") for f in prove_law(context, find_proved_law(law))]
    assert sum(f.verdict == "proved" for f in found) >= 3


def test_tokens_of_windows_are_found_at_multiples_of_the_length():
    class Windows(nn.Module):
        def forward(self, x):
            return x.unflatten(1, (-1, 4)).cumsum(2).flatten(1, 2), x.unflatten(1, (-1, 4)).mean(2)

    found, axes = verdicts(Windows(), EIGHT)
    assert axes["output.0"].startswith("[batch, token, 16]")
    assert found["causal", "output.0"].verdict == "proved"
    assert found["causal", "output.1"].verdict == "undecided"
    assert "axis 1 of output 'output.1' has 2 entries with 2 rows of 8 tokens, 4 with 16 tokens" in (
        found["causal", "output.1"].reason
    )
