"""A study, from its configuration to what it found: what is proved, what is left to train, and what came out.

proofs of every cell -> runs that are not in the store -> engine -> held against the proofs -> store -> summary
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import torch

from orderproof.auditing.steps import versions
from orderproof.errors import StoreError
from orderproof.lab import blindness
from orderproof.lab.code_version import code_version, prover_version
from orderproof.lab.configuration import RunConfig
from orderproof.lab.engines.engine import Engine, Failure
from orderproof.lab.network import build
from orderproof.lab.result import RunResult
from orderproof.lab.store import Store
from orderproof.lab.study import StudyConfig
from orderproof.lab.summary import cells, summarise
from orderproof.lab.training import optimiser_of, step
from orderproof.study_record import Study

PROBE, WARM = 12, 3  # steps timed, after some that are not

Tell = Callable[[str, int, int], None]
Finished = Callable[[RunConfig, RunResult], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is left of a study, and what it will take."""

    study: StudyConfig
    runs: tuple[RunConfig, ...]
    """All of them."""
    left: tuple[RunConfig, ...]
    """Those that are not in the store."""
    seconds: float
    """Predicted for one worker, from a few steps of each cell."""


def plan(study: StudyConfig, store: Store, *, tell: Tell) -> Plan:
    """Look what is done, and time a few steps of what is not. Raises `StoreError` for results of other code."""
    runs = study.runs()
    done = store.results()
    own = code_version(runs[0].question.edition)
    others = {done[run.id][0] for run in runs if run.id in done} - {own}
    if others:
        raise StoreError(
            f"{store.file} holds runs of this study made by other code ({', '.join(sorted(others))}; this is "
            f"{own}), which do not compare; give another --store"
        )
    left = [run for run in runs if run.id not in done]
    costs: dict[str, float] = {}
    for number, run in enumerate(left):
        if run.cell not in costs:
            tell("predicting the cost", number, len(left))
            costs[run.cell] = run.steps * seconds_a_step(run)
    return Plan(study=study, runs=tuple(runs), left=tuple(left), seconds=sum(costs[run.cell] for run in left))


def seconds_a_step(run: RunConfig) -> float:
    """The time one step takes here, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = build(run)
        optimiser = optimiser_of(run, model)
        for number in range(1, WARM + 1):
            step(run, model, optimiser, number)
        began = time.perf_counter()
        for number in range(WARM + 1, WARM + PROBE + 1):
            step(run, model, optimiser, number)
        return (time.perf_counter() - began) / PROBE
    finally:
        torch.set_num_threads(threads)


def laws_of(runs: tuple[RunConfig, ...], store: Store, *, tell: Tell) -> dict[str, tuple[str, ...]]:
    """For each cell, the laws proved of its model: now, or by the same code before."""
    code = prover_version()
    found = store.laws(code=code)
    for number, run in enumerate(runs):
        if run.cell not in found:
            tell(f"proving {run.encoding}", number, len(runs))
            found[run.cell] = blindness.proved(run)
            store.add_laws(run.cell, found[run.cell], code=code)
    return found


def carry_out(
    planned: Plan, store: Store, engine: Engine, laws: dict[str, tuple[str, ...]], *, finished: Finished
) -> Iterator[Failure]:
    """Train what is left, keep every result as it comes, and hold it against what was proved.

    Raises `blindness.Contradiction`, after the result is stored.
    """
    by_name = {run.id: run for run in planned.runs}
    for name, (_, result) in store.results().items():
        if name in by_name:
            blindness.check(by_name[name], result, laws[by_name[name].cell])
    if not planned.left:
        return
    with closing(engine.compute(list(planned.left), store.checkpoints.resolve())) as told:  # type: ignore[type-var]
        for one in told:
            if isinstance(one, Failure):
                yield one
                continue
            run = by_name[one.id]
            if one.edition != run.question.edition:
                why = f"it read another text ({one.edition}); run it with the Python that runs here"
                yield Failure(id=one.id, reason=why)
                continue
            store.add(one, code=code_version(one.edition))
            finished(run, one)
            blindness.check(run, one, laws[run.cell])


def summary(planned: Plan, store: Store, laws: dict[str, tuple[str, ...]], *, command: str) -> Study:
    """What the finished runs of the study say together."""
    results = store.results()
    records = [results[run.id][1].model_dump(mode="json") for run in planned.runs if run.id in results]
    names = {run.id: run.cell for run in planned.runs}
    proved = {label: laws[names[group[0]["id"]]] for label, group in cells(records).items()}
    return summarise(
        records,
        study=planned.study.name,
        question=type(planned.runs[0].question),
        proved=proved,
        command=command,
        versions={**versions(), "code": code_version(planned.runs[0].question.edition)},
        machine={"machine": platform.machine(), "cores": str(os.cpu_count()), "threads a run": "1"},
    )
