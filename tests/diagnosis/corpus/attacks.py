"""All attacks of the corpus."""

from __future__ import annotations

from tests.diagnosis.corpus.attacks_on_batch import BATCH
from tests.diagnosis.corpus.attacks_on_memory import MEMORY
from tests.diagnosis.corpus.attacks_on_padding import PADDING
from tests.diagnosis.corpus.attacks_on_positions import POSITIONS

ATTACKS = [*BATCH, *PADDING, *POSITIONS, *MEMORY]
