"""Architectures by name: tiny, and with and without weights."""

import contextlib
import resource
import sys

import pytest
import torch

from orderproof.errors import SubjectError, UsageError
from orderproof.models import load
from orderproof.models.hf.architectures import default_config, parse_spec
from orderproof.models.hf.context_spans import context_spans

# tests/recording/test_recording.py exports others, with SDPA.
EXPORTED = [
    *((name, "sdpa") for name in ("gemma3_text", "qwen3", "roberta", "distilbert")),
    *((name, "eager") for name in ("bert", "gpt_neo", "mistral", "t5")),
]
BUILT = ["bert", "gpt2", "llama", "t5", "vit", "gemma3_text", "qwen3", "mistral", "gpt_neo", "roberta", "distilbert"]
OTHERS = ["electra", "albert", "opt", "phi", "falcon", "mixtral", "deepseek_v3", "bart", "gpt_neox", "mamba"]
CAUSAL = [
    *("gpt2", "llama", "gemma3_text", "qwen3", "mistral", "gpt_neo", "opt", "phi", "falcon"),
    *("mixtral", "deepseek_v3", "gpt_neox", "mamba"),
]
HUGE = (
    "arch:llama?num_hidden_layers=126&hidden_size=16384&num_attention_heads=128"
    "&num_key_value_heads=8&intermediate_size=53248&vocab_size=128256"
)


# each with the property that once prevented building, running or reading it
UNUSUAL = {
    "blt_local_encoder": "causal_lm",  # patches as an extra input
    "flava_multimodal_model": "encoder",  # reads hidden states
    "kosmos_2_5_vision_model": "vision",  # patches behind their row and column
    "lw_detr_vit": "vision",  # feature maps
    "molmo2_vision": "vision",  # patches that are cut already
    "perceiver": "encoder",  # inputs by another name
    "bamba": "causal_lm",  # kinds of layers that cannot be set
    "blip_text_model": "encoder",  # no base model in an auto mapping; reads both ways unless it is a decoder
    "canine": "encoder",  # no vocabulary: token numbers
    "clip_text_model": "causal_lm",  # causal by its mask, not by its name
    "deepseek_v2": "causal_lm",  # a key left open
    "esm": "encoder",  # a vocabulary left open
    "fsmt": "encoder",  # an encoder without a configuration
    "gemma3n_text": "causal_lm",  # layers that share keys
    "gemma4_text": "causal_lm",  # keys that differ from layer to layer
    "glm4v_text": "causal_lm",  # sections of rotary features
    "imagegpt": "causal_lm",  # pixels one after the other
    "lilt": "encoder",  # widths in proportion
    "mamba2": "causal_lm",  # state sizes; chunks
    "reformer": "encoder",  # axial positions; chunks and buckets
    "clip_vision_model": "vision",  # patches in a grid
    "qwen2_5_vl_vision": "vision",  # a row of patches, a grid and windows
    "segformer": "vision",  # stages
    "swin": "vision",  # stages and windows
    "videomae": "vision",  # a film
}


def _exported(subject):
    inputs = subject.sample(subject.default_length).inputs
    with torch.no_grad(), subject.export_context():
        return torch.export.export(subject.module, inputs, strict=False)


@pytest.mark.parametrize(("name", "attention"), EXPORTED)
def test_the_exported_graph_is_the_model(name, attention):
    subject = load(f"arch:{name}", tiny=True, attention=attention)
    graph = _exported(subject).module()
    for seed in (0, 1):
        inputs = subject.sample(subject.default_length, seed).inputs
        with torch.no_grad():
            expected, found = subject.module(*inputs), graph(*inputs)
        assert expected.keys() == found.keys()
        for key in expected:
            assert expected[key].dtype == torch.float32
            torch.testing.assert_close(found[key], expected[key], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OTHERS)
