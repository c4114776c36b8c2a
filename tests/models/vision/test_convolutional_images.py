"""Images without patches: the tokens are the positions after the first convolution."""

import pytest
import torch
from torch import nn

from orderproof.errors import SubjectError
from orderproof.models import load
from orderproof.models.hf.outputs import audited_outputs
from orderproof.models.input_spec import NoTokenInputError
from orderproof.models.tiny.overrides import UNSUPPORTED_ARCHITECTURES
from orderproof.models.tiny.proportional_sizes import _head_counts
from orderproof.models.vision.patch_embedding import image_input, is_only_path
from orderproof.models.vision.two_step_embedding import FlatPatches, TwoStepPatchEmbedding


@pytest.mark.parametrize("name", ["mobilenet_v1", "cvt", "swiftformer", "florence_vision"])
def test_tokens_of_a_convolution_net_are_the_positions_after_its_first_convolution(name):
    subject = load(f"arch:{name}", tiny=True)
    assert "positions after the first convolution" in subject.load_summary
    assert subject.model_kind == "vision"
    rows = subject.module.get_submodule(subject.patch_embedding_path)
    assert isinstance(rows, FlatPatches)
    with torch.no_grad():
        output = next(iter(subject.module(*subject.sample(subject.default_length).inputs).values()))
    assert output.isfinite().all()


@pytest.mark.parametrize(("frames", "grid"), [(1, (4, 5)), (3, (4, 5)), (2, (20, 1))])
def test_a_convolution_in_two_steps_has_the_same_output(frames, grid):
    convolution = nn.Conv2d(3, 6, 3, stride=2, padding=1)
    pixels = torch.randn(2 * frames, 3, 8, 10, generator=torch.Generator().manual_seed(0))
    split = TwoStepPatchEmbedding(convolution, grid, frames)
    assert split.rows(pixels).shape == (2, frames * 20, 6)
    assert torch.equal(split(pixels).flatten(2), convolution(pixels).flatten(2))
    assert (split.stride, split.weight) == (convolution.stride, convolution.weight)
    with pytest.raises(AttributeError, match="nothing"):
        _ = split.nothing


def test_frames_of_a_video_are_one_sequence():
    subject = load("arch:timesformer", tiny=True)
    (film,) = subject.sample(subject.default_length).inputs
    assert subject.default_length % film.shape[1] == 0
    with torch.no_grad():
        assert subject.module.get_submodule(subject.patch_embedding_path)(film.flatten(0, 1)).shape[:2] == (
            2,
            subject.default_length,
        )


