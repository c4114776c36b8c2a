"""The rechecker has its own definition of every law with a theorem."""

from __future__ import annotations

import pytest

from orderproof.laws import ProvedLaw, proved_laws
from orderproof.theorems.statement import BLOCKS, DOCUMENTS, MASK, POSITIONS, RIGHT_MASK
from orderproof_recheck.statements import STATEMENTS

SHARED: dict[str, list[tuple[str, ...]]] = {  # inputs, by call mode
    "plain": [(), (MASK,), (RIGHT_MASK,)],
    "padded": [(MASK,), (RIGHT_MASK,)],
    "packed": [(POSITIONS,), (DOCUMENTS,), (POSITIONS, DOCUMENTS), (BLOCKS,), (POSITIONS, BLOCKS)],
}


@pytest.mark.parametrize("law", proved_laws(), ids=lambda law: law.name)
def test_a_law_with_a_statement_for_every_length_has_it_in_the_rechecker(law: ProvedLaw) -> None:
    ways = {shared for mode in law.call_modes for shared in SHARED.get(mode, [(POSITIONS,), (POSITIONS, BLOCKS)])}
    stated = {(law.code, law.name, shared) for shared in ways if law.open_statement(frozenset(shared)) is not None}
    assert stated == {key for key in STATEMENTS if key[0] == law.code}
