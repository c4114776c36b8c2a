"""Running a study: the proofs, the runs that are left, their results, and the summary.

proofs for every cell -> runs that are not in the store -> engine -> check against the proofs -> store -> summary
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from orderproof.errors import StoreError
from orderproof.lab import proof_consistency
from orderproof.lab.code_version import code_version, prover_version
from orderproof.lab.engines.engine import Engine, Job, RunFailure, jobs
from orderproof.lab.model import build_model
from orderproof.lab.recorded_gradients import RECORD_AT
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.lab.seed_batch import WeightBatch, distinct_weights
from orderproof.lab.store import ResultStore
from orderproof.lab.study import StudyConfig
from orderproof.lab.summary import group_cells, summarise
from orderproof.lab.sweep import sweep_points
from orderproof.lab.trainer import deterministic, make_optimiser, train_steps, validation_score
from orderproof.records.document import versions
from orderproof.records.study import Study, SweepPoint

WARMUP_STEPS, TIMED_STEPS = 2, 8

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
    """The predicted time for one worker, if every run needs all its steps; 0 if it was not predicted."""
    sweep: Mapping[str, tuple[SweepPoint, ...]] = field(default_factory=dict)
    """The learning rates that were tried, by `RunConfig.sweep_id`, best first."""

    @property
    def remaining_jobs(self) -> int:
        """The number of jobs that are left: runs that are trained together are one."""
        return len(jobs(self.remaining_runs))

    @property
    def can_stop_early(self) -> bool:
        """True if a remaining run stops when it has solved the trained lengths."""
        return any(run.solved is not None for run in self.remaining_runs)


def plan_sweep(
    study: StudyConfig, store: ResultStore, *, progress: ProgressCallback, predict: bool = True
) -> StudyPlan | None:
    """The sweep of learning rates before a study; None without one. Raises `StoreError` for results of other code."""
    runs = study.sweep_runs()
    return _plan(study, runs, store, progress=progress, predict=predict) if runs else None


def plan_study(
    study: StudyConfig, store: ResultStore, *, progress: ProgressCallback, predict: bool = True
) -> StudyPlan:
    """Find the runs that are left and time a few steps of each job. Raises `StoreError` for results of other code.

    Where the sweep of a cell is not finished, its runs have the learning rate of the settings. Without ``predict``,
    nothing is timed.
    """
    results = {run_id: result for run_id, (_, result) in store.results().items()}
    points = sweep_points((run for run in study.sweep_runs() if run.id in results), results)
    chosen = {sweep_id: tried[0].learning_rate for sweep_id, tried in points.items()}
    return _plan(study, study.runs(chosen), store, progress=progress, predict=predict, sweep=points)


def _plan(
    study: StudyConfig,
    runs: list[RunConfig],
    store: ResultStore,
    *,
    progress: ProgressCallback,
    predict: bool,
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
    return StudyPlan(
        study=study,
        runs=tuple(runs),
        remaining_runs=tuple(remaining),
        seconds=predicted_seconds(jobs(remaining), progress=progress) if predict else 0.0,
        sweep=sweep or {},
    )


def predicted_seconds(remaining: list[Job], *, progress: ProgressCallback) -> float:
    """The time of these jobs, one after the other, if every run needs all its steps."""
    known: dict[tuple[str, int], float] = {}
    seconds = 0.0
    for number, job in enumerate(remaining):
        key = (job[0].batch_id, len(job))  # of jobs whose steps take the same time
        if key not in known:
            progress("predicting the cost", number, len(remaining))
            known[key] = job[0].steps * seconds_per_step(job)
        seconds += known[key]
    return seconds


def seconds_per_step(job: Job) -> float:
    """The mean time of a step of all runs of a job, with its share of the learning curve, on this machine.

    The steps are those of the job: of a batch of weights if its runs are trained together. They have rows of the middle
    of the trained lengths, because the time grows with the length and the lengths of a few steps are not typical.
    """
    low, high = job[0].effective_train_lengths
    middle = [(low + high) // 2] * 2
    timed = [RunConfig.model_validate({**run.to_dict(), "train_lengths": middle}) for run in distinct_weights(job)]
    with deterministic():
        step = _batch_step(timed, lengths=high - low + 1) if job[0].batched else _single_step(timed[0])
        for number in range(1, WARMUP_STEPS + 1):
            step(number)
        start = time.perf_counter()
        for number in range(WARMUP_STEPS + 1, WARMUP_STEPS + TIMED_STEPS + 1):
            step(number)
        end = time.perf_counter()
        validation_score(job[0], build_model(job[0]))
        measured = len(timed) * (time.perf_counter() - end)
    return (end - start) / TIMED_STEPS + measured / job[0].measure_every


def _batch_step(runs: list[RunConfig], *, lengths: int) -> Callable[[int], object]:
    """The step of a batch, recorded before it is timed if most steps of each length will be recordings."""
    return WeightBatch(runs, record_at=1 if runs[0].steps > 2 * lengths * RECORD_AT else RECORD_AT).step


def _single_step(run: RunConfig) -> Callable[[int], object]:
    model = build_model(run)
    optimiser = make_optimiser(run, model)
    return lambda number: list(train_steps(run, model, optimiser, first=number, last=number))


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
