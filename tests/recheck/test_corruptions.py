"""The rechecker refuses randomly corrupted certificates whose steps are false."""

from __future__ import annotations

import pytest

from tests.recheck.corruptions import corruptions


def test_a_hundred_random_corruptions_are_refused_if_they_are_false() -> None:
    found = corruptions(100, 1)
    assert found["false, refused"] > 50


@pytest.mark.slow
def test_a_thousand_false_corruptions_are_refused() -> None:
    found = corruptions(2200, 0)
    assert found["false, refused"] >= 1000, found