def test_other_architectures_run_tiny(name):
    subject = load(f"arch:{name}", tiny=True)
    with torch.no_grad():
        output = subject.module(*subject.sample(subject.default_length).inputs)["last_hidden_state"]
    assert output.shape[:2] == (2, subject.default_length)
    assert output.isfinite().all()
    assert subject.layer_count == 2
    assert subject.parameter_count < 500_000


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_architectures_run_tiny_and_cross_their_spans(name):
    subject = load(f"arch:{name}", tiny=True)
    assert subject.model_kind == UNUSUAL[name]
    assert subject.parameter_count < 10_000_000
    assert "not crossed" not in subject.load_summary
    if subject.patch_embedding_path is None:
        assert subject.default_length > max(context_spans(subject.module.model.config).values(), default=0)
    with torch.no_grad():
        output = next(iter(subject.module(*subject.sample(subject.default_length).inputs).values()))
    assert output.isfinite().all()


@pytest.mark.parametrize("name", ["clip_vision_model", "mamba2", "qwen2_5_vl_vision"])
def test_the_graph_of_unusual_architectures_is_the_model(name):
    subject = load(f"arch:{name}", tiny=True)
    inputs = subject.sample(subject.default_length, 1).inputs
    with torch.no_grad():
        expected, found = subject.module(*inputs), _exported(subject).module()(*inputs)
    for key in expected:
        torch.testing.assert_close(found[key], expected[key], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["clip_vision_model", "siglip_vision_model"])
def test_a_patch_embedding_in_two_steps_has_the_same_output(name):
    subject = load(f"arch:{name}", tiny=True)
    model = subject.module.model
    (pixels,) = subject.sample(subject.default_length).inputs
    split = model.get_submodule("embeddings.patch_embedding")
    with torch.no_grad():
        rows = model.get_submodule(subject.patch_embedding_path.removeprefix("model."))(pixels)
        before = subject.module(pixels)["last_hidden_state"]
        model.embeddings.patch_embedding = split.rows.patches
        after = subject.module(pixels)["last_hidden_state"]
    assert rows.shape == (2, subject.default_length, 64)
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    ("name", "part"), [("llava", "llama"), ("qwen2_5_omni", "qwen2_5_omni_text"), ("detr", "detr")]
)
def test_of_a_composite_model_the_text_model_is_audited(name, part):
    assert default_config(name).model_type == part


def test_of_a_video_model_with_a_session_the_image_model_is_audited():
    assert default_config("sam2_video").model_type == "sam2_vision_model"


def test_of_a_head_on_a_backbone_the_backbone_is_audited():
    assert default_config("depth_anything").model_type == "dinov2"


def test_a_tiny_model_with_too_many_parameters_is_refused():
    with pytest.raises(SubjectError, match="more than 30,000,000 parameters"):
        load("arch:bert?vocab_size=10000000", tiny=True)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("evolla", "causal_lm"),  # an encoder of proteins in it masks both ways
        ("pp_formulanet_text", "causal_lm"),  # a decoder whose configuration speaks of the whole
        ("t5gemma2_decoder", "causal_lm"),  # what it reads of the encoder is masked both ways
        ("blt_global_transformer", "causal_lm"),  # no mask: its attention is causal by itself
        ("deepseek_ocr2_encoder", "encoder"),  # patches see each other before the causal part begins
        ("longt5", "encoder"),  # the same class masks causally as a decoder
    ],
)
def test_the_model_kind_follows_from_the_masks_in_its_source(name, kind):
    assert load(f"arch:{name}", tiny=True).model_kind == kind


@pytest.mark.parametrize("name", [*BUILT, *OTHERS])
def test_model_kind(name):
    expected = "vision" if name == "vit" else "causal_lm" if name in CAUSAL else "encoder"
    assert load(f"arch:{name}", tiny=True).model_kind == expected


def test_the_traced_branch_is_the_eager_one():
    graph = _exported(load("arch:llama", tiny=True))
    attention = [node for node in graph.graph.nodes if "scaled_dot_product" in str(node.target)]
    assert len(attention) == 2
    assert all(node.args[3] is None and node.args[5] is True for node in attention)  # no mask; is_causal


