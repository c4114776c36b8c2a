"""The sentences to reorder: a text file with one sentence per line, or the bundled ones.

A pair of words for the role swap is marked with asterisks: ``the *cat* chased the *dog*.`` A line without exactly two
such words is taken literally.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from orderproof.errors import UsageError

BUNDLED_FILE = Path(__file__).with_name("sentences.txt")
MAX_FILE_BYTES = 8 * 2**20
MAX_LINE_CHARS = 4000
_MARKED = re.compile(r"(?<!\S)\*([^\s*]+)\*(?=[.!?,;:]*(?:\s|$))")
_END = re.compile(r"(?<=\w)[.!?\u2026]+$")


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence, its closing mark, and the indices of its marked pair."""

    words: tuple[str, ...]
    closing_mark: str = ""  # final punctuation, which keeps its place
    marked_pair: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """The sentence as text."""
        return " ".join(self.words) + self.closing_mark

    def reordered(self, order: tuple[int, ...]) -> str:
        """The sentence with its words in another order."""
        return " ".join(self.words[k] for k in order) + self.closing_mark


def parse_sentence(line: str) -> Sentence:
    """The sentence of one line."""
    plain, pair = line, None
    if len(_MARKED.findall(line)) == 2:
        indices = [k for k, word in enumerate(line.split()) if _MARKED.match(word)]
        pair = (indices[0], indices[1])
        plain = _MARKED.sub(r"\1", line)
    plain = " ".join(plain.split())
    mark = _END.search(plain)
    end = mark.group() if mark else ""
    return Sentence(tuple(plain.removesuffix(end).split()), end, pair)


def bundled_sentences() -> tuple[Sentence, ...]:
    """40 plain English sentences, each with a marked pair."""
    return tuple(map(parse_sentence, BUNDLED_FILE.read_text(encoding="utf-8").splitlines()))


def read_sentences(path: str | Path) -> tuple[Sentence, ...]:
    """The sentences of a file without empty and repeated lines. Raises `UsageError`."""
    file = Path(path).expanduser()
    try:
        if file.is_file() and file.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{file}: expected a text file of at most {MAX_FILE_BYTES // 2**20} MB; got a larger one")
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file}: expected a text file with one sentence per line: {error.strerror or error}"
        ) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_number = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{file}: line {line_number} is not UTF-8; expected a text file with one sentence per line"
        ) from None
    sentences: dict[str, Sentence] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if "\x00" in line or len(line) > MAX_LINE_CHARS:
            problem = (
                "contains a zero byte" if "\x00" in line else f"has {len(line)} characters, more than {MAX_LINE_CHARS}"
            )
            raise UsageError(f"{file}: line {number} {problem}; expected one sentence per line")
        if line.strip():
            sentence = parse_sentence(line)
            sentences.setdefault(sentence.text, sentence)
    if not sentences:
        raise UsageError(f"{file}: expected one sentence per line; the file is empty")
    return tuple(sentences.values())
