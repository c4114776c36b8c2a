"""An inference engine of `orderproof.ports` as the engine of rollouts of a training step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orderproof.errors import OrderproofError, UnsupportedCallError, UsageError
from orderproof.laws.ports import PortCall
from orderproof.laws.training.rollouts import Document, Generate, Recorded, Rollout
from orderproof.ports.comparison import log_softmax
from orderproof.ports.engine_process import EngineLimits, run_engine
from orderproof.ports.engines.engine import InferenceEngine, Scores
from orderproof.ports.engines.registry import engines, find_engine
from orderproof.ports.load import load_reference
from orderproof.ports.tokenizer import write_tokenizer


def chosen_rollout(given: str | Callable[[Any, Any], Any] | None) -> Rollout | None:
    """The engine of rollouts of a name or a function. Raises `UsageError`."""
    if given is None:
        return None
    if callable(given):
        return Recorded(given)
    if not isinstance(given, str):
        raise UsageError(f"expected rollout as the name of an engine or a function; got {type(given).__name__}")
    if given == Generate.name:
        return Generate()
    if given.partition(":")[0] not in engines():
        raise UsageError(f"expected generate or an engine as rollout: {', '.join(engines())}; got {given}")
    engine = find_engine(given)
    if not engine.is_installed:
        raise UsageError(f"expected an engine that is installed as rollout; {given} is not: {engine.how_to_install}")
    return EngineRollout(engine)


@dataclass(frozen=True)
class EngineRollout(Rollout):
    """The log-probabilities of an inference engine that reads the model as a checkpoint."""

    engine: InferenceEngine
    is_exact: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the engine."""
        return self.engine.name

    def log_probabilities(self, model: Any, documents: Sequence[Document]) -> list[list[float]]:
        """See `Rollout`."""
        calls = [PortCall("prefill", (document.tokens,)) for document in documents]
        try:
            reference = load_reference(model)
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                reference.save(folder)
                write_tokenizer(folder, reference.port_model.vocabulary)
                run = run_engine(self.engine, folder, reference.config.model_type, calls, EngineLimits())
        except OrderproofError as error:
            raise UnsupportedCallError(str(error)) from error
        if run.load_failure or not run.knows:
            raise UnsupportedCallError(run.load_failure or f"{self.name} does not know {reference.config.model_type}")
        return [_values(run.outputs[call], document) for call, document in zip(calls, documents, strict=True)]


def _values(output: Any, document: Document) -> list[float]:
    if isinstance(output, str):
        raise UnsupportedCallError(f"the engine {output}")
    (scores,) = output
    assert isinstance(scores, Scores)
    if scores.candidates is not None:
        raise UnsupportedCallError("the engine returns log-probabilities of some tokens only")
    values = log_softmax(scores.values.astype(np.float64))
    places = range(document.prompt - 1, len(document.tokens) - 1)
    return [float(values[place, document.tokens[place + 1]]) for place in places]
