"""What a training imports, also on first use: a fork server reads it once, and its children start at once."""

from __future__ import annotations

from orderproof.lab.model import build_model
from orderproof.lab.trainer import make_optimiser
from tests.lab.small_study import tiny_run

make_optimiser(tiny_run(), build_model(tiny_run()))
