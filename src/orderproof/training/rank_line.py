"""The line at which the shard of a rank goes wrong: its call is compared with the one that the rank makes alone."""

from __future__ import annotations

from typing import Any

from orderproof.auditing.explain.entries import frame_at
from orderproof.auditing.explain.first_difference import Place
from orderproof.auditing.explain.operator_steps import CallRecorder, RecordedCall, Step
from orderproof.auditing.explain.source_name import is_own_file
from orderproof.auditing.explain.step_search import StepSearch
from orderproof.auditing.explain.token_parts import TokenOfCall
from orderproof.laws.mixing_kinds import OTHER
from orderproof.laws.training import TokenOfBatch, TrainingStep
from orderproof.laws.training.ranks import alone, on_ranks
from orderproof.laws.training.sharded_loss import RANKS
from orderproof.laws.training.shards import model_call, own_shard


def place_on_rank(step: TrainingStep, token: TokenOfBatch, *, of_exchange: bool) -> Place | None:
    """The place of a difference in a token, or of the first exchange between ranks; None if no rank sees it."""
    found = on_ranks(RANKS, lambda: _exchange(step, token) if of_exchange else _first_difference(step, token))
    place = next((each for each in found if each is not None), None)
    return None if place is None else Place(place["module"], frame_at(place["file"], place["line"]), place["kind"])


def _exchange(step: TrainingStep, token: TokenOfBatch) -> dict[str, Any] | None:
    """The first step that exchanges values, in the user's own code if it is there."""
    steps = [each for each in _recorded(step, token).steps if each.key.operator.startswith("c10d") and each.key.file]
    own = [each for each in steps if is_own_file(each.key.file)]
    return _written((own or steps)[0], OTHER) if steps else None


def _first_difference(step: TrainingStep, token: TokenOfBatch) -> dict[str, Any] | None:
    with alone():
        one, whole = _recorded(step, token), model_call(step, token.batch)
    other, part = _recorded(step, token), model_call(step, token.batch)
    shard = own_shard(whole.tokens, part.tokens)
    local = shard.local(token.row, token.token) if shard is not None else None
    if local is None:
        return None
    one.given, other.given = whole.tokens, part.tokens
    search = StepSearch(TokenOfCall(one, token.row, token.token), TokenOfCall(other, *local))
    found = search.origin()
    return None if found is None else _written(found, search.kind(found))


def _recorded(step: TrainingStep, token: TokenOfBatch) -> RecordedCall:
    recorder = CallRecorder()
    logits = step.watched(token.batch, recorder.recording(step.model, token.batch.tokens))
    (call,) = recorder.calls
    call.output = logits
    return call


def _written(step: Step, kind: str) -> dict[str, Any]:
    return {"module": step.key.module, "file": step.key.file, "line": step.key.line, "kind": kind}
