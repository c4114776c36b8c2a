"""A tokenizer for a tiny random checkpoint: one word for each token id, for engines that need one."""

from __future__ import annotations

from pathlib import Path

TOKENIZER_FILE = "tokenizer.json"


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
