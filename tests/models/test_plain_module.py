"""Plain modules and their inputs."""

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import SubjectError, UsageError
from orderproof.models import from_module


class Table(nn.Module):
    """Adds a position table of five rows."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(5, 8))

    def forward(self, x, mask=None):
        return x + self.table if mask is None else (x + self.table) * mask[..., None]


class Block(nn.Module):
    """Says its width."""

    width = 12

    def forward(self, x):
        return x.cumsum(1)


LAYER = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)


@pytest.mark.parametrize(
    ("module", "axis", "shape"),
    [
        (LAYER, 1, (2, 7, 16)),
        (nn.TransformerEncoderLayer(16, 2, 32), 1, (2, 7, 16)),
        (nn.TransformerEncoder(LAYER, 2, enable_nested_tensor=False), 1, (2, 7, 16)),
        (nn.MultiheadAttention(16, 2), 1, (2, 7, 16)),
        (nn.MultiheadAttention(16, 2, batch_first=True), 1, (2, 7, 16)),
        (Block(), 1, (2, 7, 12)),
    ],
)
def test_known_modules_need_no_examples(module, axis, shape):
    subject = from_module(module)
    assert (subject.model_kind, subject.token_axes, subject.default_length) == ("module", (axis,), 7)
    inputs = subject.sample(7).inputs
    assert inputs[0].shape == shape
    with torch.no_grad(), subject.export_context():
        expected = subject.module(*inputs)
        found = torch.export.export(subject.module, inputs, strict=False).module()(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert not subject.module.training


def test_other_modules_need_example_inputs():
    for module in (nn.Bilinear(3, 4, 5), nn.Conv1d(3, 4, 1), nn.Sequential(nn.Flatten(), nn.Linear(3, 4))):
        with pytest.raises(SubjectError, match=r": its inputs are unknown; give example inputs: name a function that"):
            from_module(module)


@pytest.mark.parametrize(
    ("module", "shape", "note"),
    [
        (nn.Linear(3, 4), (2, 7, 3), "vectors of width 3, from the module"),
        (nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 5)), (2, 7), "token ids below 9, from 0"),
        (nn.Sequential(nn.Linear(4, 9), nn.Linear(9, 2)), (2, 7, 4), "vectors of width 4, from 0"),
    ],
)
def test_inputs_are_derived_from_the_first_layer(module, shape, note):
    subject = from_module(module)
    (example,) = subject.sample(7).inputs
    assert example.shape == shape
    assert f"input: {note}; if it takes others, give example inputs" in subject.notes


def test_lengths_and_rows_are_drawn_like_the_examples():
    subject = from_module(nn.Linear(16, 4), torch.full((1, 5, 16), 3.0))
    first, again, other = (subject.sample(11, seed).inputs[0] for seed in (0, 0, 1))
    assert first.shape == (2, 11, 16)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert abs(first.mean() - 3.0) < 0.5
    assert first.std() > 0.5
    assert subject.sample(3).labels == ("x0", "x1", "x2")


def test_token_ids_stay_in_range_and_masks_and_positions_keep_their_form():
    class Reads(nn.Module):
        def forward(self, numbers, mask, positions, scale):
            assert mask.dtype == torch.bool
            assert mask.all()
            assert mask.shape == numbers.shape
            assert torch.equal(positions, torch.arange(numbers.shape[1]).expand_as(numbers))
            return (numbers + positions) * mask * scale

    numbers = torch.tensor([[3, 9, 4, 5], [3, 3, 9, 9]])
    mask, positions, scale = torch.ones(2, 4, dtype=torch.bool), torch.arange(4)[None], torch.tensor(2.0)
    subject = from_module(Reads(), (numbers, mask, positions, scale))
    assert subject.token_axes == (1, None)
    drawn = subject.sample(9).inputs
    assert drawn[0].shape == (2, 9)
    assert 3 <= drawn[0].min() <= drawn[0].max() <= 9
    assert torch.equal(drawn[1], scale)
    assert subject.module(*drawn).shape == (2, 9)


def test_named_inputs_are_passed_by_name():
    subject = from_module(Table(), {"mask": torch.ones(2, 5), "x": torch.randn(2, 5, 8)}, token_axis=[1, 1])
    assert [tensor.shape for tensor in subject.sample(5).inputs] == [(2, 5, 8)]


def test_a_fixed_length_is_found_by_calling():
    subject = from_module(Table(), torch.randn(1, 5, 8))
    assert (subject.default_length, subject.max_length) == (5, 5)
    assert subject.sample(5).inputs[0].shape == (2, 5, 8)
    with pytest.raises(
        SubjectError, match=r"Table: calling it with \(2, 7, 8\) raised RuntimeError: The size of tensor"
    ):
        from_module(Table(), torch.randn(2, 5, 8), length=7)


def test_a_square_mask_fixes_the_length():
    class Masked(nn.Module):
        def forward(self, x, mask):
            return mask @ x

    square = torch.rand(7, 7)
    subject = from_module(Masked(), (torch.randn(2, 7, 8), square))
    assert subject.token_axes == (1, None)
    assert torch.equal(subject.sample(7).inputs[1], square)
    with pytest.raises(SubjectError, match=r"input 1 of shape \(7, 7\) has several axes as long as the 7 tokens"):
        subject.sample(5)
    with pytest.raises(UsageError, match="length must be at most 7"):
        subject.sample(11)
    assert from_module(Masked(), (torch.randn(2, 6, 8), torch.rand(6, 6))).default_length == 6


def test_the_token_axis_can_be_stated():
    subject = from_module(nn.Identity(), torch.randn(2, 4, 6, 8), token_axis=-2)
    assert subject.token_axes == (2,)
    assert subject.sample(7).inputs[0].shape == (2, 4, 7, 8)
    with pytest.raises(
        SubjectError, match=r"no token axis found in inputs of shape \(2, 4, 6, 8\); name it with --token-axis"
    ):
        from_module(nn.Identity(), torch.randn(2, 4, 6, 8))
    with pytest.raises(UsageError, match=r"token_axis is 4, but the input has shape \(2, 4, 6, 8\)"):
        from_module(nn.Identity(), torch.randn(2, 4, 6, 8), token_axis=4)
    with pytest.raises(UsageError, match="token_axis has 2 entries for 1 inputs"):
        from_module(nn.Identity(), torch.randn(2, 4, 8), token_axis=[1, 1])


def test_no_module_or_no_tensor_is_refused():
    with pytest.raises(SubjectError, match=r"must be a torch\.nn\.Module; got int"):
        from_module(3)
    with pytest.raises(SubjectError, match="no tensor among the example inputs"):
        from_module(nn.Identity(), ("x",))
    with pytest.raises(SubjectError, match="no tensor among the example inputs"):
        from_module(nn.Identity(), ())


def test_module_or_input_on_another_device_is_refused() -> None:
    line = "expected parameters, buffers and inputs on the CPU, where audits run; got some on meta; make them there"
    for module, inputs in (
        (nn.Linear(4, 4, device="meta"), torch.randn(2, 7, 4)),
        (nn.Linear(4, 4), torch.randn(2, 7, 4, device="meta")),
        (nn.Linear(4, 4), {"input": torch.randn(2, 7, 4, device="meta")}),
        (nn.Linear(4, 4, device="meta"), None),
    ):
        with pytest.raises(SubjectError, match=line):
            from_module(module, inputs)


def test_a_transformers_model_needs_no_examples():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, vocab_size=50))
    subject = from_module(model, length=11)
    assert (subject.model_kind, subject.default_length, subject.load_summary) == (
        "causal_lm",
        11,
        "sdpa, float32, as given",
    )
    with torch.no_grad():
        assert subject.module(*subject.sample(11).inputs)["logits"].shape == (2, 11, 50)
    assert model.config.use_cache is True  # another's model is left as it was


@pytest.mark.parametrize("with_positions", [False, True])
def test_token_ids_that_count_are_drawn_as_ids(with_positions: bool) -> None:
    class LooksAhead(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(20, 8), nn.Embedding(20, 8)

        def forward(self, tokens: Tensor, position_ids: Tensor | None = None) -> Tensor:
            x = self.words(tokens)
            x = x if position_ids is None else x + self.places(position_ids)
            return x + x.flip(1).cumsum(1).flip(1)

    inputs = (torch.arange(7)[None], torch.arange(7)[None]) if with_positions else torch.arange(14).view(2, 7)
    (finding,) = audit(LooksAhead().eval(), inputs=inputs, laws=["causal"]).findings
    assert finding.verdict == "refuted"
