"""Run a transformers model once to learn its token input (embeddings or ids) and the extra inputs that it requires."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from orderproof.errors import SubjectError, first_line
from orderproof.models.hf.extra_inputs import ExtraInputs, input_named_in_error, required_inputs
from orderproof.models.hf.model_kind import is_vision_model
from orderproof.models.hf.outputs import PRIMARY_OUTPUTS
from orderproof.models.hf.token_inputs import input_embeddings, token_id_sampler
from orderproof.models.input_spec import NoTokenInputError
from orderproof.models.own_errors import raise_own_error
from orderproof.models.subject import Subject

TOKEN_ID_NOTE = "called with token ids, not with embeddings"


def probe_subject(model: Any, build: Callable[..., Subject]) -> Subject:
    """A subject that runs, called with embeddings, or with token ids if embeddings fail or give another output.

    ``build`` is `build_subject` with the model and its name bound. Raises `SubjectError`.
    """
    try:
        subject = _with_required_inputs(model, build)
        if getattr(subject.module, "argument", "") != "inputs_embeds" or _embeddings_match_token_ids(subject):
            return subject
        reason = "embeddings give another output"
    except SubjectError as error:
        if isinstance(error, NoTokenInputError) or is_vision_model(type(model)):
            raise
        reason = first_line(error)
    subject = _with_required_inputs(model, partial(build, use_token_ids=True))
    subject.notes = (*subject.notes, f"{TOKEN_ID_NOTE} ({reason})")
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


def _embeddings_match_token_ids(subject: Subject) -> bool:
    """True if embeddings give the output of their token ids; ESM adds positions to ids only. True if ids fail."""
    model: Any = subject.module.model
    embeddings = input_embeddings(model)
    if embeddings is None:
        return True
    (token_ids,) = token_id_sampler(len(embeddings.weight), "cpu")(subject.default_length, 0).inputs
    extra_inputs = extra_inputs_of(subject)(token_ids)
    with torch.no_grad():
        try:
            expected = model(input_ids=token_ids, **extra_inputs)[0]
            actual = model(inputs_embeds=embeddings(token_ids), **extra_inputs)[0]
        except Exception:  # noqa: BLE001 - third-party code: anything may come; it ran with embeddings
            return True
    return bool(torch.allclose(expected, actual, rtol=1e-3, atol=1e-3))


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
