"""Small modules as engineers write them: how far each is decided, and that its faulty twin is refuted."""

from __future__ import annotations

import pytest

from tests.theorems.idioms.idiom import Idiom
from tests.theorems.idioms.levels import all_idioms, decided

NOT_FOR_EVERY_LENGTH = {  # a module that is not listed is proved for every length
    "sparse_keys: best keys weighted": "undecided",
    "sparse_keys: straight through": "undecided",
    "sparse_keys: totals of real tokens": "undecided",
    "states: two steps of a correction": "length",
    "stored_masks: frozen parameter": "undecided",
    "stored_masks: bits": "length",
}
IDIOMS = all_idioms()
LATER = ("masks_in_code: ", "sparse_keys: ", "states: ")  # the second half, which takes as long as the first


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if name.startswith(LATER) else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in IDIOMS])
def test_a_module_is_decided_as_far_as_listed(name: str) -> None:
    level, reason = decided(IDIOMS[name].good, IDIOMS[name])
    assert level == NOT_FOR_EVERY_LENGTH.get(name, "theorem"), reason


@pytest.mark.parametrize(
    "idiom", [pytest.param(one, id=name, marks=_marks(name)) for name, one in IDIOMS.items() if one.bad is not None]
)
def test_its_faulty_twin_is_refuted(idiom: Idiom) -> None:
    assert idiom.bad is not None
    assert decided(idiom.bad, idiom)[0] == "refuted"
