"""What a training imports, also on first use: a fork server reads it once, and its children start at once."""

from __future__ import annotations

from orderproof.lab.network import build
from orderproof.lab.training import optimiser_of
from tests.lab.running import one

optimiser_of(one(), build(one()))
