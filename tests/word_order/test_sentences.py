"""The sentences: how they are read and which are refused."""

from __future__ import annotations

import pytest

from orderproof.errors import UsageError
from orderproof.word_order.sentences import MAX_FILE_BYTES, Sentence, bundled_sentences, parse_sentence, read_sentences
from tests.word_order.lines import LINES


def test_marked_pair_is_parsed():
    assert parse_sentence(LINES[0]) == Sentence(("the", "cat", "chased", "the", "dog"), ".", (1, 4))
    assert parse_sentence("is *he*, or is *she*, here?").marked_pair == (1, 4)
    assert parse_sentence("is *he*, or is *she*, here?").text == "is he, or is she, here?"


def test_other_asterisks_are_kept():
    for line in ("two * three * four", "only *one* here", "*a* *b* *c*", "x*y* is *z"):
        assert (parse_sentence(line).text, parse_sentence(line).marked_pair) == (line, None)


def test_bundled_sentences_have_a_pair_and_are_distinct():
    found = bundled_sentences()
    assert len(found) == 40
    assert all(s.marked_pair and s.closing_mark == "." and "*" not in s.text for s in found)
    assert len({tuple(sorted(s.words)) for s in found}) == len(found)


def test_empty_and_repeated_lines_are_skipped(tmp_path):
    file = tmp_path / "text.txt"
    file.write_bytes("\ufeffone two three\n\n  one  two three\r\nfour *five* six *seven*!\n".encode())
    assert [s.text for s in read_sentences(file)] == ["one two three", "four five six seven!"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\n\xff\n", "line 2 is not UTF-8"),
        (b"a\x00b\n", "line 1 contains a zero byte"),
        (b"a " * 3000, "line 1 has 6000 characters, more than 4000"),
        (b"\n \n", "the file is empty"),
        (b"a" * (MAX_FILE_BYTES + 1), "at most 8 MB"),
    ],
)
def test_invalid_file_is_refused(tmp_path, content, message):
    file = tmp_path / "text.txt"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_sentences(file)


def test_unreadable_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_sentences(tmp_path / "none.txt")
    with pytest.raises(UsageError, match=r"[Ii]s a directory"):
        read_sentences(tmp_path)
