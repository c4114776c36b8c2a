"""From the arguments of a command to a subject."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orderproof.cli import keep_until_the_end
from orderproof.errors import UsageError
from orderproof.subject_spec import Layout, SpecForm, check_spec, kind_assumption

if TYPE_CHECKING:
    from torch import nn

    from orderproof.models import Subject

MOST_PARAMETERS_OF_A_SMALL_MODEL = 10**8


def check_subject(
    spec: str | None,
    *,
    tiny: bool,
    attention: str | None,
    layout: Layout,
    allow_network: bool,
    dtype: str | None = None,
) -> SpecForm | None:
    """Check the arguments before torch is imported: the subject exists, and the options fit its form, which is given.

    Raises `UsageError` and `SubjectError`.
    """
    if spec is None:
        if tiny:
            raise UsageError("expected an architecture, arch:NAME, with --tiny; the bundled model has one size")
        if dtype is not None:
            raise UsageError("expected a checkpoint folder or a hub id with --dtype; the bundled model has one dtype")
        if layout.stated:
            raise UsageError(f"expected file.py:name with {layout.stated}; the axes of the bundled model are known")
    else:
        form = check_spec(spec, tiny=tiny, attention=attention, dtype=dtype, allow_network=allow_network)
        if layout.stated and form not in ("object", "onnx", "program", "script"):
            forms = "file.py:name, file.onnx, file.pt2 or a TorchScript file"
            raise UsageError(f"expected {forms} with {layout.stated}; {spec} states its own inputs")
        return form
    return None


def load_subject(
    spec: str | None, *, tiny: bool, attention: str | None, seed: int, layout: Layout, allow_network: bool,
    kind: str | None = None, timeout: float | None = None, dtype: str | None = None, length: int | None = None,
) -> Subject:  # fmt: skip
    """The named subject, or the bundled model; a small one is called on one thread.

    `timeout`: for the first call of a Python object [s]; `length`: of the example inputs of a file [tokens]. Raises
    `UsageError` and `SubjectError`.
    """
    check_subject(spec, tiny=tiny, attention=attention, layout=layout, allow_network=allow_network, dtype=dtype)
    from orderproof.models import bundled, load
    from orderproof.models.trial_call import call_timeout

    assume = kind_assumption(kind)
    if spec is None:
        subject = bundled(attention=attention, assume=assume)
    else:
        with call_timeout(timeout):
            subject = load(
                spec, tiny=tiny, attention=attention, dtype=dtype, seed=seed, allow_network=allow_network,
                layout=layout, assume=assume, length=length,
            )  # fmt: skip
    _limit_threads(subject.module)
    keep_until_the_end()  # the imported libraries and the model
    return subject


def _limit_threads(module: nn.Module) -> None:
    """Call a small model on one thread, unless the environment states a number.

    A call with few tokens gains nothing from more threads, and threads that wait for each other use processor time.
    """
    import torch

    stated = {"OMP_NUM_THREADS", "MKL_NUM_THREADS"} & os.environ.keys()
    if not stated and sum(p.numel() for p in module.parameters()) < MOST_PARAMETERS_OF_A_SMALL_MODEL:
        torch.set_num_threads(1)


def check_port_options(
    spec: str | None,
    against: Sequence[str],
    *,
    certificate: str | None,
    layout: Layout,
    attention: str | None,
    dtype: str | None,
    length: int | None,
    budget: float | None = None,
    resume: object = None,
) -> None:
    """Raise `UsageError` for an unknown engine, and for options of `audit` that have no meaning with --against."""
    from orderproof.ports.engines.registry import find_engines

    for name in against:
        find_engines(name)
    if spec is None:
        raise UsageError(
            "expected a subject with --against: arch:NAME, a checkpoint folder, or file.py:name with a rewrite; the "
            "bundled model has no head"
        )
    given = {
        "--certificate": certificate,
        "--token-axis": layout.stated or None,
        "--attention": attention,
        "--dtype": dtype,
        "--length": length,
        "--budget": budget,
        "--resume": resume,
    }
    if unwanted := [name for name, value in given.items() if value is not None]:
        raise UsageError(f"expected no {unwanted[0]} with --against, which compares two implementations; leave it out")
