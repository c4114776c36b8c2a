"""`orderproof compare`: train a study's encodings and say how they compare."""

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
from orderproof.cli.extras import need
from orderproof.errors import StoreError

if TYPE_CHECKING:
    from orderproof.lab.comparing import Plan, Tell
    from orderproof.lab.configuration import RunConfig
    from orderproof.lab.engines.engine import Engine
    from orderproof.lab.result import RunResult
    from orderproof.lab.store import Store
    from orderproof.lab.trackers import Tracker
    from orderproof.study_record import Study

STUDY = "A study that comes with the package (orderproof list studies), or a YAML file."
CHANGES = "Settings in place of the study's: steps=100, seeds=3, encoding=rotary,alibi, question.letters=10."
STORE = "The folder that keeps results and checkpoints; a run that is there is not repeated."
ENGINE = "Where runs are computed: local, ray, ray:ADDRESS, slurm or slurm:PARTITION."
WORKERS = "Runs at the same time; as many as there is room for by default."
DRY = "Time a few steps of what is left, say what there is to do and how long it takes; keep nothing."
TRACKER = "Send finished runs to wandb or trackio too; the package must be installed."


def compare(
    study: Annotated[str, typer.Argument(metavar="STUDY", help=STUDY)],
    changes: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help=CHANGES)] = None,
    store: Annotated[Path, typer.Option("--store", metavar="FOLDER", help=STORE)] = Path("orderproof-results"),
    engine: Annotated[str, typer.Option("--engine", metavar="ENGINE", help=ENGINE)] = "local",
    workers: Annotated[int | None, typer.Option("--workers", min=1, help=WORKERS)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY)] = False,
    tracker: Annotated[str | None, typer.Option("--tracker", metavar="wandb|trackio", help=TRACKER)] = None,
    json: options.Json = None,
    html: options.Html = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="PATH", help="Write a page, with its pictures beside it.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Train small transformers that differ in their encodings, and compare them: with seeds, intervals and ceilings.

    What each model cannot tell is proved before it is trained, and its score is held against the proof. Interrupted or
    killed, the same command goes on where it was.

    \b
    Examples:
      orderproof compare who_did_what                        120 runs: minutes on two cores
      orderproof compare who_did_what --dry-run              what it will take
      orderproof compare copy encoding=rotary,alibi seeds=3 steps=500
      orderproof compare my_study.yaml --engine ray:auto --html study.html
    """
    need("orderproof compare", "yaml", "scipy", extra="lab")
    if html is not None or markdown not in (None, "-"):
        need("a picture of a study", "matplotlib", extra="plots")
    from orderproof.lab.study import changed, load
    from orderproof.report.destination import check

    check(json, html, markdown)
    asked = changed(load(study), changes or [])
    with ExitStack() as held:
        tell: Tell = held.enter_context(progress(quiet=quiet))
        from orderproof.lab.comparing import plan
        from orderproof.lab.engines.choosing import choose
        from orderproof.lab.trackers import Tracker

        where = choose(engine, workers=workers)
        sent = None if tracker is None else Tracker(tracker, study=asked.name)
        kept = held.enter_context(_looked_at(store)) if dry_run else _store(store)
        planned = plan(asked, kept, tell=tell)
    _announce(planned, where.workers, quiet=quiet)
    if dry_run:
        return
    command = shlex.join(["orderproof", "compare", study, *(changes or [])])
    found, failed = _carry_out(planned, kept, where, sent, command=command, quiet=quiet)
    written = _write(found, json=json, html=html, markdown=markdown)
    if not quiet:
        from orderproof.report.study_text import render_study

        console = report_console([json, html, markdown])
        render_study(found, console)
        if written:
            console.print(f"\nwritten: {', '.join(written)}", highlight=False)
    if failed:
        raise typer.Exit(2)


def _store(folder: Path) -> Store:
    from orderproof.lab.store import Store

    return Store(folder)


@contextmanager
def _looked_at(folder: Path) -> Iterator[Store]:
    """The store of a folder that is not made by looking: an empty one elsewhere, where there is none."""
    if folder.is_file() or (folder / "results.sqlite").exists():
        yield _store(folder)
        return
    with TemporaryDirectory(prefix="orderproof-") as elsewhere:
        yield _store(Path(elsewhere))


def _announce(planned: Plan, workers: int | None, *, quiet: bool) -> None:
    if quiet:
        return
    from orderproof.report.study_words import duration

    done = len(planned.runs) - len(planned.left)
    text = f"study {planned.study.name}: {len(planned.runs)} runs, {done} finished"
    if planned.left:
        together = min(workers or 1, len(planned.left))
        text += f"; the others take about {duration(planned.seconds / together)} with {together} at a time"
    sys.stderr.write(text + "\n")


def _carry_out(
    planned: Plan, store: Store, engine: Engine, tracker: Tracker | None, *, command: str, quiet: bool
) -> tuple[Study, bool]:
    """Train what is left; the summary, and whether a run failed."""
    from orderproof.lab.comparing import carry_out, laws_of, summary

    failed = False
    with ExitStack() as held:
        tell: Tell = held.enter_context(progress(quiet=quiet))
        laws = laws_of(planned.runs, store, tell=tell)
        total = len(planned.runs)
        done = total - len(planned.left)
        tell("training", done, total)

        def finished(run: RunConfig, result: RunResult) -> None:
            nonlocal done
            done += 1
            tell(f"training, {done} of {total} runs", done, total)
            if tracker is not None and (why := tracker.send(run, result)):
                sys.stderr.write(f"orderproof: run {run.id} is kept, but {why}\n")

        try:
            for failure in carry_out(planned, store, engine, laws, finished=finished):
                failed = True
                sys.stderr.write(f"orderproof: run {failure.id} failed: {failure.reason}\n")
        except KeyboardInterrupt:
            held.close()
            done = len(store.results().keys() & {run.id for run in planned.runs})  # one may be kept and not yet counted
            kept = f"{done} of {total} runs are finished and kept; the same command goes on"
            sys.stderr.write(f"orderproof: interrupted; {kept}\n")
            raise typer.Exit(130) from None
        if not done:
            raise StoreError(f"none of the {total} runs of study {planned.study.name!r} came to a result")
    return summary(planned, store, laws, command=command), failed


def _write(found: Study, *, json: str | None, html: str | None, markdown: str | None) -> list[str]:
    """The files asked for; their names, but for standard output."""
    if json is not None:
        from orderproof.report.destination import write

        write(found.to_json() + "\n", json)
    if html is not None:
        from orderproof.report.study_html import write_study_html

        write_study_html(found, html)
    if markdown is not None:
        from orderproof.report.study_markdown import write_study_markdown
        from orderproof.report.study_plot import write_plot

        pictures = {}
        if markdown != "-":
            for picture in ("lengths", "curves"):
                file = Path(markdown).with_name(f"{Path(markdown).stem}_{picture}.svg")
                write_plot(found, file, picture=picture)
                pictures[picture] = file.name
        write_study_markdown(found, markdown, pictures=pictures)
    return [path for path in (json, html, markdown) if path not in (None, "-")]
