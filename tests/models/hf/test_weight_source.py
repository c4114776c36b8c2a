"""Adapters and quantised weights become a plain model, or one line says what is missing.

Most tests need a package that only users of such checkpoints install: they are skipped without it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof import checkpoint_forms
from orderproof.auditing.api import prove
from orderproof.errors import CheckpointError
from orderproof.models import load
from orderproof.subject_spec import check_spec

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of transformers, called by peft
IDS = torch.arange(2, 9)[None]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=64, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def output(folder: Path) -> Tensor:
    module: Any = load(str(folder)).module
    with torch.no_grad():
        found: Tensor = module.model(IDS).last_hidden_state
    return found


def write_json(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def state_quantisation(folder: Path, **stated: Any) -> Path:
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    write_json(folder / "config.json", {**settings, "quantization_config": stated})
    return folder


def adapter(base: Path, **changed: Any) -> Path:
    """A folder with the files of an adapter, whose weights are empty."""
    folder = base.parent / "adapter"
    write_json(folder / "adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": str(base), **changed})
    (folder / "adapter_model.safetensors").write_bytes(b"")
    return folder


def gguf_file(base: Path) -> Path:
    file = base.parent / "model.gguf"
    file.write_bytes(b"GGUF")
    return file


FORMS: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "adapter": (adapter, "a LoRA adapter", "peft"),
    "gguf": (gguf_file, "a GGUF file", "gguf"),
    "torchao": (
        lambda base: state_quantisation(base, quant_method="torchao"), "a checkpoint of torchao", "torchao",
    ),
    "compressed-tensors": (
        lambda base: state_quantisation(base, quant_method="compressed-tensors"),
        "a checkpoint of compressed-tensors", "compressed-tensors",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_package_is_named_with_its_command(base: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, what, package = FORMS[form]
    place = make(base)
    monkeypatch.setattr(checkpoint_forms, "missing_packages", lambda *names: list(names))
    for called in (check_spec, load):  # before torch is imported, and in Python
        with pytest.raises(CheckpointError) as caught:
            called(str(place))
        assert str(caught.value) == (
            f"{place.name}: {what} needs {package}, which is not installed: pip install {package}"
        )


UNLIKE_GROUPS = {
    "attention": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8}},
    "mlp": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 4}},
}
REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "another method": (
        lambda base: state_quantisation(base, quant_method="gptq"),
        "its weights are quantised by gptq; expected plain ones, or those of torchao, compressed-tensors or GGUF",
    ),
    "activations": (
        lambda base: state_quantisation(
            base, quant_method="compressed-tensors", config_groups={"g": {"input_activations": {"num_bits": 8}}}
        ),
        "activations are quantised too, so plain weights compute something else",
    ),
    "activations of torchao": (
        lambda base: state_quantisation(
            base, quant_method="torchao", quant_type={"default": {"_type": "Int8DynamicActivationInt8WeightConfig"}}
        ),
        "activations are quantised too (Int8DynamicActivationInt8WeightConfig), so",
    ),
    "the cache": (
        lambda base: state_quantisation(base, quant_method="compressed-tensors", kv_cache_scheme={"num_bits": 8}),
        "activations are quantised too, so",
    ),
    "transforms": (
        lambda base: state_quantisation(
            base, quant_method="compressed-tensors", transform_config={"config_groups": {"u": {"type": "hadamard"}}}
        ),
        "activations are quantised too, so",
    ),
    "groups of unlike schemes": (
        lambda base: state_quantisation(base, quant_method="compressed-tensors", config_groups=UNLIKE_GROUPS),
        "its 2 groups of layers are quantised in unlike ways, which transformers reads as one",
    ),
    "another adapter": (lambda base: adapter(base, peft_type="PREFIX_TUNING"), "expected peft_type LORA; got 'PREFIX"),
    "no base": (lambda base: adapter(base, base_model_name_or_path=None), "names no base_model_name_or_path"),
    "a base that is not there": (
        lambda base: adapter(base, base_model_name_or_path="nobody-has/this"),
        "the base of its adapter: nobody-has/this: no such folder, and not in the local hub cache",
    ),
    "a quantised base": (
        lambda base: adapter(state_quantisation(base, quant_method="torchao")), "expected one with plain weights",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_plain_weights_do_not_compute_is_refused(base: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, problem = REFUSED[kind]
    place = make(base)
    monkeypatch.setattr(checkpoint_forms, "missing_packages", lambda *names: [])
    with pytest.raises(CheckpointError) as caught:
        load(str(place))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pickled_adapter_is_not_opened(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_forms, "missing_packages", lambda *names: [])
    folder = adapter(base)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(CheckpointError, match="a pickled adapter is not opened"):
        check_spec(str(folder))


@pytest.fixture
def lora(base: Path) -> Path:
    peft = pytest.importorskip("peft")
    import transformers

    model = transformers.LlamaForCausalLM.from_pretrained(base)
    adapted = peft.get_peft_model(
        model, peft.LoraConfig(r=4, target_modules=["q_proj", "up_proj"], task_type="CAUSAL_LM")
    )
    for name, value in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(value, std=0.1)
    folder = base.parent / "lora"
    adapted.save_pretrained(folder)
    return folder


def test_an_adapter_is_merged_and_its_base_is_not_written(base: Path, lora: Path) -> None:
    peft = pytest.importorskip("peft")
    import transformers

    before = hashlib.sha256((base / "model.safetensors").read_bytes()).digest()
    whole = peft.PeftModel.from_pretrained(transformers.LlamaForCausalLM.from_pretrained(base), lora)
    with torch.no_grad():
        expected = whole.base_model.model.model(IDS).last_hidden_state
    found = output(lora)
    assert torch.allclose(found, expected, atol=1e-5)
    assert not torch.allclose(found, output(base), atol=1e-2)
    assert hashlib.sha256((base / "model.safetensors").read_bytes()).digest() == before
    subject = load(str(lora))
    assert subject.load_summary.endswith("from lora, with its adapter merged")
    assert not [name for name, _ in subject.module.named_parameters() if "lora" in name]
    assert prove(subject, "causal").verdict == "proved"


def test_an_adapter_of_another_model_is_refused(base: Path, lora: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(lora / "adapter_model.safetensors")
    save_file(
        {name.replace("up_proj", "other"): value for name, value in weights.items()}, lora / "adapter_model.safetensors"
    )
    with pytest.raises(CheckpointError, match="weights of its adapter do not fit the base"):
        load(str(lora))


def test_weights_of_torchao_are_dequantised(base: Path) -> None:
    quantization = pytest.importorskip("torchao.quantization")
    import transformers

    folder, how = base.parent / "quantised", quantization.Int8WeightOnlyConfig()
    config = transformers.TorchAoConfig(quant_type=how)
    model = transformers.LlamaForCausalLM.from_pretrained(base, dtype=torch.float32, quantization_config=config)
    model.save_pretrained(folder)
    with torch.no_grad():
        expected = model.model(IDS).last_hidden_state
    assert torch.allclose(output(folder), expected, atol=1e-4)
    subject = load(str(folder))
    assert subject.load_summary.endswith("dequantised from torchao")
    assert {type(p.data) for p in subject.module.parameters()} == {Tensor}
    assert prove(subject, "save_load").verdict == "held"


# Of weights: the bits, type, parts with a scale of their own, and the format in which they are stored.
SCHEMES: dict[str, tuple[dict[str, Any], str]] = {
    "int8": ({"num_bits": 8, "strategy": "channel"}, "pack-quantized"),
    "int4 of groups": ({"num_bits": 4, "strategy": "group", "group_size": 32}, "pack-quantized"),
    "int4 with zero points": (
        {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}, "pack-quantized",
    ),
    "int8 as int8": ({"num_bits": 8, "strategy": "channel"}, "int-quantized"),
    "int8 of tensors": ({"num_bits": 8, "strategy": "tensor"}, "naive-quantized"),
    "float8": ({"num_bits": 8, "type": "float", "strategy": "channel"}, "float-quantized"),
}  # fmt: skip


def write_compressed_tensors(base: Path, folder: Path, scheme: str) -> dict[str, Tensor]:
    """Write a checkpoint with quantised weights as the library does; the weights of its layers, as it reads them."""
    import transformers
    from compressed_tensors import ModelCompressor
    from compressed_tensors import quantization as q
    from compressed_tensors.quantization.utils import calculate_qparams

    model = transformers.LlamaForCausalLM.from_pretrained(base, dtype=torch.float32)
    stated, stored = SCHEMES[scheme]
    weights = q.QuantizationArgs(**{"symmetric": True, **stated})
    group = q.QuantizationScheme(targets=["Linear"], weights=weights)
    q.apply_quantization_config(
        model, q.QuantizationConfig(config_groups={"group_0": group}, ignore=["lm_head"], format=stored)
    )
    for module in model.modules():
        if hasattr(module, "weight_scale"):
            x = module.weight.detach()
            rows, columns = module.weight_scale.shape if module.weight_scale.ndim == 2 else (1, 1)
            parts = x.reshape(rows, columns, -1)
            scale, zero = calculate_qparams(parts.amin(-1), parts.amax(-1), weights)
            module.weight_scale.data = scale.reshape(module.weight_scale.shape).to(module.weight_scale.dtype)
            if not weights.symmetric:
                module.weight_zero_point.data = zero.reshape(module.weight_zero_point.shape).to(torch.int8)
            module.quantization_status = q.QuantizationStatus.FROZEN
    compressor = ModelCompressor.from_pretrained_model(model, quantization_format=stored)
    compressor.compress_model(model)
    model.save_pretrained(folder, state_dict=model.state_dict())
    compressor.update_config(folder)
    compressor.decompress_model(model)
    return {name: p.detach() for name, p in model.named_parameters() if name.endswith("proj.weight")}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_of_compressed_tensors_are_dequantised(base: Path, scheme: str) -> None:
    pytest.importorskip("compressed_tensors")
    from safetensors.torch import load_file

    folder = base.parent / "quantised"
    expected = write_compressed_tensors(base, folder, scheme)
    own = load_file(base / "model.safetensors")
    stored = load_file(folder / "model.safetensors")
    narrow = {str(x.dtype) for name, x in stored.items() if name.endswith(("proj.weight", "proj.weight_packed"))}
    assert narrow <= {"torch.int8", "torch.int32", "torch.float8_e4m3fn"}
    subject = load(str(folder))
    loaded: Any = subject.module
    assert len(expected) == 14
    for name, value in expected.items():
        found = loaded.model.get_parameter(name.removeprefix("model.")).detach()
        assert torch.allclose(found, value, atol=1e-6)
        assert 0 < float((found - own[name]).abs().max()) < 0.3 * float(own[name].abs().max())
    assert subject.load_summary.endswith("dequantised from compressed-tensors")
    assert "weight_scale" not in str(list(loaded.model.state_dict()))
    assert prove(subject, "save_load").verdict == "held"


def test_a_gguf_file_is_read_by_transformers(base: Path) -> None:
    gguf = pytest.importorskip("gguf")
    from safetensors.torch import load_file

    file = base.parent / "model.gguf"
    writer = gguf.GGUFWriter(str(file), "llama")
    for name, number in {
        "context_length": 128, "embedding_length": 64, "block_count": 2, "feed_forward_length": 128, "head_count": 4,
        "head_count_kv": 2, "layer_norm_rms_eps": 1e-6, "rope_freq_base": 1e4, "vocab_size": 64,
        "rope_dimension_count": 16,
    }.items():  # fmt: skip
        getattr(writer, f"add_{name}")(number)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    for name, value in load_file(base / "model.safetensors").items():
        x = value.numpy()
        if "q_proj" in name or "k_proj" in name:  # the layout of rotary pairs in this format
            heads = 4 if "q_proj" in name else 2
            x = x.reshape(heads, 2, x.shape[0] // heads // 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), x)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert torch.allclose(output(file), output(base), atol=1e-5)
    assert load(str(file)).load_summary.endswith("from model.gguf, dequantised from a GGUF file")
