"""The setting behind a checkpoint that an engine refuses: a head of its own, where the engine takes a tied one only.

The engine reads the checkpoint once more without the weights of the head, and with `config.json` as it was. The setting
is named only if it loads that, and computes what the reference computes with a tied head.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from orderproof.laws.ports import PortCall
from orderproof.ports.causes.cause import Candidate, with_values
from orderproof.ports.comparison import check_scores, profile, tolerance
from orderproof.ports.engine_process import EngineLimits, EngineRun, run_engine
from orderproof.ports.engine_side.serving import Scores
from orderproof.ports.engines.engine import EngineError, InferenceEngine
from orderproof.ports.explanation import Explanation, FoundCause
from orderproof.ports.reference import Reference
from orderproof.ports.tokenizer import write_tokenizer

KEY = "tie_word_embeddings"


def refusal_explanation(
    reference: Reference, engine: InferenceEngine, run: EngineRun, limits: EngineLimits
) -> Explanation:
    """The setting that explains why an engine refused the checkpoint of a reference; empty if it was not found."""
    head = reference.model.get_output_embeddings()
    names = [name for name, value in reference.model.named_parameters() if head is not None and value is head.weight]
    if not run.refused or getattr(reference.config, KEY, None) is not False or not names:
        return Explanation()
    if names[0] not in run.load_failure:
        return Explanation()
    change = replace(with_values({KEY: True}), prepare=lambda built: built.tie_weights())
    candidate = Candidate("other", KEY, "False", "True", change)
    tied, model = reference.with_changes([change]), reference.port_model
    call = PortCall("prefill", (model.tokens(model.short_length),))
    with TemporaryDirectory() as place:
        folder = Path(place)
        tied.save(folder, {KEY: False})
        write_tokenizer(folder, model.vocabulary)
        answer = run_engine(engine, folder, reference.config.model_type, [call], limits).outputs.get(call, "")
    scores = [] if isinstance(answer, str) else [each for each in answer if isinstance(each, Scores)]
    single, double = tied.outputs(call), tied.outputs(call, double=True)
    try:
        check_scores(scores, double)
    except EngineError:
        return Explanation()
    remaining = profile(scores, double, tolerance(single, double))
    return Explanation((FoundCause(candidate, remaining),), True) if remaining.first is None else Explanation()
