"""Imported by a fork server: everything that a training imports, also on first use, so that its children start at once."""

from __future__ import annotations

from orderproof.lab.network import build
from orderproof.lab.training import optimiser_of
from tests.lab.running import one

optimiser_of(one(), build(one()))
