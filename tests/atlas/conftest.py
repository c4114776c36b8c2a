"""Fixtures of the atlas tests."""

from __future__ import annotations

import pytest

from orderproof.atlas import row as atlas_row
from orderproof.atlas import worker


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that load nothing."""
    monkeypatch.setattr(worker, "warm_up", lambda: None)
    monkeypatch.setattr(atlas_row, "alias_of", lambda name: "")
