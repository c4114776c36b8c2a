"""Results of trained and real models for the page of `orderproof explain`: `explain/static/trained_model.json`.

    python tools/page_results.py           compute it and write the file

pairs    a dozen pairs of sentences through the bundled model, as the server of the page computes them on request
heads    the attention weights of every head of the bundled model, for some of the pairs
texts    texts as the bundled model reads them: tokens, numbers of rows, and the first features of these rows
proofs   laws that `orderproof audit` proves on the recorded graphs of some models, as its report says it
"""

from __future__ import annotations

import json
from typing import Any

from torch import nn

from orderproof import audit
from orderproof.explain.all_heads import all_heads
from orderproof.explain.live_audit import Auditor
from orderproof.explain.page import STATIC
from orderproof.models import bundled, load
from orderproof.report import phrases
from orderproof.report.file_output import write_file

COMMAND = "python tools/page_results.py"
TARGET = STATIC / "trained_model.json"
PAIRS = (
    ("the cat chased the dog", "the dog chased the cat"),
    ("dog bites man", "man bites dog"),
    ("only she said she loved him", "she said she loved only him"),
    ("not good, very bad", "not bad, very good"),
    ("we work to live", "we live to work"),
    ("the teacher asked the student", "the student asked the teacher"),
    ("from paris to london", "from london to paris"),
    ("rain after sun", "sun after rain"),
    ("all that glitters is not gold", "not all that glitters is gold"),
    ("he had the car washed", "he had washed the car"),
    ("a house boat", "a boat house"),
    ("buy low sell high", "buy high sell low"),
)
TEXTS = ("the cat chased the dog", "the dog chased the cat", "unbelievably, order matters", "who did what to whom?")
FEATURES = 8  # of a row of the table that are shown
PAIRS_WITH_HEADS = (0, 1, 3, 4)
PROOFS = (
    ("arch:bert", "padding"), ("arch:bert", "batch"),
    ("arch:llama", "causal"), ("arch:llama", "padding"), ("arch:llama", "batch"),
    ("arch:gpt2", "causal"),
)  # fmt: skip


def results() -> dict[str, Any]:
    """The content of the file."""
    pairs = [pair(*sentences) for sentences in PAIRS]
    return {"schema": 1, "command": COMMAND, "pairs": pairs, "heads": heads(), "texts": texts(), "proofs": proofs()}


def pair(first: str, second: str, auditor: Auditor = Auditor()) -> dict[str, Any]:  # noqa: B008  one model for all
    """Two sentences with the response of the server, without its time."""
    response = auditor.handle(json.dumps({"sentences": [first, second]}).encode())
    shown = {key: value for key, value in response.items() if key not in ("heads", "seconds")}
    return {"sentences": [first, second], **shown}


def heads() -> list[dict[str, Any]]:
    """The weights of all heads for some of the pairs."""
    subject = bundled()
    return [{"pair": index, **(all_heads(subject, PAIRS[index]) or {})} for index in PAIRS_WITH_HEADS]


def texts() -> list[dict[str, Any]]:
    """Each text as tokens, numbers of rows and the first features of the rows of the embedding table."""
    subject = bundled()
    assert subject.encode_sentence is not None
    table = next(m for n, m in subject.module.named_modules() if n.endswith("word_embeddings"))
    assert isinstance(table, nn.Embedding)
    found = []
    for text in TEXTS:
        encoded = subject.encode_sentence(text)
        ids = encoded.inputs[0][0].tolist()
        rows = [[round(value, 3) for value in table.weight[i, :FEATURES].tolist()] for i in ids]
        found.append({"text": text, "tokens": list(encoded.labels), "ids": ids, "vectors": rows})
    return found


def proofs() -> list[dict[str, str]]:
    """Each proved law with the sentence of the report; outputs with the same sentence are one row."""
    found: list[dict[str, str]] = []
    for subject in dict.fromkeys(subject for subject, _ in PROOFS):
        laws = [law for other, law in PROOFS if other == subject]
        for finding in audit(load(subject, tiny=True), laws=laws).findings:
            row = {"subject": subject, "law": phrases.law_title(finding), "evidence": phrases.evidence_text(finding)}
            if finding.verdict == "proved" and row not in found:
                found.append(row)
    return found


if __name__ == "__main__":
    write_file(json.dumps(results(), ensure_ascii=False, separators=(",", ":")) + "\n", TARGET)
    print(f"written: {TARGET.name}")
