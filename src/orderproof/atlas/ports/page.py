"""The Markdown page of the atlas of ports. The same document gives the same page."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.atlas.ports.document import PortsDocument
from orderproof.atlas.ports.engine_page import engine_sections, engine_title, time_text
from orderproof.atlas.ports.row import PortRow
from orderproof.atlas.ports.tables import differences, summary
from orderproof.atlas.ports.trial import trial
from orderproof.atlas.ports.variants import PLAIN
from orderproof.report.markdown_table import markdown_table
from orderproof.report.phrases import pluralize
from orderproof.report.study_phrases import duration
from orderproof.tolerances import PORT_FACTOR

INTRODUCTION = f"""# Ports of transformers

Written by `orderproof ports`; not edited by hand. [How to compare a port](../../how_to/audit_a_port.md).

Each row compares one architecture of transformers with another implementation, an *engine*, that reads the checkpoint
that transformers saves: the same weights, the same tokens, both on the CPU in float32. The models are tiny (2 layers of
width 64, or 128 for an engine that takes no narrower heads, or as many layers as the pattern of their types has), their
weights are random, and a window is 6 tokens, so that a prompt of 20 tokens is longer than it. A difference is relative
to the largest logit. A law fails if a difference exceeds {PORT_FACTOR} times the distance of transformers from float32
to float64 on the same tokens.

A difference is *explained* if transformers with another value of the named setting computes what the engine computes,
up to rounding. `transformers` 5 writes `rope_parameters` to `config.json`; versions before 5 wrote `rope_theta` and
`rope_scaling`. An engine that reads the old keys is run a second time with these keys added. A difference that
disappears then is one of the *configuration of another version*, and not of the arithmetic of the engine. It still
changes what a checkpoint saved today computes. Every other difference is called a *difference of the port*: this page
does not say whether it is intended. What upstream says is in the column *stated upstream*; a dash means that nothing
was looked up."""


def page(document: PortsDocument, pages: str = "") -> str:
    """The page of a document; `pages` is the folder of the pages of engines, seen from it, if they are written."""
    names = sorted({row.engine for row in document.rows})
    parts = [INTRODUCTION, _facts(document)]
    parts += ["## Engines", _engines(document.rows, names, pages)] if pages else []
    parts += ["## Summary", summary(document.rows, names), "## Differences", differences(document.rows)]
    parts += trial(document.rows)
    for name in [] if pages else names:
        parts += [f"## {engine_title(name)}", *engine_sections([row for row in document.rows if row.engine == name])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _engines(rows: Sequence[PortRow], names: Sequence[str], pages: str) -> str:
    head = ("engine", "version", "date", "known architectures", "time")
    lines = []
    for name in names:
        own = [row for row in rows if row.engine == name]
        known = {row.name for row in own if row.known and not row.failure}
        versions = ", ".join(sorted({row.engine_version for row in own}))
        link = f"[{name}]({pages}/{name}.md)"
        lines.append((link, versions, max(row.finished_on for row in own), str(len(known)), time_text(own) or "-"))
    return markdown_table(head, lines, right=(3,))


def _facts(document: PortsDocument) -> str:
    versions = sorted({row.engine_version for row in document.rows})
    seconds = sum(row.processor_seconds for row in document.rows)
    library = ", ".join(sorted({row.transformers for row in document.rows}))
    plain = [row for row in document.rows if row.variant == PLAIN]
    asked = [
        f"{name}: {sum(row.engine == name for row in plain)} architectures, of which it has "
        f"{sum(row.engine == name and row.known for row in plain)}"
        for name in sorted({row.engine for row in plain})
    ]
    return (
        f"transformers {library}; {', '.join(versions)}; {document.date}; {document.machine}; "
        f"{pluralize(len(document.rows), 'row')}, {duration(seconds)} of processor time. Asked for {'; '.join(asked)}. "
        "The scalings of an architecture that is not in the summary were not measured."
    )