class _Net(nn.Module):
    """A convolution; subclasses use the image in other ways."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.config = type("Config", (), {"image_size": 6, "num_channels": 3, "model_type": "none"})()


class _Alone(_Net):
    def forward(self, pixel_values):
        return {"last_hidden_state": self.first(pixel_values).mean((2, 3))}


class _Around(_Net):
    """The image reaches the output a second way."""

    def forward(self, pixel_values):
        return {"last_hidden_state": self.first(pixel_values).mean((2, 3)) + pixel_values.mean()}


class _Twice(_Net):
    def forward(self, pixel_values):
        return {
            "last_hidden_state": self.first(pixel_values).mean((2, 3)) + self.first(pixel_values.flip(2))[..., 0, 0]
        }


def _draw(seed=0):
    return torch.randn((2, 3, 6, 6), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("net", "whole"), [(_Alone, True), (_Around, False), (_Twice, False)])
def test_the_patch_embedding_must_be_the_only_path_of_the_image(net, whole):
    model = net().eval()
    with torch.no_grad():
        assert is_only_path(model.first, model, _draw) is whole
    if whole:
        assert image_input("net", model, "cpu").patch_count == 36
    else:
        with pytest.raises(NoTokenInputError, match="not by way of first.rows alone"):
            image_input("net", model, "cpu")


def test_a_model_of_the_user_is_not_modified():
    with pytest.raises(SubjectError, match="has no patch embedding"):
        image_input("net", _Alone().eval(), "cpu", may_modify=False)


def test_a_grid_of_patches_is_flattened_and_a_prefix_removed():
    grid, rows = torch.randn(2, 5, 3, 4), torch.randn(2, 12 + 6, 5)
    found = audited_outputs({"last_hidden_state": grid, "logits": rows}, 12, prefix=6)
    assert torch.equal(found["last_hidden_state"], grid.flatten(2))
    assert torch.equal(found["logits"], rows[:, 6:])
    assert audited_outputs({"last_hidden_state": grid}, 9)["last_hidden_state"].shape == grid.shape


def test_other_outputs_are_audited_without_primary_ones():
    maps = tuple(torch.randn(2, 3) for _ in range(3))
    assert list(audited_outputs({"logits": maps[0], "feature_maps": maps})) == ["logits"]
    found = audited_outputs({"feature_maps": maps, "hidden_states": maps, "found": torch.ones(2, dtype=torch.long)})
    assert list(found) == ["feature_maps"]
    assert found["feature_maps"] is maps[-1]
    assert audited_outputs(maps[0])["last_hidden_state"] is maps[0]
    assert audited_outputs(None) == {}


def test_the_first_convolution_replaces_a_patch_embedding_with_a_bypass():
    subject = load("arch:swin2sr", tiny=True)
    assert subject.patch_embedding_path == "model.first_convolution.rows"


def test_a_random_mask_is_the_same_in_every_call():
    subject = load("arch:vit_mae", tiny=True)
    assert subject.patch_embedding_path == "model.embeddings.patch_embeddings"
    (pixels,) = subject.sample(subject.default_length).inputs
    with torch.no_grad():
        first, second = (subject.module(pixels)["last_hidden_state"] for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", ["minicpmv4_6_vision", "inkling2_vision"])
def test_proofs_of_packed_patches_start_after_the_embedding(name):
    subject = load(f"arch:{name}", tiny=True)
    assert subject.patch_embedding_path.endswith("embeddings.patch_embedding.rows")
    assert subject.default_length == 36


def test_heads_of_a_tiny_model_keep_eight_features():
    model = load("arch:vjepa2", tiny=True).module.model
    assert all(layer.attention.d_dim >= 2 for layer in model.encoder.layer)
    assert _head_counts({"hidden_size": 64, "num_attention_heads": 16}) == {"num_attention_heads": 8}
    assert _head_counts({"hidden_size": 64, "num_attention_heads": 4}) == {}
    assert _head_counts({"hidden_size": 64, "num_attention_heads": 16, "num_key_value_heads": 2}) == {}
    assert _head_counts({"hidden_size": 64, "num_attention_heads": 16, "head_dim": 4}) == {}
    both = _head_counts({"d": 1, "hidden_size": 32, "num_attention_heads": 8, "num_key_value_heads": 8})
    assert both == {"num_attention_heads": 4, "num_key_value_heads": 4}


@pytest.mark.parametrize("name", ["inkling_vision", "gemma4_assistant", "rag", "seggpt"])
def test_unsupported_architectures_are_refused_with_a_reason(name):
    with pytest.raises(NoTokenInputError, match=UNSUPPORTED_ARCHITECTURES[name]):
        load(f"arch:{name}", tiny=True)


@pytest.mark.parametrize("name", ["sam", "vitpose", "rf_detr"])
def test_components_with_image_sizes_get_small_ones(name):
    subject = load(f"arch:{name}", tiny=True)
    assert subject.default_length <= 64
    assert subject.parameter_count < 2_000_000


def test_a_model_on_meta_has_the_inputs_of_its_twin():
    subject = load("arch:bros")
    assert subject.module.extra_inputs.names == ("bbox",)
    assert subject.module.extra_inputs.bbox.is_meta
    assert not subject.buffer_values["extra_inputs.bbox"].is_meta
    subject = load("arch:mobilenet_v1")
    assert (
        subject.patch_embedding_path
        == subject.build_tiny_twin().patch_embedding_path
        == "model.conv_stem.convolution.rows"
    )
