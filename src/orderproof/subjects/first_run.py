"""A subject that was run once: with what its tokens are, and what stands beside them, found out by running it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from orderproof.errors import SubjectError, first_line
from orderproof.subjects import beside
from orderproof.subjects.images import NoTokens
from orderproof.subjects.kinds import reads_images
from orderproof.subjects.outputs import OUTPUTS
from orderproof.subjects.subject import Subject
from orderproof.subjects.tokens import draw_numbers, embeddings_of


def readable(model: Any, make: Callable[..., Subject]) -> Subject:
    """A subject that was run once: it takes token vectors, or token numbers where vectors do not mean the same."""
    try:
        subject = _completed(model, make)
        if getattr(subject.module, "argument", "") != "inputs_embeds" or _vectors_stand_for_numbers(subject):
            return subject
    except SubjectError as error:
        if isinstance(error, NoTokens) or reads_images(type(model)):
            raise
    return _completed(model, partial(make, numbers=True))


def _completed(model: Any, make: Callable[..., Subject]) -> Subject:
    """A subject that was run once, with what its errors ask for given beside its tokens."""
    given = beside.always(model.config)
    while True:
        try:
            subject = make(beside=given)
            _run(subject)
        except NoTokens:
            raise
        except SubjectError as error:
            asked = beside.asked_for(error, model, given)
            if asked is None:
                raise
            given = (*given, asked)
        else:
            if given and not _answers_to_its_tokens(subject):
                raise SubjectError(f"the output does not depend on the tokens{beside_of(subject).words}")
            return subject


def beside_of(subject: Subject) -> beside.Beside:
    """What stands beside the tokens of a subject."""
    module: Any = subject.module
    fixed: beside.Beside = module.beside
    return fixed


def _answers_to_its_tokens(subject: Subject) -> bool:
    """Whether other tokens give another output: what stands beside them could be all that counts."""
    with torch.no_grad():
        one, other = (subject.module(*subject.sample(subject.length, seed).inputs) for seed in (0, 1))
    return any(not torch.equal(one[key], other[key]) for key in one)


def _vectors_stand_for_numbers(subject: Subject) -> bool:
    """Whether the vectors of some tokens give what their numbers give: ESM adds positions to numbers only."""
    model: Any = subject.module.model
    embeddings = embeddings_of(model)
    if embeddings is None:
        return True
    (numbers,) = draw_numbers(len(embeddings.weight), "cpu")(subject.length, 0).inputs
    with torch.no_grad():
        try:
            fixed = beside_of(subject)(numbers)
            expected = model(input_ids=numbers, **fixed)[0]
            found = model(inputs_embeds=embeddings(numbers), **fixed)[0]
        except Exception:  # noqa: BLE001 - third-party code: anything may come; it ran with vectors
            return True
    return bool(torch.allclose(expected, found, rtol=1e-3, atol=1e-3))


def _run(subject: Subject) -> None:
    inputs = subject.sample(subject.length).inputs
    try:
        with torch.no_grad():
            made = subject.module(*inputs)
    except Exception as error:  # third-party code: anything may come
        shapes = ", ".join(f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" for x in inputs)
        raise SubjectError(f"the model could not be called with {shapes}: {first_line(error)}") from error
    if not made:
        raise SubjectError(f"the model returned none of the outputs {', '.join(OUTPUTS)}, and no other tensor")
