"""Small models with tokenizers, and their sensitivity to word order."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from orderproof.models import load
from orderproof.records.sensitivity import WordOrderSensitivity
from orderproof.word_order.sensitivity import measure_sensitivity
from orderproof.word_order.sentences import bundled_sentences, parse_sentence
from tests.word_order.lines import LINES

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}


def words_of_the_list() -> list[str]:
    return sorted({word for s in (*bundled_sentences(), *map(parse_sentence, LINES)) for word in s.words})


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> Path:
    """A tiny BERT with random weights, large enough to distinguish sentences, and a tokenizer of whole words."""
    import transformers

    folder = tmp_path_factory.mktemp("models") / "bert"
    torch.manual_seed(0)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "soldi", "##er"]
    vocabulary = special + [w for w in words_of_the_list() if w != "soldier"]
    config = transformers.BertConfig(**SIZES, vocab_size=len(vocabulary), initializer_range=0.4)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer = transformers.BertTokenizer(vocab={w: k for k, w in enumerate(vocabulary)})
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def bag(encoder, tmp_path_factory) -> Path:
    """The same with a zero position table."""
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(encoder, tmp_path_factory.mktemp("models") / "bag")
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.position_embeddings.weight"].zero_()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="session")
def decoder(tmp_path_factory) -> Path:
    """A tiny Llama whose tokenizer marks a word by the space before it."""
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    folder = tmp_path_factory.mktemp("models") / "llama"
    torch.manual_seed(0)
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([" " + s.text for s in bundled_sentences()], vocab_size=600, show_progress=False)
    config = transformers.LlamaConfig(**SIZES, vocab_size=600, initializer_range=0.4)
    transformers.LlamaModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return folder


@pytest.fixture(scope="session")
def encoder_record(encoder) -> WordOrderSensitivity:
    return measure_sensitivity(load(str(encoder)))


@pytest.fixture(scope="session")
def decoder_record(decoder) -> WordOrderSensitivity:
    return measure_sensitivity(load(str(decoder)))
