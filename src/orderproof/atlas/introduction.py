"""The introduction of the atlas page: its terms and the facts of the run, and how the rows were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.row import AtlasRow
from orderproof.report import phrases

TEXT_KINDS = ("causal_lm", "encoder")

_COMMAND = "orderproof atlas --from-json docs/evidence/atlas/atlas.json.gz"
SHORT_HEAD = f"""# The atlas

An audit of every architecture of transformers that takes text, images or audio. This page has the results by law, what
is not as expected, and why laws are undecided.

Written by `{_COMMAND} --short --markdown docs/evidence/atlas/atlas.md`; not edited by hand. The rows are in
[atlas.json.gz](atlas.json.gz). The full page, with a line for each architecture, is made by

    {_COMMAND} --markdown full.md"""
FULL_HEAD = """# The atlas

An audit of every architecture of transformers that takes text, images or audio.

Written by `orderproof atlas --markdown PATH`; not edited by hand."""
TERMS = """## How to read it

A *check* should hold for a kind of model, and passes or fails. A *property* describes the model: yes or no. [The
laws](../../reference/laws.md) defines each law. The verdict says how a result is known:

- *proved*: lemmas on the recorded graph of one call derive the law over the real numbers, for every input, under the
  [assumptions](#assumptions): for every length where there is a theorem, else for the recorded one.
- *refuted*: by two runs that differ by more than rounding.
- *held*: no comparison of a measured law showed a difference.
- *undecided*: there is neither a proof nor such runs; the [reasons](#undecided) are listed.

Kinds of model:

- `causal_lm`: a text decoder. A token must not see later tokens.
- `encoder`: any other text model. If it has an encoder and a decoder, the results are those of the encoder; every
  measured law is also measured on the decoder, marked `(decoder)`.
- `vision`: an image encoder. Its tokens are the patches.
- `audio`: an audio encoder. It computes its tokens inside, so only laws of whole rows of the batch apply.

A word in parentheses after a law says how the model was called. Without one, it was called with the tokens alone.

- `padded`: with an attention mask that marks some tokens as padding
- `packed`: with position ids that restart, as for two documents in each row
- `blocked`: the same, with a mask that lets each document see only itself
- `labelled`: with position ids, and a causal model with its mask

## The run"""
METHOD = """## How the rows were made

Each architecture is built from its default configuration, reduced to two layers and a few dozen features, with random
weights. A weight or bias that starts at zero would hide a difference. So every parameter is moved off its initial
value, and batch norms get the statistics of eight samples. Each architecture is audited in its own process, with limits
on time and memory. Every law that can be proved is audited on the first output and on the others, and every measured
law on the first output."""


def introduction(*, short: bool) -> str:
    """The head of the page, and its terms."""
    return f"{SHORT_HEAD if short else FULL_HEAD}\n\n{TERMS}"


def facts(document: AtlasDocument) -> str:
    """The date, the versions, and how many architectures were audited and proved, as a list."""
    return "\n".join(f"- {fact}" for fact in _facts(document))


def _facts(document: AtlasDocument) -> Iterator[str]:
    rows = document.rows
    aliases = sum(1 for row in rows if row.alias_of)
    failed = sum(1 for row in rows if row.failure and not row.laws)
    yield f"date: {document.date}"
    yield f"machine: {document.machine}"
    for name, values in (
        ("orderproof", {r.orderproof for r in rows}),
        ("torch", {r.torch for r in rows}),
        ("transformers", {r.transformers for r in rows}),
    ):
        yield f"{name}: {', '.join(sorted(values)) or '-'}"
    shown = {"default": "SDPA if the model supports it, else eager"}
    yield f"attention: {', '.join(sorted({shown.get(r.attention_backend, r.attention_backend) for r in rows})) or '-'}"
    complete = len(rows) >= document.requested
    state = "all" if complete else f"**{len(rows):,}, the others are not yet audited**"
    yield f"finished: {state} of {phrases.pluralize(document.requested, 'architecture')}"
    yield f"of these {len(rows) - aliases - failed:,} have findings, {aliases:,} are aliases, {failed:,} failed"
    if audited := [row for row in rows if row.laws]:
        yield _recorded_lengths(audited)
        yield _proofs(audited)
    yield f"processor time: {sum(row.processor_seconds for row in rows):,.0f} s, summed over the processes"


def _recorded_lengths(rows: Sequence[AtlasRow]) -> str:
    lengths = Counter(row.length for row in rows if row.model_kind in TEXT_KINDS)
    shown = [f"{length} ({phrases.pluralize(models, 'model')})" for length, models in lengths.most_common()]
    return f"tokens in the recorded call of a text model: {', '.join(shown) or '-'}"


def _proofs(rows: Sequence[AtlasRow]) -> str:
    proofs = Counter(each.weights for row in rows for each in row.laws if each.verdict == "proved")
    return (
        f"proofs for the first output: {proofs['all']:,} for every value of every parameter, and {proofs['these']:,} "
        "for these random weights only"
    )
