"""The result of a law of ports in words: where the engine differs, the settings that explain it, and what was tried."""

from __future__ import annotations

import json

from orderproof.laws.ports import PortCall
from orderproof.ports import call_failure
from orderproof.ports.comparison import Profile
from orderproof.ports.explanation import FoundCause
from orderproof.ports.port_run import PortResult, PortRun
from orderproof.records.audit import PortCauseName
from orderproof.records.conventions import named_as_convention


def call_text(call: PortCall) -> str:
    """The call: "a prompt of 20 tokens"."""
    if call.kind == "prefill":
        return f"a prompt of {call.length} tokens"
    if call.kind == "chunks":
        count = len(call.sizes)
        return f"{call.length} tokens in {count} calls with a cache"
    if call.kind == "pooled":
        return f"embeddings of texts of {', '.join(str(len(row)) for row in call.rows)} tokens in a batch"
    if call.kind == "batch":
        return f"a batch of rows of {', '.join(str(len(row)) for row in call.rows)} tokens"
    if call.kind == "prefix":
        return f"a prompt of {call.length} tokens after one with the same beginning"
    if call.kind == "cached_prompt":
        return f"a prompt of {call.length} tokens, scored after one with the same beginning"
    if call.kind == "preemption":
        return f"{len(call.rows)} rows of {call.length} tokens in a cache that is too small for all"
    return f"{call.count} tokens after a prompt of {call.length}"


def result_text(run: PortRun, result: PortResult) -> str:
    """One line on a result."""
    profile, engine = result.profile, run.engine.name
    if profile is None or result.call is None:
        causes = [_cause_text(each, engine) for each in result.explanation.causes]
        if result.law.ability is None:
            equal = f"equals {engine}, which loads it without the weights of the head"
        else:
            equal = f"generates the tokens of {engine}"
        then = [f"with {_changes(len(causes))} the reference {equal}"] if causes else []
        return "; ".join([result.reason, *causes, *then])
    if profile.first is None:
        return f"{call_text(result.call)}: equal to {profile.largest:.1e} (rounding {result.rounding:.1e})"
    where = f"differs from token {profile.first} on" if profile.first else "differs from the first token on"
    parts = [f"{call_text(result.call)}: {where}, by up to {profile.largest:.2g}{_before(profile)}"]
    parts += [_cause_text(each, engine) for each in result.explanation.causes]
    parts += [_conclusion(run, result)]
    if result.with_older_keys is not None:
        keys = ", ".join(run.older_keys)
        again = result.with_older_keys
        left = f"equal to {again.largest:.1e}" if again.first is None else f"{again.largest:.2g} is left"
        rest = "".join(f", {_cause_text(each, engine)}" for each in result.older_explanation.causes)
        parts.append(f"with {keys} added to config.json, as older versions of transformers wrote them: {left}{rest}")
    return "; ".join(parts)


def _before(profile: Profile) -> str:
    """The differences of the tokens before the first one that differs; empty if the engine returns none of them."""
    equal = max(profile.by_token[: profile.first], default=0.0)
    is_returned = equal > 0 or (profile.first or 0) > profile.start
    return f", equal before it to {equal:.1e}" if profile.first and is_returned else ""


def _cause_text(found: FoundCause, engine: str) -> str:
    each = found.candidate
    return f"{each.setting}: {each.stated} in the reference, {each.assumed} in {engine}"


def _conclusion(run: PortRun, result: PortResult) -> str:
    explanation = result.explanation
    if not explanation.causes:
        return "no setting was found that explains it" if run.explains else "not explained"
    remaining, change = explanation.causes[-1].remaining, _changes(len(explanation.causes))
    left = remaining.largest
    if explanation.is_complete and remaining.first is not None:
        equal = f"{1 - remaining.share:.0%} of the tokens equal those of {run.engine.name}"
        moved = f"the others differ by up to {left:.1e}, as copies of the reference with other last digits do"
        return f"with {change} {equal}; {moved}"
    if explanation.is_complete:
        return f"with {change} the reference equals {run.engine.name} to {left:.1e}"
    return f"with {change} {left:.2g} is left, unexplained"


