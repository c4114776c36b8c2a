"""Checkpoints are loaded completely or refused in one line."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from orderproof.errors import CheckpointError, UsageError
from orderproof.models import load


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Checkpoint folders of tiny models, one of each kind."""
    import transformers

    root = tmp_path_factory.mktemp("checkpoints")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    bert = transformers.BertConfig(**sizes, vocab_size=60)
    transformers.BertModel(bert).save_pretrained(root / "bert")
    transformers.BertForMaskedLM(bert).save_pretrained(root / "masked")
    llama = transformers.LlamaConfig(**sizes, vocab_size=60)
    transformers.LlamaForCausalLM(llama).save_pretrained(root / "llama", max_shard_size="20KB")
    t5 = transformers.T5Config(d_model=32, num_layers=1, num_heads=2, d_kv=16, d_ff=48, vocab_size=60)
    transformers.T5ForConditionalGeneration(t5).save_pretrained(root / "t5")
    return root


@pytest.fixture
def folder(originals, tmp_path):
    shutil.copytree(originals / "bert", tmp_path / "bert")
    return tmp_path / "bert"


def _edit_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(
    ("name", "kind", "outputs"),
    [
        ("bert", "encoder", {"last_hidden_state", "pooler_output"}),
        ("masked", "encoder", {"last_hidden_state"}),
        ("llama", "causal_lm", {"last_hidden_state"}),
        ("t5", "encoder", {"last_hidden_state"}),
    ],
)
def test_a_folder_is_loaded(originals, name, kind, outputs):
    subject = load(str(originals / name))
    assert (subject.name, subject.model_kind, subject.layer_count, subject.device) == (name, kind, 1, "cpu")
    assert f"sdpa, float32, from {name}" in subject.load_summary
    with torch.no_grad():
        assert set(subject.module(*subject.sample(7).inputs)) == outputs


def test_words_with_a_start_marker_are_sampled_and_encoded(originals, tmp_path):
    from tokenizers import ByteLevelBPETokenizer

    folder = shutil.copytree(originals / "bert", tmp_path / "bert")
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(["the cat and the dog saw the cat"] * 9, vocab_size=290, show_progress=False)
    table = json.loads(tokenizer.to_str())
    words = {text: place for place, text in enumerate(sorted(table["model"]["vocab"], key=len, reverse=True))}
    table["model"]["vocab"] = words
    (folder / "tokenizer.json").write_text(json.dumps(table))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    subject = load(str(folder))
    assert set(subject.sample(30).labels) == {"the", "cat", "and", "dog", "saw"}
    assert subject.encode_sentence(" the cat").labels == ("the", "cat")
    with pytest.raises(UsageError, match="the tokenizer has no tokens for ''"):
        subject.encode_sentence("")


def test_the_weights_are_those_of_the_checkpoint(originals):
    from safetensors.torch import load_file

    stored = load_file(originals / "bert" / "model.safetensors")
    loaded = load(str(originals / "bert")).module.model.state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in stored.items())


def test_a_missing_pooler_is_left_out_with_a_remark(originals):
    assert "without the pooler its checkpoint lacks" in load(str(originals / "masked")).load_summary


def test_a_missing_weight_is_refused(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.0.attention.self.query.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"1 weights of BertModel are not in the checkpoint: .*query\.weight"):
        load(str(folder))


def test_weights_of_another_shape_are_refused(folder):
    _edit_config(folder, intermediate_size=52)
    with pytest.raises(CheckpointError, match=r"bert: encoder\..* has shape \[.*\], and config\.json says \[52\]$"):
        load(str(folder))


def test_a_truncated_checkpoint_is_refused(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"bert: model\.safetensors is damaged or cut short") as caught:
        load(str(folder))
    assert "\n" not in str(caught.value)


