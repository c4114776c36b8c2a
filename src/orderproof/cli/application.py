"""The `orderproof` command: its subcommands and exit codes.

0    every check passed
1    a check failed; a certificate was rejected; a claim has another verdict than documented
2    wrong usage, or the subject cannot be loaded or called; in `compare` also a failed run (the report has the others),
     or a score that contradicts a proof about its model (the result is kept, and no report is written)
3    no check failed, and at least one is undecided
130  interrupted; the findings so far have been reported
141  standard output was closed before all output was written
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import typer

from orderproof.cli.atlas import atlas
from orderproof.cli.audit import audit
from orderproof.cli.card import card
from orderproof.cli.ceiling import ceiling
from orderproof.cli.claims import claims
from orderproof.cli.compare import compare
from orderproof.cli.configured import ConfiguredCommand
from orderproof.cli.conventions import conventions
from orderproof.cli.engines import engines
from orderproof.cli.explain import explain
from orderproof.cli.init import init
from orderproof.cli.list_command import list_command
from orderproof.cli.ports import ports
from orderproof.cli.prove import prove
from orderproof.cli.recheck import recheck
from orderproof.cli.repro import repro
from orderproof.cli.sensitivity import sensitivity
from orderproof.cli.training import training
from orderproof.errors import OrderproofError, UsageError, first_line
from orderproof.library_messages import show_each_warning_once
from orderproof.records.audit import EXIT_INTERRUPTED

EPILOG = (
    "Exit codes: 0 every check passed; 1 a check failed; 2 wrong usage, or the subject cannot be loaded; "
    "3 no check failed, and one is undecided; 130 interrupted."
)
COMPARE_EPILOG = (
    "Exit codes: 0 all runs finished; 2 wrong usage, a failed run, or a score that contradicts a proof; "
    "130 interrupted."
)
RECHECK_EPILOG = "Exit codes: 0 every certificate is accepted; 1 a certificate is refused; 2 a file cannot be read."

_OF_A_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_OF_A_NAME = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)  # of a file of the user

PROGRAM = "orderproof"
app = typer.Typer(
    name=PROGRAM,
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        from orderproof._version import __version__

        typer.echo(f"orderproof {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Check how a sequence model uses the order of its tokens: proofs on its graph, and measurements.

    \b
    Examples:
      orderproof audit arch:llama --tiny --html report.html
      orderproof audit my_model.py:build --as decoder
      orderproof explain
    """


app.command("audit", epilog=EPILOG, cls=ConfiguredCommand)(audit)
app.command("prove", epilog=EPILOG, cls=ConfiguredCommand)(prove)
app.command("atlas")(atlas)
app.command("card")(card)
app.command("claims")(claims)
app.command("compare", epilog=COMPARE_EPILOG)(compare)
app.command("ceiling")(ceiling)
app.command("conventions")(conventions)
app.command("engines")(engines)
app.command("explain")(explain)
app.command("init")(init)
app.command("list")(list_command)
app.command("ports")(ports)
app.command("recheck", epilog=RECHECK_EPILOG)(recheck)
app.command("repro")(repro)
app.command("sensitivity")(sensitivity)
app.command("training", epilog=EPILOG)(training)


# A removed option -> what states the same.
REMOVED_OPTIONS = {
    "--mask": "--role NAME=mask, mask:real or mask:pads; for none, --role NAME=held",
    "--position-ids": "--role NAME=positions; for none, --role NAME=held",
}


def main() -> None:
    """Run the command line; an `OrderproofError` becomes one line on standard error and exit code 2."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    try:
        show_each_warning_once()
        _refuse_removed_options(sys.argv[1:])
        app(prog_name=PROGRAM)  # also as `python -m orderproof`: completion depends on the name
    except SystemExit as error:
        if error.code == EXIT_INTERRUPTED and _is_caused_by(error, KeyboardInterrupt):
            sys.stderr.write("orderproof: interrupted\n")
        if _is_caused_by(error, BrokenPipeError):  # typer ends with 1, the code of a failed check
            _end_with_closed_output()
        raise
    except OrderproofError as error:
        sys.stderr.write(f"orderproof: {error}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        sys.stderr.write("orderproof: interrupted\n")
        raise SystemExit(130) from None
    except BrokenPipeError:
        _end_with_closed_output()
    except OSError as error:
        if error.errno in _OF_A_NAME and error.filename is not None:
            sys.stderr.write(f"orderproof: {str(error.filename)!r} cannot be opened: {error.strerror}\n")
            raise SystemExit(2) from None
        if error.errno not in _OF_A_FULL_DISK or error.filename is not None:
            _end_with_internal_error(error)
        _discard_output()
        sys.stderr.write(f"orderproof: standard output cannot be written: {error.strerror}\n")
        raise SystemExit(2) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one line
        _end_with_internal_error(error)


def _refuse_removed_options(arguments: Sequence[str]) -> None:
    """Raises `UsageError` that names the new way."""
    for argument in arguments:
        if (name := argument.partition("=")[0]) in REMOVED_OPTIONS:
            raise UsageError(f"{name} is gone: expected {REMOVED_OPTIONS[name]}")


def _end_with_internal_error(error: Exception) -> NoReturn:
    if os.environ.get("ORDERPROOF_TRACEBACK"):
        raise error
    sys.stderr.write(
        f"orderproof: internal error, please report it: {first_line(error)} "
        "(ORDERPROOF_TRACEBACK=1 shows the traceback)\n"
    )
    raise SystemExit(2) from None


def _end_with_closed_output() -> NoReturn:
    _discard_output()
    raise SystemExit(141) from None


def _discard_output() -> None:
    """Write what is left in the buffer of standard output nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _is_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """True if an exit follows from such an error that no command handled itself."""
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False