def _changes(count: int) -> str:
    return "that change" if count == 1 else "these changes"


REMEDIES: dict[PortCauseName, str] = {
    "window": "Hide keys that are window or more tokens before the query, in the layers that config.json names.",
    "rotary base": "Read rope_theta from rope_parameters, for each layer type that has its own.",
    "rotary layout": "Pair the features of a head as the reference does, or permute the weights at conversion.",
    "partial rotary": "Rotate the fraction of features that partial_rotary_factor states.",
    "scaling": "Read the rope scaling from config.json, with every factor that it states.",
    "softcap": "Apply the softcaps that config.json states, and no others.",
    "sinks": "Read the attention sinks of the checkpoint, and add them to the denominator of the softmax.",
    "mask or pads": "Hide pads in the mask, and count positions from the first real token of each row.",
    "cache offset": "Count positions on from the number of tokens that the cache has seen.",
    "norm or constant precision": "Use the value of the reference, in float32.",
}
CONVENTIONS: dict[PortCauseName, str] = {  # the question of `orderproof conventions` about it
    "window": "window",
    "rotary base": "rotary_base",
    "rotary layout": "pairs",
    "partial rotary": "rotated_part",
    "softcap": "soft_cap",
    "sinks": "sinks",
    "mask or pads": "masked_row",
    "cache offset": "causal_past",
}
UNEXPLAINED = "No setting that was tried makes it: compare what both compute after each layer, for one token."
SEES_OTHER_TOKENS = (
    "No setting that was tried makes it. The tokens before token {first} agree: compare the mask, the window and the "
    "positions of token {first} in both."
)


def remedy_text(run: PortRun, result: PortResult) -> str:
    """The change that the engine or the checkpoint needs: by the causes that were found, else by the law."""
    if result.beyond == call_failure.WINDOW:
        return call_failure.REMEDY
    if result.law.ability is None and run.needs_older_keys:
        keys = json.dumps(run.older_keys, default=str)
        return f"Add {keys} to config.json, or use a version of {run.engine.name} that reads the keys of today."
    texts = [_remedy_of(each, run) for each in result.explanation.causes]
    causes = (each.candidate.cause for each in result.explanation.causes if not each.candidate.remedy)
    conventions = dict.fromkeys(CONVENTIONS[cause] for cause in causes if cause in CONVENTIONS)
    texts += [named_as_convention(*conventions)] if conventions else []
    if texts and _older_keys_help(result):
        texts.append(f"Or add {json.dumps(run.older_keys, default=str)} to config.json.")
    return " ".join(dict.fromkeys(texts)) or _remedy_without_cause(run, result) or result.law.remedy


def _remedy_of(found: FoundCause, run: PortRun) -> str:
    each = found.candidate
    if not run.engine.reads_checkpoint:  # a rewrite reads no configuration
        return f"Let {each.setting} be as in the reference: {each.stated}."
    return each.remedy or REMEDIES.get(each.cause, f"Read {each.setting} as the reference does.")


def _remedy_without_cause(run: PortRun, result: PortResult) -> str:
    """The advice where no setting explains a difference; empty if the law says what to do."""
    first = None if result.profile is None else result.profile.first
    if first is None or not run.explains:
        return ""
    is_rewrite = not run.engine.reads_checkpoint
    if first == 0:
        same_weights = "has the weights of the reference" if is_rewrite else "was made from this checkpoint"
        target = run.engine.target and f"Check first that {run.engine.name} {same_weights}. "
        return f"{target}{UNEXPLAINED}"
    of_prompt = result.call is not None and result.call.kind == "prefill"
    says_settings = is_rewrite or result.law.name == "same_prefill"
    return SEES_OTHER_TOKENS.format(first=first) if of_prompt and says_settings else ""


def _older_keys_help(result: PortResult) -> bool:
    """True if the keys of older versions of transformers remove some cause."""
    again = result.with_older_keys
    return again is not None and (
        again.first is None or len(result.older_explanation.causes) < len(result.explanation.causes)
    )
