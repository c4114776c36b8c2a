"""OP203 packing: the outputs in one packed document are independent of the other documents.

    X_s = X'_s for every slot s of one document  implies  f(X)_s = f(X')_s there.

A row has two documents, and either is replaced: two relations. Two call modes mark the documents: what the model takes
for it, boundaries, document ids, a mask or position ids that restart (`packed`), or position ids that restart and a
block-diagonal mask (`blocked`).
Source: elementary; the assumption of training on packed documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from orderproof.batch_layout import second_document_start
from orderproof.laws.mixing_kinds import (
    CHOICE,
    CONVOLUTION,
    OTHER,
    POOLING,
    RECURRENCE,
    RUNNING_SUM,
    STATISTIC,
)
from orderproof.laws.proved.replacement_law import ReplacementLaw, SlotMask
from orderproof.logic.terms import Formula, Term, equal, variable
from orderproof.records.audit import Remedy
from orderproof.theorems.statement import (
    BLOCKS,
    DOCUMENTS,
    DOCUMENTS_BY_POSITIONS,
    POSITIONS,
    PrefixSum,
    Statement,
    document,
    document_id,
)


@dataclass(frozen=True, kw_only=True)
class PackingLaw(ReplacementLaw):
    """The law of this module."""

    replaced_document: int = 0  # 0 or 1

    def subrelations(self, rows: int) -> tuple[PackingLaw, ...]:
        return (replace(self, replaced_document=0), replace(self, replaced_document=1))

    def replaced_slots(self, rows: int, tokens: int) -> SlotMask:
        second = np.arange(tokens) >= second_document_start(tokens)
        return np.broadcast_to(second == bool(self.replaced_document), (rows, tokens))

    def unchanged_slots(self, rows: int, tokens: int) -> SlotMask:
        return ~self.replaced_slots(rows, tokens)

    def open_statement(self, shared: frozenset[str]) -> Statement | None:
        if shared not in ({POSITIONS}, {POSITIONS, BLOCKS}, {BLOCKS}, {POSITIONS, DOCUMENTS}, {DOCUMENTS}):
            return None
        own = variable("own document")

        of_token = document_id if DOCUMENTS in shared else document

        def in_document(row: Term, token: Term) -> Formula:
            return equal(of_token(row, token), own)

        covers: tuple[str, ...] = (
            "every layout of documents",
            "every mask within documents that shows each token itself",
        )
        sums: tuple[PrefixSum, ...] = ()
        if DOCUMENTS in shared:
            covers = ("every layout of documents",)
        elif BLOCKS not in shared:
            covers, sums = ("every layout of documents as runs of consecutive position ids",), (DOCUMENTS_BY_POSITIONS,)
        return Statement(
            in_document, in_document, lambda row, token: [in_document(row, token)], covers=covers, prefix_sums=sums
        )

    def change_description(self, tokens: int) -> str:
        return f"replace the {('first', 'second')[self.replaced_document]} of two packed documents"


LAW = PackingLaw(
    code="OP203",
    name="packing",
    statement="Replacing one of two packed documents leaves the outputs in the other unchanged.",
    trait="keeps packed documents apart",
    kind="property",
    expectation={},
    expected_of_documents=True,
    remedies={
        "holds": Remedy(
            text="Attend within a document only: use a block-diagonal mask, from where the position ids restart.",
            diff="-mask = causal\n+mask = causal & (document[:, :, None] == document[:, None, :])",
        )
    },
    remedies_by_mixing={
        CONVOLUTION: Remedy(
            text="Start this convolution again at each document: give it the cumulative lengths, or zeros instead of "
            "entries of the document before.",
            diff="-causal_conv1d_fn(x, weight)\n+causal_conv1d_fn(x, weight, seq_idx=document)",
        ),
        RUNNING_SUM: Remedy(
            text="Start this running sum again at each document: subtract its value at the document's start."
        ),
        RECURRENCE: Remedy(
            text="Start each document from the zero state: give the scan the cumulative lengths.",
            diff="-state = decay * state + update\n+state = decay * state * (document == previous_document) + update",
        ),
        STATISTIC: Remedy(text="Take this statistic within a document."),
        POOLING: Remedy(text="Pool within a document: no window may reach over a boundary of documents."),
        CHOICE: Remedy(text="Choose within a document: no document may use up what another needs."),
        OTHER: Remedy(text="Keep the documents apart in this operator, which mixes tokens."),
    },
    call_modes=("packed", "blocked"),
)
