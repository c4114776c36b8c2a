"""Commands whose subject may be a name in the configuration of the project, which then states its options too."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from orderproof.cli.audit import audit
from orderproof.cli.kept import SUBJECT_NAME
from orderproof.cli.outputs import ReportFiles
from orderproof.cli.project_run import audit_project
from orderproof.cli.prove import prove
from orderproof.cli.stated_options import options_of, stated_for_run, stated_for_subject
from orderproof.cli.watch import audit_again
from orderproof.configuration.project_file import NAME, Configuration, find_configuration
from orderproof.errors import CheckpointError
from orderproof.registry import did_you_mean

_COMMANDS: dict[str, Callable[..., None]] = {"audit": audit, "prove": prove}
_CONFIGURATION = "orderproof.configuration"  # the key of a context


class ConfiguredCommand(TyperCommand):
    """`audit` or `prove`: options on the command line win over those in the file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line, and once more with the values of the configuration as defaults."""
        rest: list[str] = super().parse_args(ctx, list(args))
        subject = ctx.params.get("subject")
        if ctx.resilient_parsing or not (subject is None or NAME.fullmatch(subject)):
            return rest
        configuration = find_configuration(Path.cwd())
        if configuration is None:
            return rest
        ctx.meta[_CONFIGURATION] = configuration
        known, own = options_of(audit), options_of(_COMMANDS[str(self.name)])
        stated = own
        if self.name == "prove":  # the law and the files are its own; the file states those of an audit
            stated = {key: each for key, each in own.items() if key != "law" and not each.is_file}
        if subject in configuration.subjects:
            ctx.default_map = stated_for_subject(configuration, subject, stated, known)
            rest = super().parse_args(ctx, list(args))
            ctx.params["subject"] = configuration.subjects[subject].spec
            ctx.meta[SUBJECT_NAME] = subject
            files = ["write_baseline", "resume", "example", *(each.parameter for each in own.values() if each.is_file)]
            _name_files_from(configuration.folder, ctx, [each for each in files if each in ctx.params])
        elif subject is None:
            ctx.default_map = stated_for_run(configuration, own)
            rest = super().parse_args(ctx, list(args))
            if not configuration.subjects:
                raise configuration.error(None, None, 'expected a table [subjects.NAME] with subject = "..."; got none')
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command in the folder of the configuration, or `audit` for each subject."""
        configuration: Configuration | None = ctx.meta.get(_CONFIGURATION)
        if ctx.params.get("watch"):
            raise typer.Exit(audit_again(sys.argv[1:], ctx.params["subject"], ReportFiles.of_options(ctx.params).paths))
        if configuration is None:
            return super().invoke(ctx)
        if ctx.params["subject"] is None:
            return audit_project(self, ctx, configuration)
        folder = configuration.folder if SUBJECT_NAME in ctx.meta else Path.cwd()
        with _names_of(configuration, ctx.params["subject"]), contextlib.chdir(folder):
            return super().invoke(ctx)


def _name_files_from(folder: Path, ctx: Any, parameters: list[str]) -> None:
    """Let the files that are named on the command line be found from another folder."""
    if folder == Path.cwd():
        return
    for each in parameters:
        if ctx.get_parameter_source(each).name == "COMMANDLINE" and str(ctx.params[each]) != "-":
            ctx.params[each] = type(ctx.params[each])(Path.cwd() / ctx.params[each])


@contextlib.contextmanager
def _names_of(configuration: Configuration, subject: str) -> Iterator[None]:
    """Let an error about a subject that is not found name the nearest one of the configuration, and nothing else."""
    try:
        yield
    except CheckpointError:
        hint = did_you_mean(subject, configuration.subjects)
        if hint and not Path(subject).exists():
            raise CheckpointError(f"{subject}: no subject of the configuration, and no such folder{hint}") from None
        raise