def test_the_export_context_restores_transformers():
    from transformers import masking_utils

    subject = load("arch:llama", tiny=True)
    before = masking_utils.is_tracing, masking_utils.find_packed_sequence_indices
    with contextlib.suppress(RuntimeError), subject.export_context():
        assert masking_utils.is_torchdynamo_exporting() is False
        raise RuntimeError
    assert (masking_utils.is_tracing, masking_utils.find_packed_sequence_indices) == before


def test_tiny_weights_are_seeded_and_nothing_is_zero():
    first, same, other = (load("arch:gpt2", tiny=True, seed=seed) for seed in (0, 0, 1))
    parameters = [dict(subject.module.named_parameters()) for subject in (first, same, other)]
    for name, value in parameters[0].items():
        assert torch.equal(value, parameters[1][name])
        assert not torch.equal(value, parameters[2][name])
        assert value.std() > 0.05
    state = torch.get_rng_state()
    load("arch:gpt2", tiny=True)
    assert torch.equal(torch.get_rng_state(), state)


def test_attention_of_a_tiny_model_is_far_from_uniform():
    subject = load("arch:bert", tiny=True, attention="eager")
    with torch.no_grad():
        outputs = subject.module.model(input_ids=subject.sample(7).inputs[0], output_attentions=True)
    assert all(weights.amax(-1).mean() > 1.5 / 7 for weights in outputs.attentions)


def test_configuration_keys_take_precedence_over_tiny_sizes():
    subject = load(
        'arch:llama?num_hidden_layers=3&num_attention_heads=6&rope_parameters={"rope_type":"default","rope_theta":500.0}',
        tiny=True,
    )
    config = subject.module.model.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.hidden_size) == (3, 6, 96)
    assert config.rope_parameters["rope_theta"] == 500.0
    assert load("arch:gpt2?hidden_size=32", tiny=True).module.model.config.n_embd == 32


def test_of_gemma3_the_text_model_with_both_layer_types_is_audited():
    subject = load("arch:gemma3", tiny=True)
    assert type(subject.module.model).__name__ == "Gemma3TextModel"
    assert subject.module.model.config.layer_types == ["sliding_attention", "full_attention"]


def test_position_tables_bound_the_length():
    assert load("arch:roberta", tiny=True).max_length == 68
    assert load("arch:llama", tiny=True).max_length is None
    with pytest.raises(UsageError, match="length must be at most 68"):
        load("arch:roberta", tiny=True).sample(69)
    subject = load("arch:bert?max_position_embeddings=5", tiny=True)
    assert (subject.default_length, subject.max_length) == (5, 5)


def test_proofs_of_an_image_model_start_after_its_patch_embedding():
    subject = load("arch:vit", tiny=True)
    assert subject.patch_embedding_path == "model.embeddings.patch_embeddings"
    assert subject.token_axes == (None,)
    patches = subject.module.get_submodule(subject.patch_embedding_path)(*subject.sample(9).inputs)
    assert patches.shape == (2, 9, 64)
    with pytest.raises(UsageError, match="an image has 9 patches, so length must be 9; got 7"):
        subject.sample(7)


@pytest.mark.parametrize("name", ["mixtral", "aria_text"])
def test_experts_are_routed_by_products_that_run_in_float64(name):
    subject = load(f"arch:{name}", tiny=True)
    assert "experts batched_mm" in subject.load_summary
    module = subject.module.double()
    with torch.no_grad():
        assert module(*subject.sample(7).inputs)["last_hidden_state"].isfinite().all()