def test_a_missing_shard_is_refused(originals, tmp_path):
    shutil.copytree(originals / "llama", tmp_path / "llama")
    shard = min((tmp_path / "llama").glob("model-*.safetensors"))
    shard.unlink()
    with pytest.raises(CheckpointError, match=rf"names {shard.name}, which is missing"):
        load(str(tmp_path / "llama"))


def test_an_index_may_not_point_outside(originals, tmp_path):
    shutil.copytree(originals / "llama", tmp_path / "llama")
    (tmp_path / "llama" / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x.safetensors"}}')
    with pytest.raises(CheckpointError, match="names a file outside the folder"):
        load(str(tmp_path / "llama"))
    (tmp_path / "llama" / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(CheckpointError, match="has no weight_map"):
        load(str(tmp_path / "llama"))


def test_a_pickle_is_never_opened(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(
        CheckpointError, match=r"only pickled weights \(pytorch_model\.bin\).*convert them to safetensors"
    ):
        load(str(folder))
    with pytest.raises(CheckpointError, match=r"a pickle can run code when it is opened.*convert the checkpoint"):
        load(str(folder / "pytorch_model.bin"))


def test_code_in_a_checkpoint_is_never_run(folder):
    _edit_config(folder, auto_map={"AutoModel": "modeling.Model"})
    (folder / "modeling.py").write_text("raise SystemExit('ran')")
    with pytest.raises(CheckpointError, match=r"requires custom code \(auto_map\), which is not run"):
        load(str(folder))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "config.json is not readable as JSON"),
        ("[]", "config.json must be a JSON object; got list"),
        ("{}", "config.json: no model_type"),
        ('{"model_type": "brt"}', "model_type 'brt' is not known to transformers; did you mean"),
        ('{"model_type": "bert", "hidden_size": "x"}', "config.json does not fit bert"),
        ('{"model_type": "bert", "quantization_config": {"bits": 4}}', "its weights are quantised"),
    ],
)
def test_a_broken_configuration_is_refused(folder, content, message):
    (folder / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        load(str(folder))
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_checkpoint_is_refused(folder, tmp_path):
    with pytest.raises(CheckpointError, match=r"expected a checkpoint folder .* got a file"):
        load(str(folder / "model.safetensors"))
    (tmp_path / "model.py").write_text("layer = 1")
    with pytest.raises(CheckpointError, match=r"expected .*model\.py:NAME, a module in it .* got the file alone$"):
        load(str(tmp_path / "model.py"))
    (tmp_path / "model.py").write_text("def build(n=1): ...\ndef part(n): ...\ndef _own(): ...\ndef other(*, n): ...")
    with pytest.raises(CheckpointError, match=r"the file alone; its functions without arguments: build$"):
        load(str(tmp_path / "model.py"))
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"no model\.safetensors in the folder"):
        load(str(folder))
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"no config\.json in the folder"):
        load(str(folder))
    with pytest.raises(CheckpointError, match="nowhere: no such folder; a subject is a checkpoint folder, a hub id"):
        load(str(tmp_path / "nowhere"))


def test_a_hub_id_is_read_from_the_cache_only(monkeypatch, originals, tmp_path):
    import huggingface_hub

    requests = []

    def snapshot(name, **options):
        requests.append((name, options["local_files_only"]))
        assert not any(pattern.endswith((".py", ".bin")) for pattern in options["allow_patterns"])
        if name != "someone/bert":
            raise huggingface_hub.errors.LocalEntryNotFoundError("not there")
        return str(originals / "bert")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name in ("bert", "else"):
        (tmp_path / f"models--someone--{name}").mkdir()
    assert load("someone/bert").name == "someone/bert"
    with pytest.raises(CheckpointError, match=r"someone/else: no such folder, and not in the local hub cache"):
        load("someone/else")
    with pytest.raises(CheckpointError, match=r"cannot be fetched from the hub: LocalEntryNotFoundError: not there"):
        load("someone/else", allow_network=True)
    with pytest.raises(CheckpointError, match=r"the architecture is arch:bert"):
        load("bert")
    assert [network for _, network in requests] == [True, True, False]  # bert has no folder in the cache


