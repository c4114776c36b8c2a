"""Running a study: the proofs, the runs that are left, their results, and the summary.

proofs for every cell -> runs that are not in the store -> engine -> check against the proofs -> store -> summary
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

import torch

from orderproof.errors import StoreError
from orderproof.lab import proof_consistency
from orderproof.lab.code_version import code_version, prover_version
from orderproof.lab.engines.engine import Engine, RunFailure
from orderproof.lab.model import build_model
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.lab.store import ResultStore
from orderproof.lab.study import StudyConfig
from orderproof.lab.summary import group_cells, summarise
from orderproof.lab.sweep import sweep_points
from orderproof.lab.trainer import make_optimiser, train_steps
from orderproof.records.document import versions
from orderproof.records.study import Study, SweepPoint

WARMUP_STEPS, TIMED_STEPS = 3, 12

ProgressCallback = Callable[[str, int, int], None]
ResultCallback = Callable[[RunConfig, RunResult], None]


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """The runs of a study, and the work that is left."""

    study: StudyConfig
    runs: tuple[RunConfig, ...]
    """All runs."""
    remaining_runs: tuple[RunConfig, ...]
    """The runs that are not in the store."""
    seconds: float
    """The predicted time for one worker, from a few steps of each cell."""
    sweep: Mapping[str, tuple[SweepPoint, ...]] = field(default_factory=dict)
    """The learning rates that were tried, by `RunConfig.sweep_id`, best first."""


def plan_sweep(study: StudyConfig, store: ResultStore, *, progress: ProgressCallback) -> StudyPlan | None:
    """The sweep of learning rates before a study; None without one. Raises `StoreError` for results of other code."""
    runs = study.sweep_runs()
    return _plan(study, runs, store, progress=progress) if runs else None


def plan_study(study: StudyConfig, store: ResultStore, *, progress: ProgressCallback) -> StudyPlan:
    """Find the runs that are left and time a few steps of each cell. Raises `StoreError` for results of other code.

    Where the sweep of a cell is not finished, its runs have the learning rate of the settings.
    """
    results = {run_id: result for run_id, (_, result) in store.results().items()}
    points = sweep_points((run for run in study.sweep_runs() if run.id in results), results)
    chosen = {sweep_id: tried[0].learning_rate for sweep_id, tried in points.items()}
    return _plan(study, study.runs(chosen), store, progress=progress, sweep=points)


def _plan(
    study: StudyConfig,
    runs: list[RunConfig],
    store: ResultStore,
    *,
    progress: ProgressCallback,
    sweep: Mapping[str, tuple[SweepPoint, ...]] | None = None,
) -> StudyPlan:
    results = store.results()
    current = code_version(runs[0].question.dataset_version)
    others = {results[run.id][0] for run in runs if run.id in results} - {current}
    if others:
        raise StoreError(
            f"{store.file} holds runs of this study made by other code ({', '.join(sorted(others))}; this is "
            f"{current}), which cannot be compared; pass another --store"
        )
    remaining = [run for run in runs if run.id not in results]
    seconds: dict[str, float] = {}
    for number, run in enumerate(remaining):
        if run.cell_id not in seconds:
            progress("predicting the cost", number, len(remaining))
            seconds[run.cell_id] = run.steps * seconds_per_step(run)
    return StudyPlan(
        study=study,
        runs=tuple(runs),
        remaining_runs=tuple(remaining),
        seconds=sum(seconds[run.cell_id] for run in remaining),
        sweep=sweep or {},
    )


def seconds_per_step(run: RunConfig) -> float:
    """The mean time of a training step on this machine, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = build_model(run)
        steps = list(train_steps(run, model, make_optimiser(run, model), last=WARMUP_STEPS + TIMED_STEPS))
        return statistics.fmean(step.seconds for step in steps[WARMUP_STEPS:])
    finally:
        torch.set_num_threads(threads)


def prove_cells(
    runs: tuple[RunConfig, ...], store: ResultStore, *, progress: ProgressCallback
) -> dict[str, tuple[str, ...]]:
    """For each cell id, the names of the laws proved of its model; proofs by the same code are read from the store."""
    code = prover_version()
    laws = store.laws(code=code)
    for number, run in enumerate(runs):
        if run.cell_id not in laws:
            progress(f"proving {run.encoding}", number, len(runs))
            laws[run.cell_id] = proof_consistency.prove_laws(run)
            store.add_proved_laws(run.cell_id, laws[run.cell_id], code=code)
    return laws


def run_study(
    plan: StudyPlan,
    store: ResultStore,
    engine: Engine,
    laws: dict[str, tuple[str, ...]],
    *,
    on_result: ResultCallback,
) -> Iterator[RunFailure]:
    """Train the remaining runs, store each result, check it against the proofs, and yield the failures.

    Raises `ProofContradiction` after the result is stored.
    """
    by_id = {run.id: run for run in plan.runs}
    for run_id, (_, result) in store.results().items():
        if run_id in by_id:
            run = by_id[run_id]
            store.delete_checkpoint(run_id)
            proof_consistency.check_scores_against_proofs(run, result, laws.get(run.cell_id, ()))
    if not plan.remaining_runs:
        return
    with closing(engine.run(list(plan.remaining_runs), store.checkpoints.resolve())) as outcomes:  # type: ignore[type-var]
        for outcome in outcomes:
            if isinstance(outcome, RunFailure):
                yield outcome
                continue
            run = by_id[outcome.id]
            if outcome.edition != run.question.dataset_version:
                reason = f"its worker read another text ({outcome.edition}); run it with the Python of this machine"
                yield RunFailure(id=outcome.id, reason=reason)
                continue
            store.add(outcome, code=code_version(outcome.edition))
            on_result(run, outcome)
            proof_consistency.check_scores_against_proofs(run, outcome, laws.get(run.cell_id, ()))


def summarise_study(plan: StudyPlan, store: ResultStore, laws: dict[str, tuple[str, ...]], *, command: str) -> Study:
    """The record of the study's finished runs."""
    results = store.results()
    records = [results[run.id][1].model_dump(mode="json") for run in plan.runs if run.id in results]
    cell_ids = {run.id: run.cell_id for run in plan.runs}
    groups = group_cells(records)
    proved = {label: laws[cell_ids[group[0]["id"]]] for label, group in groups.items()}
    sweep_ids = {run.id: run.sweep_id for run in plan.runs}
    sweep = {label: plan.sweep.get(sweep_ids[group[0]["id"]], ()) for label, group in groups.items()}
    question = plan.runs[0].question
    return summarise(
        records,
        study=plan.study.name,
        question=type(question),
        proved=proved,
        sweep=sweep,
        exhaustive=lambda record, length: question.is_exhaustive(length, record["config"]["test_rows"]),
        command=command,
        versions={**versions(), "code": code_version(question.dataset_version)},
        machine={"machine": platform.machine(), "cores": str(os.cpu_count()), "threads per run": "1"},
    )
