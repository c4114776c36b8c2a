"""The sentences whose words are moved: one a line of a text file, or the few dozen that come along.

A pair of words that may trade places is marked with asterisks, ``the *cat* chased the *dog*.``; a line without two
such marks is a sentence as it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from orderproof.errors import UsageError

BUNDLED = Path(__file__).with_name("sentences.txt")
LARGEST = 8 * 2**20  # a file [bytes]
LONGEST = 4000  # a line [characters]
_MARKED = re.compile(r"(?<!\S)\*([^\s*]+)\*(?=[.!?,;:]*(?:\s|$))")
_END = re.compile(r"(?<=\w)[.!?\u2026]+$")


@dataclass(frozen=True)
class Sentence:
    """Words, what closes them, and which two of them are a pair."""

    words: tuple[str, ...]
    end: str = ""  # the final mark, which stays where it is
    pair: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """The sentence as it is read."""
        return " ".join(self.words) + self.end

    def moved(self, order: tuple[int, ...]) -> str:
        """The sentence with its words in another order."""
        return " ".join(self.words[k] for k in order) + self.end


def parse(line: str) -> Sentence:
    """One line."""
    plain, pair = line, None
    if len(_MARKED.findall(line)) == 2:
        places = [k for k, word in enumerate(line.split()) if _MARKED.match(word)]
        pair = (places[0], places[1])
        plain = _MARKED.sub(r"\1", line)
    plain = " ".join(plain.split())
    found = _END.search(plain)
    end = found.group() if found else ""
    return Sentence(tuple(plain.removesuffix(end).split()), end, pair)


def bundled_sentences() -> tuple[Sentence, ...]:
    """Plain English sentences with a pair each."""
    return tuple(map(parse, BUNDLED.read_text(encoding="utf-8").splitlines()))


def read_sentences(path: str | Path) -> tuple[Sentence, ...]:
    """The sentences of a file, empty lines and repeated ones left out. Raises `UsageError`."""
    file = Path(path).expanduser()
    try:
        if file.is_file() and file.stat().st_size > LARGEST:
            raise UsageError(f"{file}: expected a text file of at most {LARGEST // 2**20} MB; got a larger one")
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: expected a text file with one sentence a line: {error.strerror or error}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        bad = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{file}: line {bad} is not UTF-8; expected a text file with one sentence a line") from None
    found: dict[str, Sentence] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if "\x00" in line or len(line) > LONGEST:
            said = "holds a zero byte" if "\x00" in line else f"has {len(line)} characters, more than {LONGEST}"
            raise UsageError(f"{file}: line {number} {said}; expected one sentence a line")
        if line.strip():
            sentence = parse(line)
            found.setdefault(sentence.text, sentence)
    if not found:
        raise UsageError(f"{file}: expected one sentence a line; the file has none")
    return tuple(found.values())