@pytest.mark.parametrize("name", ["llama?num_hidden_layers=2", "gpt_neo?num_hidden_layers=2", "vit", "t5"])
def test_without_weights_the_graph_is_traced_on_meta(name):
    subject = load(f"arch:{name}")
    assert subject.device == "meta"
    tensors = [*subject.module.parameters(), *subject.module.buffers()]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    names = {key for key, _ in subject.module.named_buffers()}
    assert set(subject.buffer_values) == names
    assert all(value.device.type == "cpu" for value in subject.buffer_values.values())
    with torch.no_grad():
        output = subject.module(*subject.sample(subject.default_length).inputs)["last_hidden_state"]
    assert (output.device.type, output.shape[0]) == ("meta", 2)
    graph = _exported(subject)
    assert len(list(graph.graph.nodes)) > 50


def test_a_twin_has_the_class_and_the_branches_of_the_original():
    subject = load("arch:llama?num_hidden_layers=9&hidden_act=gelu&num_key_value_heads=32")
    assert subject.build_tiny_twin is not None
    twin = subject.build_tiny_twin()
    assert twin.device == "cpu"
    assert type(twin.module.model) is type(subject.module.model)
    config = twin.module.model.config
    assert (config.num_hidden_layers, config.hidden_act, config.num_key_value_heads) == (2, "gelu", 4)
    assert load("arch:gpt2?n_layer=5&n_embd=96").build_tiny_twin().module.model.config.n_embd == 64


def test_the_largest_llama_is_built_without_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    subject = load(HUGE)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert subject.parameter_count == 403_752_042_496
    assert subject.layer_count == 126
    assert grown * (1 if sys.platform == "darwin" else 1024) < 500e6
    expected = 1.0 / 10000.0 ** (torch.arange(0, 128, 2, dtype=torch.float32) / 128)
    torch.testing.assert_close(subject.buffer_values["model.rotary_emb.inv_freq"], expected)
    assert subject.sample(7).inputs[0].shape == (2, 7)
    assert subject.sample(7).inputs[0].device.type == "meta"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("arch:lama", "has no architecture 'lama'; did you mean 'llama"),
        ("arch:", "has no architecture ''"),
        ("arch:llama?hiden_size=3", "has no key 'hiden_size'; did you mean 'hidden_size'"),
        ("arch:llama?hidden_size=large", "these configuration values do not fit: .*hidden_size"),
        ("arch:llama?hidden_size", "is written key=value; got 'hidden_size'"),
    ],
)
def test_a_wrong_name_or_value_is_one_clear_line(spec, message):
    with pytest.raises(UsageError, match=message) as caught:
        load(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("arch:bert?hidden_size=65", "the model cannot be built: .*not a multiple"),
        ("arch:bark", "BarkModel reads audio, neither text nor images"),
        ("arch:efficientloftr", "the image reaches the output of EfficientLoFTRModel not by way of"),
        ("arch:csm", "CsmForConditionalGeneration reads audio, neither text nor images"),
    ],
)
def test_an_architecture_that_cannot_be_built_is_one_clear_line(spec, message):
    with pytest.raises(SubjectError, match=message):
        load(spec, tiny=True)


def test_an_unsupported_backend_is_refused():
    with pytest.raises(UsageError, match="GPTNeoModel has no SDPA attention; use attention='eager'"):
        load("arch:gpt_neo", tiny=True, attention="sdpa")
    with pytest.raises(UsageError, match="attention must be 'sdpa' or 'eager'; got 'flash'"):
        load("arch:bert", attention="flash")


def test_values_are_read_as_json_and_otherwise_as_text():
    assert parse_spec("arch:x?a=1&b=1e-3&c=true&d=None&e=silu&f=[1,2]") == (
        "x",
        {"a": 1, "b": 0.001, "c": True, "d": None, "e": "silu", "f": [1, 2]},
    )


def test_attention_types_follow_the_number_of_layers():
    assert load("arch:gpt_neo?num_layers=3", tiny=True).module.model.config.attention_layers == [
        "global",
        "local",
        "global",
    ]


def test_loading_prints_nothing(capfd):
    load("arch:bert", tiny=True)
    load("arch:falcon", tiny=True)
    assert capfd.readouterr() == ("", "")
