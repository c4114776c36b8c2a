"""`orderproof compare`: train the models of a study and compare their encodings."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress, report_console
from orderproof.cli.outputs import print_written, rendered, write_outputs
from orderproof.errors import StoreError
from orderproof.optional_packages import require_packages

if TYPE_CHECKING:
    from orderproof.lab.engines.engine import Engine
    from orderproof.lab.result import RunResult
    from orderproof.lab.run_config import RunConfig
    from orderproof.lab.store import ResultStore
    from orderproof.lab.study_runner import StudyPlan
    from orderproof.lab.trackers import Tracker
    from orderproof.records.study import Study

STUDY = "A built-in study (orderproof list studies) or a YAML file."
SETTINGS = "Override settings: steps=100, seeds=3, encoding=rotary,alibi, question.letters=10."
STORE = "The folder of results and checkpoints; a finished run is not repeated."
ENGINE = "Where runs execute: local, ray, ray:ADDRESS, slurm or slurm:PARTITION."
WORKERS = "Concurrent runs; by default as many as there is room for."
DRY_RUN = "Time a few steps, print the remaining work and the estimated time, and store nothing."
TRACKER = "Also send finished runs to wandb or trackio; the package must be installed."


def compare(
    study: Annotated[str, typer.Argument(metavar="STUDY", help=STUDY)],
    settings: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help=SETTINGS)] = None,
    store: Annotated[Path, typer.Option("--store", metavar="FOLDER", help=STORE)] = Path("orderproof-results"),
    engine: Annotated[str, typer.Option("--engine", metavar="ENGINE", help=ENGINE)] = "local",
    workers: Annotated[int | None, typer.Option("--workers", min=1, help=WORKERS)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)] = False,
    tracker: Annotated[str | None, typer.Option("--tracker", metavar="wandb|trackio", help=TRACKER)] = None,
    json: options.Json = None,
    html: options.Html = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="PATH", help="Write Markdown, with plots in the same folder.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Train small transformers that differ in their encodings and compare them: seeds, intervals, exact ceilings.

    Laws of token order are proved of each model before training, and its scores are checked against the proofs. After
    an interruption, the same command resumes.

    \b
    Examples:
      orderproof compare who_did_what                        120 runs: minutes on two cores
      orderproof compare who_did_what --dry-run              the estimated time
      orderproof compare copy encoding=rotary,alibi seeds=3 steps=500
      orderproof compare copy encoding=rotary,my_file.py:MyEncoding   a class of your own
      orderproof compare my_study.yaml --engine ray:auto --html study.html
    """
    require_packages("orderproof compare", "yaml", "scipy", extra="lab")
    if html is not None or markdown not in (None, "-"):
        require_packages("a picture of a study", "matplotlib", extra="plots")
    from orderproof.lab.study_config import read_study
    from orderproof.report.file_output import check_writable

    check_writable(json, html, markdown)
    read_study(study)  # before torch is imported
    with ExitStack() as stack:
        report_progress = stack.enter_context(progress(quiet=quiet))
        report_progress(f"loading the study {study}", 0, 1)
        from orderproof.lab.engines.factory import make_engine
        from orderproof.lab.study import load_study, with_overrides
        from orderproof.lab.study_runner import plan_study, plan_sweep
        from orderproof.lab.trackers import Tracker

        config = with_overrides(load_study(study), settings or [])
        executor = make_engine(engine, workers=workers)
        run_tracker = None if tracker is None else Tracker(tracker, study=config.name)
        results = stack.enter_context(_readonly_store(store)) if dry_run else _open_store(store)
        predict = not quiet
        sweep = plan_sweep(config, results, progress=report_progress, predict=predict)
        sweep_is_left = bool(sweep and sweep.remaining_runs)
        planned = dry_run or not sweep_is_left
        plan = plan_study(config, results, progress=report_progress, predict=predict) if planned else None
    if not quiet:
        for part, what in ((sweep, "sweep of learning rates, "), (plan, "")):
            if part is not None:
                _print_plan(part, executor.workers, what=what)
    if dry_run:
        return
    if plan is None and sweep is not None:
        if _run_sweep(sweep, results, executor, quiet=quiet):
            raise typer.Exit(2)
        with progress(quiet=quiet) as report_progress:
            plan = plan_study(config, results, progress=report_progress, predict=predict)
        if not quiet:
            _print_plan(plan, executor.workers)
    assert plan is not None
    command = shlex.join(["orderproof", "compare", study, *(settings or [])])
    record, any_failed = _run_plan(plan, results, executor, run_tracker, command=command, quiet=quiet)
    with progress(quiet=quiet or "-" in (json, html, markdown)) as report_progress:  # not over standard output
        report_progress("writing the report", 0, 1)
        written = _write_outputs(record, json=json, html=html, markdown=markdown)
    if not quiet:
        from orderproof.report.study_terminal import render_study

        console = report_console([json, html, markdown])
        render_study(record, console)
        if written:
            console.print()
        print_written(console, written)
    if any_failed:
        raise typer.Exit(2)


