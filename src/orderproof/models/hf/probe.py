"""Run a transformers model once to learn its token input (embeddings or ids) and the extra inputs that it requires."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch

from orderproof.errors import SubjectError, first_line
from orderproof.models.hf.extra_inputs import ExtraInputs, input_named_in_error, required_inputs
from orderproof.models.hf.model_kind import is_vision_model
from orderproof.models.hf.outputs import PRIMARY_OUTPUTS
from orderproof.models.input_spec import NoTokenInputError
from orderproof.models.own_errors import raise_own_error
from orderproof.models.subject import Subject
from orderproof.models.trial_call import check_trial_call
from orderproof.recording.restored_state import restored_state

EMBEDDINGS_NOTE = "called with embeddings, not with token ids"


def probe_subject(model: Any, build: Callable[..., Subject], *, is_given: bool = False) -> Subject:
    """A subject that runs, called with token ids, or with embeddings if token ids fail.

    Args:
        model: The model.
        build: `build_subject` with the model and its name bound.
        is_given: The model is an object of the user: its first call is made in another process, and no call changes it.

    Raises:
        SubjectError: The model cannot be called, or must not be.

    """
    if is_given:
        build = partial(_build_and_try, build)
    with restored_state(model) if is_given else nullcontext():
        return _probe(model, build)


def _build_and_try(build: Callable[..., Subject], **options: Any) -> Subject:
    """The subject, if a call of it in another process shows that it may be called. Raises `SubjectError`."""
    subject = build(**options)
    inputs = subject.sample(subject.default_length).inputs
    check_trial_call(subject.name, subject.module, lambda: subject.module(*inputs))
    return subject


def _probe(model: Any, build: Callable[..., Subject]) -> Subject:
    try:
        return _with_required_inputs(model, build)
    except SubjectError as error:
        if isinstance(error, NoTokenInputError) or is_vision_model(type(model)):
            raise
        reason = first_line(error)
    subject = _with_required_inputs(model, partial(build, use_embeddings=True))
    subject.notes = (*subject.notes, f"{EMBEDDINGS_NOTE} ({reason})")
    return subject


def _with_required_inputs(model: Any, build: Callable[..., Subject]) -> Subject:
    """A subject that runs, with fixed values for the inputs that its errors name."""
    names = required_inputs(model.config)
    while True:
        try:
            subject = build(extra_input_names=names)
            _check_runs(subject)
        except NoTokenInputError:
            raise
        except SubjectError as error:
            missing = input_named_in_error(error, model, names)
            if missing is None:
                raise
            names = (*names, missing)
        else:
            if names and not _output_depends_on_tokens(subject):
                raise SubjectError(f"the output does not depend on the tokens{extra_inputs_of(subject).summary}")
            return subject


def extra_inputs_of(subject: Subject) -> ExtraInputs:
    """The fixed extra inputs of a transformers subject."""
    module: Any = subject.module
    extra_inputs: ExtraInputs = module.extra_inputs
    return extra_inputs


def _output_depends_on_tokens(subject: Subject) -> bool:
    """True if other tokens give another output, so that the extra inputs do not determine it."""
    with torch.no_grad():
        one, other = (subject.module(*subject.sample(subject.default_length, seed).inputs) for seed in (0, 1))
    return any(not torch.equal(one[key], other[key]) for key in one)


def _check_runs(subject: Subject) -> None:
    """Call the model once and note outputs that are not audited. Raises `SubjectError`."""
    inputs = subject.sample(subject.default_length).inputs
    try:
        with torch.no_grad():
            outputs = subject.module(*inputs)
    except Exception as error:  # third-party code: anything may come
        raise_own_error(error)
        shapes = ", ".join(f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" for x in inputs)
        raise SubjectError(f"the model could not be called with {shapes}: {first_line(error)}") from error
    if not outputs:
        raise SubjectError(f"the model returned none of the outputs {', '.join(PRIMARY_OUTPUTS)}, and no other tensor")
    if not set(outputs) & set(PRIMARY_OUTPUTS):
        subject.notes = (*subject.notes, f"audited outputs: the first tensors, {', '.join(outputs)}")
