"""Extra inputs: fixed, the same for every token, and never the only ones that matter."""

import functools

import pytest
import torch

from orderproof.errors import SubjectError
from orderproof.models import load as load_anew
from orderproof.models.hf.extra_inputs import EXTRA_INPUTS, ExtraInputs, input_named_in_error, required_inputs
from orderproof.models.hf.probe import _with_required_inputs

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
def test_required_extra_inputs_are_passed_and_described(name):
    subject = load(f"arch:{name}", tiny=True)
    assert subject.module.extra_inputs.names == WANTED[name]
    assert all(EXTRA_INPUTS[key].description in subject.load_summary for key in WANTED[name])
    assert len(subject.sample(subject.default_length).inputs) == 1


@pytest.mark.parametrize("name", ["bros", "lxmert", "vilt"])
def test_extra_inputs_are_fixed_for_every_length_and_seed(name):
    subject = load(f"arch:{name}", tiny=True)
    extra_inputs = subject.module.extra_inputs
    for length, seed in ((subject.default_length, 0), (subject.default_length + 1, 1)):
        (tokens,) = subject.sample(length, seed).inputs
        for key, value in extra_inputs(tokens).items():
            expected = dict(extra_inputs.named_buffers())[key]
            assert value.shape[0] == 2
            torch.testing.assert_close(value, expected.expand(value.shape), rtol=0, atol=0)


def test_extra_inputs_per_token_are_the_same_for_all_tokens():
    for name in ("bros", "idefics"):
        subject = load(f"arch:{name}", tiny=True)
        arguments = subject.module.extra_inputs(*subject.sample(subject.default_length).inputs)
        each = [value for key, value in arguments.items() if EXTRA_INPUTS[key].per_token]
        assert each
        for value in each:
            assert value.shape[1] == subject.default_length
            assert torch.equal(value, value[:, :1].expand(value.shape))


def test_outputs_of_an_image_are_removed():
    subject = load("arch:vilt", tiny=True)
    (tokens,) = subject.sample(subject.default_length).inputs
    with torch.no_grad():
        whole = subject.module.model(**{subject.module.argument: tokens}, **subject.module.extra_inputs(tokens))[0]
        kept = subject.module(tokens)["last_hidden_state"]
    assert whole.shape[1] > subject.default_length == kept.shape[1]
    torch.testing.assert_close(kept, whole[:, : subject.default_length])  # the order of its image is random


class _Config:
    model_type = "none"
    hidden_size = 8


class _Deaf(torch.nn.Module):
    """A model whose output is its context for all tokens."""

    config = _Config()

    def forward(self, input_ids, encoder_hidden_states=None):
        if encoder_hidden_states is None:
            raise ValueError("`encoder_hidden_states` must be given")
        return {"last_hidden_state": encoder_hidden_states + 0 * input_ids.sum()}


def test_a_model_that_depends_on_its_extra_inputs_alone_is_refused():
    from orderproof.models.hf.build_subject import TokenInputModule
    from orderproof.models.hf.describe import ModelDescription
    from orderproof.models.hf.token_inputs import token_id_sampler
    from orderproof.models.subject import Subject

    model = _Deaf()

    def build(extra_input_names=()):
        description = ModelDescription("_Deaf", frozenset({"input_ids", "encoder_hidden_states"}))
        extra_inputs = ExtraInputs(extra_input_names, model.config, model)
        module = TokenInputModule(model, "input_ids", description, extra_inputs)
        return Subject("deaf", "encoder", module, (1,), 0, None, 7, None, "cpu", token_id_sampler(99, "cpu"))

    with pytest.raises(SubjectError, match="does not depend on the tokens, with the fixed output of an encoder"):
        _with_required_inputs(model, build)


def test_only_arguments_named_in_the_error_are_passed():
    class Model:
        def forward(self, input_ids, bbox=None):
            """Nothing."""

    assert input_named_in_error(ValueError("You have to specify bbox"), Model, ()) == "bbox"
    assert input_named_in_error(ValueError("Bbox is required"), Model, ()) == "bbox"
    assert input_named_in_error(ValueError("You have to specify bbox"), Model, ("bbox",)) is None
    assert input_named_in_error(ValueError("`visual_feats` cannot be `None`"), Model, ()) is None
    assert input_named_in_error(ValueError("bboxes do not fit"), Model, ()) is None
    assert required_inputs(_Config) == ()
