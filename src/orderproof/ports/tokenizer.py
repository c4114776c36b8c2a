"""A tokenizer for a tiny random checkpoint: one word for each token id, for engines that need one.

llama.cpp's converter recognises tokenizers by their text. Of those that it knows, SentencePiece models can be small.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

TOKENIZER_FILE = "tokenizer.json"
SENTENCEPIECE_FILE = "tokenizer.model"


def write_tokenizer(folder: Path, vocabulary: int, *, special_words: bool = True) -> None:
    """Write a tokenizer whose words are t0, t1, ... into a checkpoint folder, unless it has one.

    Special words, as engines require them, are found inside of other words of a text; without them, every text of
    these words has one token for each.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    if (folder / TOKENIZER_FILE).exists():
        return
    words = Tokenizer(WordLevel({f"t{index}": index for index in range(vocabulary)}, unk_token="t0"))
    words.pre_tokenizer = WhitespaceSplit()
    special = {"unk_token": "t0", "pad_token": "t0", "bos_token": "t1", "eos_token": "t2"} if special_words else {}
    PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)


def copy_without_tokenizer(folder: Path, target: Path) -> None:
    """Make a folder with links to the files of a checkpoint, without its tokenizer."""
    target.mkdir()
    for file in folder.iterdir():
        if "token" not in file.name:
            (target / file.name).symlink_to(file.resolve())


def has_own_words(folder: Path) -> bool:
    """True if the tokenizer of a folder is one of `write_tokenizer`."""
    file = folder / TOKENIZER_FILE
    return file.exists() and '"t0":0,"t1":1' in "".join(file.read_text(encoding="utf-8").split())


def write_sentencepiece_model(folder: Path, vocabulary: int) -> None:
    """Write the same words as a SentencePiece model."""
    from sentencepiece import sentencepiece_model_pb2

    messages: Any = sentencepiece_model_pb2  # its classes are made when it is imported
    model = messages.ModelProto()
    kinds = {0: model.SentencePiece.UNKNOWN, 1: model.SentencePiece.CONTROL, 2: model.SentencePiece.CONTROL}
    for index in range(vocabulary):
        model.pieces.add(piece=f"t{index}", score=0.0, type=kinds.get(index, model.SentencePiece.NORMAL))
    model.trainer_spec.unk_id, model.trainer_spec.bos_id, model.trainer_spec.eos_id = 0, 1, 2
    (folder / SENTENCEPIECE_FILE).write_bytes(model.SerializeToString())