def test_tiny_and_empty_names_are_refused(folder):
    with pytest.raises(UsageError, match="--tiny shrinks an architecture"):
        load(str(folder), tiny=True)
    with pytest.raises(UsageError, match="got an empty text"):
        load("")


@pytest.fixture
def narrow(originals, tmp_path):
    """A checkpoint whose weights and configuration are in bfloat16."""
    import transformers

    model = transformers.LlamaForCausalLM.from_pretrained(originals / "llama", dtype=torch.bfloat16)
    model.save_pretrained(tmp_path / "narrow")
    return tmp_path / "narrow"


def test_weights_keep_the_dtype_of_the_file_unless_another_one_is_asked_for(narrow):
    for given, expected in ((None, torch.bfloat16), ("float32", torch.float32), ("float16", torch.float16)):
        subject = load(str(narrow), dtype=given)
        assert {p.dtype for p in subject.module.parameters()} == {expected}
        assert f"sdpa, {str(expected).removeprefix('torch.')}, from narrow" in subject.load_summary


def test_weights_in_the_dtype_of_the_file_are_mapped(narrow):
    subject = load(str(narrow))
    file = Path("/proc/self/maps")
    maps = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    mapped = [(int(a, 16), int(b, 16)) for a, b in (m[0].split("-") for m in maps if m[-1].startswith(str(narrow)))]
    if not mapped:
        pytest.skip("no list of mapped files")
    large = max(subject.module.parameters(), key=lambda p: p.numel())
    assert any(begin <= large.data_ptr() < end for begin, end in mapped)


def test_a_dtype_in_which_nothing_runs_is_refused(narrow):
    from safetensors.torch import load_file, save_file

    for file in narrow.glob("*.safetensors"):
        weights = {name: value.to(torch.float8_e4m3fn) for name, value in load_file(file).items()}
        save_file(weights, file, metadata={"format": "pt"})
    _edit_config(narrow, dtype="float8_e4m3fn")
    with pytest.raises(CheckpointError, match="float8_e4m3fn") as caught:
        load(str(narrow))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "named", "problem"),
    [
        (torch.float8_e4m3fn, "F8_E4M3", "in which no model runs here; choose another dtype with --dtype bfloat16"),
        (torch.int8, "I8", "config.json does not say how they were quantised"),
    ],
)
def test_weights_that_nothing_computes_are_refused_before_they_are_loaded(narrow, monkeypatch, dtype, named, problem):
    from safetensors.torch import load_file, save_file

    for file in narrow.glob("*.safetensors"):
        save_file({name: value.to(dtype) for name, value in load_file(file).items()}, file, metadata={"format": "pt"})
    settings = json.loads((narrow / "config.json").read_text())
    (narrow / "config.json").write_text(json.dumps({k: v for k, v in settings.items() if k != "dtype"}))
    monkeypatch.setattr("orderproof.models.hf.checkpoint._load_weights", None)
    with pytest.raises(CheckpointError, match=f"^narrow: its weights are in {named}, .*{problem}$"):
        load(str(narrow))


def test_a_shard_that_is_cut_short_is_refused_before_it_is_loaded(originals, tmp_path, monkeypatch):
    shutil.copytree(originals / "llama", tmp_path / "llama")
    shard = sorted((tmp_path / "llama").glob("model-*.safetensors"))[1]
    shard.write_bytes(shard.read_bytes()[:-100])
    monkeypatch.setattr("orderproof.models.hf.checkpoint._load_weights", None)
    with pytest.raises(CheckpointError, match=f"{shard.name} is damaged or cut short"):
        load(str(tmp_path / "llama"))


def test_a_dtype_is_for_checkpoints():
    with pytest.raises(UsageError, match="expected a checkpoint folder or a hub id with --dtype; got arch:llama"):
        load("arch:llama", dtype="bfloat16")