def _open_store(folder: Path) -> ResultStore:
    from orderproof.lab.store import ResultStore

    return ResultStore(folder)


@contextmanager
def _readonly_store(folder: Path) -> Iterator[ResultStore]:
    """The store of a folder if it exists, otherwise an empty temporary one, so that a dry run creates no files."""
    if folder.is_file() or (folder / "results.sqlite").exists():
        yield _open_store(folder)
        return
    with TemporaryDirectory(prefix="orderproof-") as temporary:
        yield _open_store(Path(temporary))


def _run_sweep(plan: StudyPlan, store: ResultStore, engine: Engine, *, quiet: bool) -> bool:
    """Train the remaining runs of a sweep; True if any of them failed."""
    from orderproof.lab.study_runner import run_study

    total, finished, any_failed = len(plan.runs), len(plan.runs) - len(plan.remaining_runs), False
    with progress(quiet=quiet) as report_progress:

        def on_result(_run: RunConfig, _result: RunResult) -> None:
            nonlocal finished
            finished += 1
            report_progress(f"sweep of learning rates, {finished} of {total} runs", finished, total)

        for failure in run_study(plan, store, engine, {}, on_result=on_result):
            any_failed = True
            sys.stderr.write(f"orderproof: run {failure.id} failed: {failure.reason}\n")
    return any_failed


def _print_plan(plan: StudyPlan, workers: int | None, *, what: str = "") -> None:
    from orderproof.report.study_phrases import duration

    finished = len(plan.runs) - len(plan.remaining_runs)
    text = f"study {plan.study.name}: {what}{len(plan.runs)} runs, {finished} finished"
    if plan.remaining_runs:
        concurrent = min(workers or 1, plan.remaining_jobs)
        limit = "at most about" if plan.can_stop_early else "about"
        text += f"; the others take {limit} {duration(plan.seconds / concurrent)} with {concurrent} at a time"
    sys.stderr.write(text + "\n")


def _run_plan(
    plan: StudyPlan, store: ResultStore, engine: Engine, tracker: Tracker | None, *, command: str, quiet: bool
) -> tuple[Study, bool]:
    """Train the remaining runs; the record of the study, and whether any run failed."""
    from orderproof.lab.study_runner import prove_cells, run_study, summarise_study

    any_failed = False
    with ExitStack() as stack:
        report_progress = stack.enter_context(progress(quiet=quiet))
        laws = prove_cells(plan.runs, store, progress=report_progress)
        total = len(plan.runs)
        finished = total - len(plan.remaining_runs)
        report_progress("training", finished, total)

        def on_result(run: RunConfig, result: RunResult) -> None:
            nonlocal finished
            finished += 1
            report_progress(f"training, {finished} of {total} runs", finished, total)
            if tracker is not None and (problem := tracker.log_run(run, result)):
                sys.stderr.write(f"orderproof: run {run.id} is stored, but {problem}\n")

        try:
            for failure in run_study(plan, store, engine, laws, on_result=on_result):
                any_failed = True
                sys.stderr.write(f"orderproof: run {failure.id} failed: {failure.reason}\n")
        except KeyboardInterrupt:
            stack.close()
            stored = len(store.results().keys() & {run.id for run in plan.runs})  # includes one not counted yet
            status = f"{stored} of {total} runs are finished and stored; repeat the command to resume"
            sys.stderr.write(f"orderproof: interrupted; {status}\n")
            raise typer.Exit(130) from None
        if not finished:
            raise StoreError(f"none of the {total} runs of study {plan.study.name!r} has a result")
        report_progress("summarising the scores", total, total)
        return summarise_study(plan, store, laws, command=command), any_failed


def _write_outputs(study: Study, *, json: str | None, html: str | None, markdown: str | None) -> list[str]:
    """Write the requested files and return their paths; plots are written next to the Markdown."""
    from orderproof.report.study_html import render_study_html
    from orderproof.report.study_markdown import render_study_markdown
    from orderproof.report.study_plot import write_study_plot

    def render_markdown() -> str:
        plots = {}
        for picture in ("lengths", "curves") if markdown != "-" else ():
            file = Path(str(markdown)).with_name(f"{Path(str(markdown)).stem}_{picture}.svg")
            write_study_plot(study, file, picture=picture)
            plots[picture] = file.name
        return render_study_markdown(study, pictures=plots)

    return write_outputs(
        (json, rendered(lambda: study.to_json() + "\n")),
        (html, rendered(lambda: render_study_html(study))),
        (markdown, rendered(render_markdown)),
    )
