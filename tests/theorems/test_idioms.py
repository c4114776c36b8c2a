"""Small modules as engineers write them: how far each is decided, and that its faulty twin is refuted."""

from __future__ import annotations

import pytest

from tests.theorems.idioms.base import Idiom
from tests.theorems.idioms.levels import all_idioms, decided

NOT_FOR_EVERY_LENGTH = {  # a module that is not listed is proved for every length
    "masked_rows: -1e4 added twice": "undecided",
    "masked_rows: -1e4 added": "undecided",
    "masked_rows: -1e4 of the first GPT-2": "undecided",
    "selection: pooling of blocks": "undecided",
    "stored_masks: frozen parameter": "undecided",
    "stored_masks: lru_cache": "length",
    "stored_masks: numpy": "length",
    "stored_masks: positions as floats": "length",
    "stored_masks: bits": "length",
}
IDIOMS = all_idioms()


@pytest.mark.parametrize("name", IDIOMS)
def test_a_module_is_decided_as_far_as_listed(name: str) -> None:
    level, reason = decided(IDIOMS[name].good, IDIOMS[name])
    assert level == NOT_FOR_EVERY_LENGTH.get(name, "theorem"), reason


@pytest.mark.parametrize("idiom", [pytest.param(one, id=name) for name, one in IDIOMS.items() if one.bad is not None])
def test_its_faulty_twin_is_refuted(idiom: Idiom) -> None:
    assert idiom.bad is not None
    assert decided(idiom.bad, idiom)[0] == "refuted"
