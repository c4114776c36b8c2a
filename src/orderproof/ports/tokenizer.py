"""A tokenizer for a tiny random checkpoint: one word for each token id, for engines that read text."""

from __future__ import annotations

from pathlib import Path

TOKENIZER_FILE = "tokenizer.json"


def write_tokenizer(folder: Path, vocabulary: int) -> None:
    """Write a tokenizer whose words are t0, t1, ... into a checkpoint folder, unless it has one."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    if (folder / TOKENIZER_FILE).exists():
        return
    words = Tokenizer(WordLevel({f"t{index}": index for index in range(vocabulary)}, unk_token="t0"))
    words.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="t0", pad_token="t0", bos_token="t1", eos_token="t2"
    ).save_pretrained(folder)
