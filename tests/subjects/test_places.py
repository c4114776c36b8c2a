"""Images without patches: the tokens are the places after the first convolution, and all of the image goes there."""

import pytest
import torch
from torch import nn

from orderproof.errors import SubjectError
from orderproof.subjects import load
from orderproof.subjects.exceptions import NOT_ALONE
from orderproof.subjects.images import NoTokens, carries_all, read_images
from orderproof.subjects.outputs import tensors_of
from orderproof.subjects.scaling import _fewer_heads
from orderproof.subjects.splitting import Rows, Split


@pytest.mark.parametrize("name", ["mobilenet_v1", "cvt", "swiftformer", "florence_vision"])
def test_a_convolution_net_is_read_at_the_places_after_its_first_convolution(name):
    subject = load(f"arch:{name}", tiny=True)
    assert "places after the first convolution" in subject.detail
    assert subject.kind == "vision"
    rows = subject.module.get_submodule(subject.cut)
    assert isinstance(rows, Rows)
    with torch.no_grad():
        output = next(iter(subject.module(*subject.sample(subject.length).inputs).values()))
    assert output.isfinite().all()


@pytest.mark.parametrize(("frames", "grid"), [(1, (4, 5)), (3, (4, 5)), (2, (20, 1))])
def test_a_split_convolution_gives_what_it_gave_with_a_row_for_each_image(frames, grid):
    convolution = nn.Conv2d(3, 6, 3, stride=2, padding=1)
    pixels = torch.randn(2 * frames, 3, 8, 10, generator=torch.Generator().manual_seed(0))
    split = Split(convolution, grid, frames)
    assert split.rows(pixels).shape == (2, frames * 20, 6)
    assert torch.equal(split(pixels).flatten(2), convolution(pixels).flatten(2))
    assert (split.stride, split.weight) == (convolution.stride, convolution.weight)
    with pytest.raises(AttributeError, match="nothing"):
        _ = split.nothing


def test_frames_of_a_film_are_one_row():
    subject = load("arch:timesformer", tiny=True)
    (film,) = subject.sample(subject.length).inputs
    assert subject.length % film.shape[1] == 0
    with torch.no_grad():
        assert subject.module.get_submodule(subject.cut)(film.flatten(0, 1)).shape[:2] == (2, subject.length)


class _Net(nn.Module):
    """A convolution, and what a subclass does with the image beside it."""

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
def test_an_image_must_reach_the_output_by_way_of_the_cut_alone(net, whole):
    model = net().eval()
    with torch.no_grad():
        assert carries_all(model.first, model, _draw) is whole
    if whole:
        assert read_images("net", model, "cpu").patches == 36
    else:
        with pytest.raises(NoTokens, match="not by way of first.rows alone"):
            read_images("net", model, "cpu")


def test_a_model_that_is_the_users_own_is_not_split():
    with pytest.raises(SubjectError, match="has no patch embedding"):
        read_images("net", _Alone().eval(), "cpu", own=False)


def test_a_grid_of_the_tokens_is_a_row_of_them_and_tokens_ahead_are_left_out():
    grid, rows = torch.randn(2, 5, 3, 4), torch.randn(2, 12 + 6, 5)
    found = tensors_of({"last_hidden_state": grid, "logits": rows}, 12, ahead=6)
    assert torch.equal(found["last_hidden_state"], grid.flatten(2))
    assert torch.equal(found["logits"], rows[:, 6:])
    assert tensors_of({"last_hidden_state": grid}, 9)["last_hidden_state"].shape == grid.shape


def test_other_outputs_count_only_where_the_usual_ones_are_missing():
    maps = tuple(torch.randn(2, 3) for _ in range(3))
    assert list(tensors_of({"logits": maps[0], "feature_maps": maps})) == ["logits"]
    found = tensors_of({"feature_maps": maps, "hidden_states": maps, "found": torch.ones(2, dtype=torch.long)})
    assert list(found) == ["feature_maps"]
    assert found["feature_maps"] is maps[-1]
    assert tensors_of(maps[0])["last_hidden_state"] is maps[0]
    assert tensors_of(None) == {}


def test_where_a_patch_embedding_is_not_the_only_way_the_first_convolution_may_be():
    subject = load("arch:swin2sr", tiny=True)
    assert subject.cut == "model.first_convolution.rows"


def test_a_model_that_draws_a_mask_is_asked_with_the_same_mask():
    subject = load("arch:vit_mae", tiny=True)
    assert subject.cut == "model.embeddings.patch_embeddings"
    (pixels,) = subject.sample(subject.length).inputs
    with torch.no_grad():
        first, second = (subject.module(pixels)["last_hidden_state"] for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", ["minicpmv4_6_vision", "inkling2_vision"])
def test_a_row_of_patches_of_any_shape_is_cut_after_they_are_embedded(name):
    subject = load(f"arch:{name}", tiny=True)
    assert subject.cut.endswith("embeddings.patch_embedding.rows")
    assert subject.length == 36


def test_heads_of_a_tiny_model_keep_room_for_a_rotation_about_three_axes():
    model = load("arch:vjepa2", tiny=True).module.model
    assert all(layer.attention.d_dim >= 2 for layer in model.encoder.layer)
    assert _fewer_heads({"hidden_size": 64, "num_attention_heads": 16}) == {"num_attention_heads": 8}
    assert _fewer_heads({"hidden_size": 64, "num_attention_heads": 4}) == {}
    assert _fewer_heads({"hidden_size": 64, "num_attention_heads": 16, "num_key_value_heads": 2}) == {}
    assert _fewer_heads({"hidden_size": 64, "num_attention_heads": 16, "head_dim": 4}) == {}
    both = _fewer_heads({"d": 1, "hidden_size": 32, "num_attention_heads": 8, "num_key_value_heads": 8})
    assert both == {"num_attention_heads": 4, "num_key_value_heads": 4}


@pytest.mark.parametrize("name", ["inkling_vision", "gemma4_assistant", "rag", "seggpt"])
def test_what_cannot_be_asked_by_itself_is_told_with_its_reason(name):
    with pytest.raises(NoTokens, match=NOT_ALONE[name]):
        load(f"arch:{name}", tiny=True)


@pytest.mark.parametrize("name", ["sam", "vitpose", "rf_detr"])
def test_parts_that_know_the_size_of_images_are_given_small_ones(name):
    subject = load(f"arch:{name}", tiny=True)
    assert subject.length <= 64
    assert subject.parameters < 2_000_000


def test_without_weights_a_model_is_cut_and_completed_like_its_twin():
    subject = load("arch:bros")
    assert subject.module.beside.names == ("bbox",)
    assert subject.module.beside.bbox.is_meta
    assert not subject.values["beside.bbox"].is_meta
    subject = load("arch:mobilenet_v1")
    assert subject.cut == subject.twin().cut == "model.conv_stem.convolution.rows"
