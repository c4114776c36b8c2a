"""What models want beside their tokens: fixed, the same for every token, and never all that counts."""

import functools

import pytest
import torch

from orderproof.errors import SubjectError
from orderproof.subjects import load as load_anew
from orderproof.subjects.beside import RECIPES, Beside, always, asked_for
from orderproof.subjects.first_run import _completed

load = functools.cache(load_anew)
WANTED = {
    "bros": ("bbox",),
    "udop": ("bbox",),
    "lxmert": ("visual_feats", "visual_pos"),
    "vilt": ("pixel_values",),
    "idefics": ("image_encoder_embeddings", "image_attention_mask"),
    "t5gemma2_decoder": ("encoder_hidden_states",),
    "blip_2_qformer": ("encoder_hidden_states",),
    "muse_glimmer_assistant": ("context_hidden_states",),
    "deepseek_ocr2_encoder": ("num_patches",),
    "vit_mae": ("noise",),
    "blt": ("patch_lengths",),
    "voxtral_realtime_text": ("t_cond",),
    "mllama_vision_model": ("aspect_ratio_ids", "aspect_ratio_mask"),
}


@pytest.mark.parametrize("name", WANTED)
def test_a_model_is_given_what_it_asks_for_and_the_detail_says_so(name):
    subject = load(f"arch:{name}", tiny=True)
    assert subject.module.beside.names == WANTED[name]
    assert all(RECIPES[key].words in subject.detail for key in WANTED[name])
    assert len(subject.sample(subject.length).inputs) == 1


@pytest.mark.parametrize("name", ["bros", "lxmert", "vilt"])
def test_what_is_fixed_is_fixed_for_every_length_and_seed(name):
    subject = load(f"arch:{name}", tiny=True)
    given = subject.module.beside
    for length, seed in ((subject.length, 0), (subject.length + 1, 1)):
        (tokens,) = subject.sample(length, seed).inputs
        for key, value in given(tokens).items():
            expected = dict(given.named_buffers())[key]
            assert value.shape[0] == 2
            torch.testing.assert_close(value, expected.expand(value.shape), rtol=0, atol=0)


def test_what_each_token_has_is_the_same_for_all():
    for name in ("bros", "idefics"):
        subject = load(f"arch:{name}", tiny=True)
        given = subject.module.beside(*subject.sample(subject.length).inputs)
        each = [value for key, value in given.items() if RECIPES[key].for_each_token]
        assert each
        for value in each:
            assert value.shape[1] == subject.length
            assert torch.equal(value, value[:, :1].expand(value.shape))


def test_of_an_output_with_rows_of_an_image_those_of_the_tokens_are_kept():
    subject = load("arch:vilt", tiny=True)
    (tokens,) = subject.sample(subject.length).inputs
    with torch.no_grad():
        whole = subject.module.model(**{subject.module.argument: tokens}, **subject.module.beside(tokens))[0]
        kept = subject.module(tokens)["last_hidden_state"]
    assert whole.shape[1] > subject.length == kept.shape[1]
    torch.testing.assert_close(kept, whole[:, : subject.length])  # it draws the order of its image anew


class _Config:
    model_type = "none"
    hidden_size = 8


class _Deaf(torch.nn.Module):
    """A model whose output is its context, whatever the tokens say."""

    config = _Config()

    def forward(self, input_ids, encoder_hidden_states=None):
        if encoder_hidden_states is None:
            raise ValueError("`encoder_hidden_states` must be given")
        return {"last_hidden_state": encoder_hidden_states + 0 * input_ids.sum()}


def test_a_model_that_hears_only_what_stands_beside_its_tokens_is_refused():
    from orderproof.subjects.huggingface import Adapter
    from orderproof.subjects.subject import Subject
    from orderproof.subjects.tokens import draw_numbers

    model = _Deaf()

    def make(beside=()):
        adapter = Adapter(model, "input_ids", beside=Beside(beside, model.config, model))
        return Subject("deaf", "encoder", adapter, (1,), 0, None, 7, None, "cpu", draw_numbers(99, "cpu"))

    with pytest.raises(SubjectError, match="does not depend on the tokens, beside the fixed output of an encoder"):
        _completed(model, make)


def test_only_arguments_of_the_model_that_are_named_are_given():
    class Model:
        def forward(self, input_ids, bbox=None):
            """Nothing."""

    assert asked_for(ValueError("You have to specify bbox"), Model, ()) == "bbox"
    assert asked_for(ValueError("Bbox is required"), Model, ()) == "bbox"
    assert asked_for(ValueError("You have to specify bbox"), Model, ("bbox",)) is None
    assert asked_for(ValueError("`visual_feats` cannot be `None`"), Model, ()) is None
    assert asked_for(ValueError("bboxes do not fit"), Model, ()) is None
    assert always(_Config) == ()
